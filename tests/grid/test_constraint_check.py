"""What constraints leave of a space, against counting the designs by hand."""

from dse.grid.constraint_check import constraint_checks
from dse.grid.sweep import sweep
from dse.space.space import space_from_mapping


def constrained(small, *constraints):
    return space_from_mapping(small | {"constraints": list(constraints)}, "here", "small")


def test_shares_are_those_of_the_grid(small):
    checks = constraint_checks(constrained(small, "sm_count <= 108", "tensor_fma_bf16 > 256 and sm_count > 96"))
    assert [one.share for one in checks] == [2 / 5, 2 / 3 * 4 / 5]
    assert not any(one.sentence for one in checks)


def test_areas_are_the_sweeps(small):
    small["timing"] = "roofline"
    of_bound, of_base = constraint_checks(constrained(small, "die_mm2 <= 814", "die_mm2 < base.die_mm2"))
    result = sweep(space_from_mapping(small, "here", "small"))
    areas = result.points()["die_mm2"]
    assert 0 < of_base.share < of_bound.share < 1
    assert (of_bound.share, of_base.share) == ((areas <= 814).mean(), (areas < result.baseline["die_mm2"][0]).mean())


def test_a_bound_that_is_a_value_of_the_grid_counts_as_in_the_sweep(small):
    """Bounds at values that 32 bits do not hold, on either side of what they hold instead."""
    axes = {"l2_mib": [82.0335, 110.409], "dram_sustained_fraction": [0.90, 0.93]}
    bounds = [
        "l2_mib >= 110.409",
        "l2_mib <= 82.0335",
        "dram_sustained_fraction <= 0.90",
        "dram_sustained_fraction >= 0.93",
        "l2_mib == 110.409",
    ]
    small |= {"timing": "roofline", "axes": axes, "links": {}}
    assert [(one.share, one.sentence) for one in constraint_checks(constrained(small, *bounds))] == [(0.5, "")] * len(
        bounds
    )
    assert sweep(constrained(small, *bounds[::3])).n_feasible == 1


def test_what_workloads_decide_is_left_to_the_sweep(small):
    space = constrained(small, "prefill.ttft_ms < base.prefill.ttft_ms", "die_mm2 + decode.tbt_ms > 0")
    assert [one.share for one in constraint_checks(space)] == [None, None]
    assert not any(one.sentence for one in constraint_checks(space))


def test_a_constraint_that_leaves_nothing_says_what_there_is(small):
    space = constrained(small, "2 * sm_count > 500", "sm_count < 96 or sm_count > 144", "min(sm_count, 90) > 140")
    assert [one.sentence for one in constraint_checks(space)] == [
        "no design is within 2 * sm_count > 500: 2 * sm_count is 192 to 288",
        "no design is within sm_count < 96 or sm_count > 144",
        "no design is within min(sm_count, 90) > 140: min(sm_count, 90) is 90",
    ]


def test_of_a_large_grid_some_designs_are_looked_at(small):
    axes = {"sm_count": {"from": 72, "to": 192, "step": 1}, "l2_mib": {"from": 20, "to": 300, "step": 0.5}}
    (check,) = constraint_checks(constrained(small | {"axes": axes, "links": {}}, "sm_count > 500"))
    assert check.sentence == "no design of 16,971 is within sm_count > 500: sm_count is 72 to 192"

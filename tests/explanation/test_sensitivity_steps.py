"""Steps of a sensitivity study: 10 % more, as far as a legal value allows."""

import pytest

from dse.explanation.sensitivity_steps import STEP, quantities, steps
from dse.hardware.presets import preset_sheet
from dse.hardware.schema import gpu_schema

H100 = preset_sheet("h100_sxm").numbers()


def after(name: str, value: float) -> float:
    """Return where an attribute of a value is moved to."""
    (step,) = [step for step in steps(H100 | {name: value}) if step.attribute.name == name]
    assert step.before == value
    return step.after


def test_a_real_number_is_ten_per_cent_more() -> None:
    assert after("dram_bandwidth_gbs", 3350.0) == pytest.approx(3685.0)
    assert STEP == 0.1


@pytest.mark.parametrize(
    ("value", "expected"), [(132.0, 145.0), (100.0, 110.0), (1.0, 2.0), (4.0, 5.0), (1000.0, 1024.0)]
)
def test_a_whole_number_stays_one_and_moves_by_a_whole_at_least(value: float, expected: float) -> None:
    assert after("sm_count", value) == expected


def test_at_its_upper_end_it_moves_down() -> None:
    attribute = gpu_schema()["sm_count"]
    assert after("sm_count", attribute.high) == round(0.9 * attribute.high)
    share = gpu_schema()["dram_sustained_fraction"]
    assert after("dram_sustained_fraction", share.high) == pytest.approx(0.9 * share.high)


@pytest.mark.parametrize(("dies", "sms", "expected"), [(2.0, 148.0, 162.0), (8.0, 160.0, 176.0), (4.0, 1024.0, 920.0)])
def test_the_dies_of_a_package_keep_as_many_sms_each(dies: float, sms: float, expected: float) -> None:
    package = H100 | {"dies": dies, "sm_count": sms, "die_link_gbs": 900.0}
    found = {step.attribute.name: step.after for step in steps(package)}
    assert found["sm_count"] == expected and expected % dies == 0
    assert found["die_link_gbs"] == pytest.approx(990)
    assert "dies" not in found and "another package" in quantities(package)[1]["dies"]


def test_every_move_is_legal_and_changes_something() -> None:
    for step in steps(H100):
        assert step.attribute.low <= step.after <= step.attribute.high
        assert step.after != step.before and step.factor > 0
        assert step.attribute.type != "int" or step.after == round(step.after)


def test_what_has_no_percentage_says_why() -> None:
    varied, left_out = quantities(H100 | {"tensor_fma_fp4": 0.0})
    assert varied.keys() | left_out.keys() == gpu_schema().keys()
    assert not varied.keys() & left_out.keys()
    assert left_out["tensor_fma_fp4"].startswith("it is 0")
    assert left_out["warpgroup_mma"] == "yes or no has no percentage"
    assert "no quantity" in left_out["compute_capability"]


def test_a_choice_has_no_percentage() -> None:
    choices = [name for name, attribute in gpu_schema().items() if attribute.choices]
    assert choices
    assert {quantities(H100)[1][name] for name in choices} == {"a choice has no percentage"}

"""Objectives and constraints that name the base GPU's results: those of the base by the program of the designs."""

import copy

import numpy as np
import pytest

from dse.grid.sweep import sweep
from dse.pareto.search import search
from dse.space.space import space_from_mapping
from tests.conftest import SMALL


@pytest.fixture(scope="module")
def space():
    """What is no slower and not much larger than the base, and how much faster, by the model that compiles soonest."""
    small = copy.deepcopy(SMALL) | {"timing": "roofline"}
    small["axes"]["tensor_fma_bf16"] = [512, 1024, 2048]
    small["constraints"] = [
        "decode.tbt_ms <= base.decode.tbt_ms",
        "total.time_ms <= base.total.time_ms",
        "die_mm2 <= 1.1 * base.die_mm2",
    ]
    small["objectives"] = [
        {"value": "base.prefill.ttft_ms / prefill.ttft_ms", "goal": "max", "name": "speedup"},
        {"value": "die_mm2", "goal": "min"},
        {"value": "total.time_ms / base.total.time_ms", "goal": "min", "name": "share"},
    ]
    return space_from_mapping(small, "here", "small")


@pytest.fixture(scope="module")
def result(space):
    return sweep(space)


def test_the_base_is_one_of_itself(result):
    base = result.baseline.iloc[0]
    assert (base["speedup"], base["share"]) == pytest.approx((1.0, 1.0), rel=1e-6)
    assert base["feasible"]  # to the last digit as slow as itself


def test_designs_are_held_against_the_base(result):
    base, points = result.baseline.iloc[0], result.points()
    assert 0 < points["feasible"].sum() < len(points)
    total = points["prefill.time_ms"] + points["decode.time_ms"]
    as_fast = total <= (base["prefill.time_ms"] + base["decode.time_ms"]) * (1 + 1e-6)
    within = (points["decode.tbt_ms"] <= base["decode.tbt_ms"]) & (points["die_mm2"] <= 1.1 * base["die_mm2"])
    np.testing.assert_array_equal(points["feasible"], within & as_fast)
    np.testing.assert_allclose(points["speedup"], base["prefill.ttft_ms"] / points["prefill.ttft_ms"], rtol=1e-6)
    np.testing.assert_allclose(points["share"], total / (base["prefill.time_ms"] + base["decode.time_ms"]), rtol=1e-6)


@pytest.mark.slow
def test_a_search_finds_the_same_front(space, result):
    found = search(space, evaluations=space.size).result
    np.testing.assert_allclose(sorted(found.front["speedup"]), sorted(result.front["speedup"]), rtol=1e-6)
    assert found.baseline["speedup"][0] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.slow
def test_refined_designs_are_held_against_the_base(space):
    found = search(space, evaluations=space.size, refine=True)
    assert found.refinement is not None and found.refinement.gain >= 0
    assert (found.result.front["decode.tbt_ms"] <= found.result.baseline["decode.tbt_ms"][0]).all()

"""The reduction of designs in a program: against what the host makes of the same designs, one by one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from dse.evaluate.infeasibility import Reasons
from dse.grid.accumulator import NONE, TOP, keep_best
from dse.grid.reduction import KILLERS, LARGEST, Filters, Reduction, survivors
from dse.grid.statistics import OCTAVE, AxisStatistics, bins_of
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL

ROW = 500

AXES = {
    "dram_gb": [40, 80, 160],
    "sm_count": {"from": 60, "to": 150, "step": 15},
    "l2_mib": {"from": 1, "to": 600, "step": 1},
    "dram_bandwidth_gbs": [1675, 3350],
}


@pytest.fixture(scope="module")
def space() -> Space:
    whole = space_from_mapping(SMALL | {"axes": AXES, "links": {}}, "here", "reduced")
    first, *others = whole.objectives
    return replace(whole, objectives=(replace(first, direction="maximize"), *others))


def digits_of(lengths: Sequence[int], numbers: np.ndarray) -> list[np.ndarray]:
    return [x.astype(np.int32) for x in np.unravel_index(numbers, lengths)]


def filters(reduction: Reduction, first: np.ndarray, **others: Any) -> Filters:
    """Filters through which nothing survives but what lies beyond the windows."""
    count = len(reduction.objectives)
    given = {
        "killers": np.full((KILLERS, count), -LARGEST, np.float32),
        "weights": np.zeros((count + 1, count), np.float32),
        "top_cost": np.full(count, -LARGEST, np.float32),
        "top_number": np.zeros((count, len(reduction.parts)), np.int32),
        "first": first.astype(np.int32),
        "clipped": np.zeros(count, bool),
    }
    return Filters(**(given | others))


@pytest.fixture(scope="module")
def case(space: Space) -> tuple[Reduction, Any, dict[str, np.ndarray]]:
    """Designs by chance, the program that reduces them, and windows around the middle of their values."""
    lengths, rng = [len(axis) for axis in space.axes], np.random.default_rng(0)
    reduction = Reduction(Reasons(space), lengths)
    count, n = len(space.objectives), 5000
    numbers = np.sort(rng.choice(space.size, n, replace=False))
    values = np.exp(rng.normal(3.0, 1.5, (count, n))).astype(np.float32)
    codes = np.where(rng.random(n) < 0.3, rng.integers(1, reduction.reasons, n), 0).astype(np.int32)
    designs = {"numbers": numbers, "values": values, "code": codes, "valid": rng.random(n) < 0.9}
    return reduction, jax.jit(reduction, static_argnums=6), designs


def reduced(case: Any, given: Filters, **changes: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    reduction, program, designs = case
    designs = designs | changes
    digits = digits_of(reduction.lengths, designs["numbers"])
    return program(reduction.empty(), given, digits, designs["values"], designs["code"], designs["valid"], ROW)


def test_statistics_are_those_of_the_host(case: Any, space: Space) -> None:
    reduction, _, designs = case
    signs = np.array([o.sign for o in space.objectives])
    first = np.full(len(signs), 30) * OCTAVE
    state, marks, _ = reduced(case, filters(reduction, first))
    feasible = designs["valid"] & (designs["code"] == 0)
    numbers, values = designs["numbers"][feasible], designs["values"][:, feasible].astype(float)
    expected = AxisStatistics(tuple(reduction.lengths), len(signs))
    for number, one in zip(numbers, values.T, strict=True):
        expected.add(int(number), np.ones(1, bool), one[:, None], (signs * one)[:, None])
    found = AxisStatistics(tuple(reduction.lengths), len(signs))
    counts, best = reduction.by_axis(state)
    found.add_counts(first, list(map(np.asarray, counts)), np.where(best < LARGEST, best, np.inf))
    beyond = (bins_of(values) < first[:, None]) | (bins_of(values) >= first[:, None] + 10 * OCTAVE)
    assert 0 < beyond.sum() < beyond.size / 10
    np.testing.assert_array_equal(np.asarray(marks)[feasible], beyond.any(axis=0))
    assert not np.asarray(marks)[~feasible].any()
    found.add_some(numbers, values, beyond)
    for mine, theirs in zip((found, *found.histograms), (expected, *expected.histograms), strict=True):
        if mine is found:
            np.testing.assert_array_equal(found.best, expected.best)
        else:
            assert (mine.low, mine.high) == (theirs.low, theirs.high)
            np.testing.assert_array_equal(mine.counts, theirs.counts)


def test_reasons_are_counted_and_an_objective_without_a_number_is_one(case: Any, space: Space) -> None:
    reduction, _, designs = case
    reasons, values = Reasons(space), designs["values"].copy()
    values[1, 7:900:13], values[0, 5::400] = np.nan, np.inf
    state, marks, code = reduced(case, filters(reduction, np.full(len(values), 30) * OCTAVE), values=values)
    results = {o.name: values[k].astype(float) for k, o in enumerate(space.objectives)}
    expected, _ = reasons.add_non_finite(designs["code"], results)
    np.testing.assert_array_equal(np.asarray(code), np.where(designs["valid"], expected, -1))
    counts = np.asarray(state["reasons"]).reshape(reduction.reasons, -1)
    columns = {name: x[designs["valid"]] for name, x in space.at(designs["numbers"]).items()}
    assert reasons.named(counts) == reasons.counts(expected[designs["valid"]], columns)
    assert not np.asarray(marks)[expected != 0].any()


def dominates(one: np.ndarray, costs: np.ndarray) -> np.ndarray:
    return (one <= costs).all(axis=0) & (one < costs).any(axis=0)


def test_survivors_are_those_that_no_killer_nor_leader_dominates_and_the_best(case: Any, space: Space) -> None:
    reduction, _, designs = case
    signs = np.array([o.sign for o in space.objectives])
    feasible = designs["valid"] & (designs["code"] == 0)
    costs = (signs[:, None] * designs["values"]).astype(np.float32)
    rows = np.full((KILLERS, len(signs)), LARGEST, np.float32)
    rows[:3] = np.sort(costs[:, feasible], axis=1)[:, [3, 300, 900]].T
    best = [(np.full(TOP, np.inf), np.full(TOP, NONE)) for _ in signs]
    for one, column in zip(best, costs[:, feasible].astype(float), strict=True):
        keep_best(*one, np.ascontiguousarray(column), designs["numbers"][feasible])
    limits = reduction.limits(np.array([of[-1] for _, of in best]))
    last = np.array([cost[-1] for cost, _ in best], np.float32)
    wide = np.zeros(len(signs), np.int32)
    weights = np.eye(len(signs) + 1, len(signs), dtype=np.float32)
    changes = {"killers": rows, "weights": weights, "top_cost": last, "top_number": limits}
    _, marks, _ = reduced(case, filters(reduction, wide, clipped=np.ones(len(signs), bool), **changes))
    dominated = np.any([dominates(row, costs) for row in rows[:3, :, None]], axis=0)
    for part in (slice(start, start + ROW) for start in range(0, len(feasible), ROW)):
        inside = np.flatnonzero(feasible[part])
        for weight in weights:
            leader = inside[np.argmin(weight @ costs[:, part][:, inside])]
            dominated[part] |= dominates(costs[:, part][:, [leader]], costs[:, part])
    among = np.isin(designs["numbers"], np.concatenate([of for _, of in best]))
    np.testing.assert_array_equal(np.asarray(marks), feasible & (~dominated | among))


def test_of_equal_designs_the_first_of_the_grid_are_the_best(case: Any, space: Space) -> None:
    reduction, _, designs = case
    flat = np.ones_like(designs["values"])
    signs = np.array([o.sign for o in space.objectives], np.float32)
    limit = designs["numbers"][100]
    given = filters(
        reduction,
        np.zeros(len(flat)),
        top_cost=signs,
        top_number=reduction.limits(np.full(len(flat), limit)),
        clipped=np.ones(len(flat), bool),
    )
    _, marks, _ = reduced(case, given, values=flat)
    feasible = designs["valid"] & (designs["code"] == 0)
    np.testing.assert_array_equal(np.asarray(marks), feasible & (designs["numbers"] <= limit))


@pytest.mark.parametrize("n", [32, 96, 1024, 1000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_marks_are_put_together(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    marks, values, capacity = rng.random(n) < share, rng.random((2, n)).astype(np.float32), max(n // 4, 8)
    found = jax.jit(survivors, static_argnums=2)(marks, values, capacity)
    places = np.flatnonzero(marks)
    kept = places[:capacity]
    assert int(found.survived) == len(places)
    np.testing.assert_array_equal(np.asarray(found.place)[: len(kept)], kept)
    np.testing.assert_array_equal(np.asarray(found.values)[: len(kept)], values[:, kept].T)

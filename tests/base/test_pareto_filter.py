"""Fronts against brute force, with ties."""

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.base.pareto_filter import FrontBuilder, pareto_mask, spread


def brute_force(costs: np.ndarray) -> np.ndarray:
    """Which rows no other row dominates, by comparing all pairs."""
    better = (costs[:, None] <= costs[None]).all(axis=2) & (costs[:, None] < costs[None]).any(axis=2)
    return ~better.any(axis=0)


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
@pytest.mark.parametrize("levels", [5, 10_000])
def test_front_equals_brute_force(objectives: int, levels: int) -> None:
    costs = np.random.default_rng(objectives).integers(0, levels, (600, objectives)).astype(float)
    np.testing.assert_array_equal(pareto_mask(costs), brute_force(costs))


def test_equal_rows_are_all_kept() -> None:
    assert pareto_mask(np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 2.0]])).tolist() == [True, True, False]


def test_chunks_give_the_same_front() -> None:
    costs = np.random.default_rng(1).random((5000, 3)).round(2)
    front = FrontBuilder(3)
    for start in range(0, 5000, 700):
        front.add(costs[start : start + 700], np.arange(start, min(start + 700, 5000)))
    np.testing.assert_array_equal(front.index, np.flatnonzero(pareto_mask(costs)))


@pytest.mark.parametrize("objectives", [1, 2, 3])
@pytest.mark.parametrize("levels", [4, 300, 10**6])
def test_large_chunks_that_wander_give_the_same_front(objectives: int, levels: int) -> None:
    """Chunks that are thinned before the exact comparison, of another region each, and fronts of parts."""
    random = np.random.default_rng(levels)
    costs = random.integers(0, levels, (40_000, objectives)) / levels
    costs[:, 0] = np.round(costs[:, 0] / 8 + np.repeat(random.permutation(8), 5000) / 8, 6)
    whole, parts, killers = FrontBuilder(objectives), FrontBuilder(objectives), np.empty((0, objectives))
    for start in range(0, 40_000, 5000):
        here, part = slice(start, start + 5000), FrontBuilder(objectives)
        part.killers = killers
        for builder in (whole, part):
            builder.add(costs[here], np.arange(start, start + 5000))
        killers = part.killers
        parts.merge(part)
    expected = np.flatnonzero(pareto_mask(costs))
    np.testing.assert_array_equal(whole.index, expected)
    np.testing.assert_array_equal(parts.index, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_costs_of_any_type_that_cannot_be_written_to(dtype: type) -> None:
    costs = np.arange(12).reshape(12, 1).astype(dtype)
    costs.flags.writeable = False
    front = FrontBuilder(1)
    front.add(costs, np.arange(12))
    assert front.index.tolist() == [0]


def test_members_stand_in_the_order_of_their_numbers_with_their_own_costs() -> None:
    front = FrontBuilder(2)
    front.add(np.array([[1.0, 4.0], [3.0, 2.0]]), np.array([7, 2]))
    front.add(np.array([[2.0, 3.0]]), np.array([5]))
    index, costs = front.members
    assert index.tolist() == [2, 5, 7] and costs.tolist() == [[3.0, 2.0], [2.0, 3.0], [1.0, 4.0]]


def test_nan_is_refused_and_nothing_is_nothing() -> None:
    with pytest.raises(ValueError, match="NaN"):
        pareto_mask(np.array([[1.0, np.nan]]))
    assert len(pareto_mask(np.zeros((0, 2)))) == 0
    assert len(FrontBuilder(2).index) == 0


def test_spread_holds_the_best_of_each_objective() -> None:
    x = np.linspace(1, 2, 200)
    costs = np.stack([x, 1 / x], axis=1)
    chosen = spread(costs, 7)
    assert len(set(chosen.tolist())) == 7
    assert {0, 199} <= set(chosen.tolist())
    assert spread(costs, 500).tolist() == list(range(200))


def test_spread_does_not_depend_on_how_a_goal_is_written() -> None:
    time, area = np.geomspace(1, 100, 41), np.geomspace(100, 1, 41)
    least = np.stack([time, area], axis=1)  # min time, as max 1 / time
    assert spread(least, 5).tolist() == spread(np.stack([-1 / time, area], axis=1), 5).tolist() == [0, 10, 20, 30, 40]


def test_spread_names_no_row_twice() -> None:
    assert spread(np.ones((5, 1)), 3).tolist() == [0, 1, 2]
    assert len(set(spread(np.repeat(np.eye(2), 30, axis=0), 20).tolist())) == 20


@pytest.mark.parametrize("costs", [None, "front", [1.0, 2.0], np.zeros((2, 2, 2)), [[1.0], [1.0, 2.0]]])
def test_what_is_no_table_of_numbers_is_refused(costs):
    with pytest.raises(
        InputError, match=r"^costs = .* is not accepted; give an array of shape \(designs, objectives\)"
    ):
        pareto_mask(costs)

"""Killers: chosen one after the other, each the one that dominates most of what is left."""

import numpy as np
import pytest

from dse.grid.killers import chosen_killers


def dominated(row: np.ndarray, tests: np.ndarray) -> np.ndarray:
    return (row <= tests).all(axis=1) & (row < tests).any(axis=1)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_they_are_the_greedy_choice(objectives: int) -> None:
    rng = np.random.default_rng(objectives)
    costs = rng.integers(1, 40, (300, objectives)).astype(float)
    left = np.ones(len(costs), bool)
    for row in chosen_killers(costs, costs, 5):
        most = max(int(dominated(other, costs[left]).sum()) for other in costs)
        assert dominated(row, costs[left]).sum() == most > 0
        left &= ~dominated(row, costs)


def test_others_of_the_front_follow_where_nothing_is_left() -> None:
    costs = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [1.0, 2.0], [2.5, 0.5]])
    assert chosen_killers(costs, costs, 8).tolist() == [[1.0, 2.0], [2.0, 1.0], [2.5, 0.5]]
    assert chosen_killers(costs, costs, 1).tolist() == [[1.0, 2.0]]


def test_few_leave_little_of_many() -> None:
    costs = np.random.default_rng(3).random((20_000, 3))
    killers = chosen_killers(costs[:4000], costs[:4000], 32)
    assert len(killers) > 16
    assert np.any([dominated(row, costs) for row in killers], axis=0).mean() > 0.9

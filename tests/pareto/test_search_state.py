"""What a search knows: fronts, repeated designs and hypervolumes of small made-up batches."""

from typing import Any

import numpy as np
import pytest

from dse.pareto.search_state import SearchState, grid_of
from dse.space.space import Space, space_from_mapping


@pytest.fixture
def space(small: dict[str, Any]) -> Space:
    """Axes of numbers in order, of numbers in none, and of yes or no."""
    axes = {"sm_count": [96, 132, 144], "l2_mib": [50, 25, 60], "warpgroup_mma": [True, False], "dram_gb": [80, 40]}
    return space_from_mapping(small | {"timing": "roofline", "axes": axes, "links": {}}, "here", "small")


def batch(
    state: SearchState, index: list[int], costs: list[list[float]], violation: list[float] | None = None
) -> list[int]:
    """Tell a batch whose designs may all enter; return the positions that entered."""
    numbers = np.array(index)
    away = np.array(violation) if violation else np.zeros(len(index))
    return state.add(numbers, numbers, np.array(costs), away).tolist()


def test_an_axis_has_neighbours_where_its_numbers_stand_in_order(space: Space) -> None:
    grid = grid_of(space)
    assert [grid.lengths.tolist(), grid.ordered.tolist()] == [[3, 3, 2, 2], [True, False, False, True]]


def test_what_is_dominated_does_not_enter_and_what_dominates_pushes_out(space: Space) -> None:
    state = SearchState(space)
    assert batch(state, [1, 2, 3], [[1.0, 3.0, 1.0], [3.0, 1.0, 1.0], [3.0, 3.0, 1.0]]) == [0, 1]
    assert batch(state, [4], [[0.5, 2.0, 1.0]]) == [0]
    assert sorted(state.local.index.tolist()) == [2, 4]
    assert state.count == 4 and state.feasible


def test_a_design_that_is_on_the_front_enters_once(space: Space) -> None:
    state = SearchState(space)
    assert batch(state, [1, 1], [[1.0, 3.0, 1.0], [1.0, 3.0, 1.0]]) == [0]
    assert batch(state, [1], [[1.0, 3.0, 1.0]]) == []
    assert state.local.index.tolist() == [1]


def test_a_design_that_can_be_had_comes_before_any_that_cannot(space: Space) -> None:
    state = SearchState(space)
    batch(state, [1], [[0.0, 0.0, 0.0]], [2.0])
    assert not state.feasible and state.measured() == 0.0
    batch(state, [2], [[1.0, 1.0, 1.0]])
    assert state.feasible
    assert state.local.index.tolist() == [2]


def test_the_hypervolume_grows_with_the_front(space: Space) -> None:
    state = SearchState(space)
    batch(state, [1, 2], [[1.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
    before = state.measured()
    batch(state, [3], [[2.0, 2.0, 1.5]])
    between = state.measured()
    batch(state, [4], [[4.0, 4.0, 4.0]])
    assert 0 < before < between == state.measured()


def test_a_search_that_is_reported_the_same_knows_the_same(space: Space) -> None:
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 36, 8).tolist(), rng.uniform(1, 2, (8, 3)).tolist()) for _ in range(5)]
    one, other = SearchState(space), SearchState(space)
    for state in (one, other):
        for index, costs in batches:
            batch(state, index, costs)
    assert one.local.index.tolist() == other.local.index.tolist()
    assert one.measured() == other.measured()

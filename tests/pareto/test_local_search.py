"""Pareto local search on grids whose front is known."""

import numpy as np

from dse.base.pareto_filter import Box
from dse.pareto.fronts import front
from dse.pareto.local_search import LocalSearch, SearchGrid


def bowl(digits, lengths):
    """Three costs of digits: the distances from three corners of the first axes, and a penalty on all others."""
    x = digits / np.maximum(lengths - 1, 1)
    rest = 1 + (np.abs(x[:, 2:] - 0.5)).sum(axis=1)
    return np.column_stack([rest * (1 + x[:, 0]), rest * (2 - x[:, 0] + x[:, 1]), rest * (3 - 2 * x[:, 1])])


def run(grid, count, generations, seed, costs=bowl, violated=None):
    """Search and return the state, and what was evaluated."""
    state, batches = LocalSearch(grid), []
    for generation in range(generations):
        index = state.ask(count, np.random.default_rng([seed, generation]))
        if len(index) == 0:
            break
        batches.append(index)
        values = costs(grid.digits(index), grid.lengths)
        violation = np.zeros(len(index)) if violated is None else violated(grid.digits(index))
        state.tell(index, values, violation)
    return state, batches


def test_a_hundredth_of_a_grid_holds_nearly_all_of_its_front():
    grid = SearchGrid(np.array([21, 21, 11, 11, 5]), np.ones(5, bool))
    every = bowl(grid.digits(np.arange(grid.size)), grid.lengths)
    true = every[front(every)]
    box = Box.of(true)
    for seed in range(3):
        state, batches = run(grid, 100, grid.size // 10_000, seed)
        assert sum(map(len, batches)) <= grid.size // 100
        assert box.hypervolume(state.costs) > 0.99 * box.hypervolume(true)


def test_no_design_is_asked_twice_and_small_grids_are_asked_whole():
    grid = SearchGrid(np.array([4, 3, 5, 1]), np.array([True, False, True, True]))
    state, batches = run(grid, 16, 50, 0)
    designs = np.concatenate(batches)
    assert sorted(designs.tolist()) == list(range(60))
    assert np.sort(state.index).tolist() == front(bowl(grid.digits(np.arange(60)), grid.lengths)).tolist()


def test_the_same_seed_asks_the_same_and_another_seed_does_not():
    grid = SearchGrid(np.array([50, 50, 50, 50]), np.ones(4, bool))
    first, second, third = (np.concatenate(run(grid, 64, 6, seed)[1]) for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_a_violation_shrinks_step_by_step():
    grid = SearchGrid(np.array([101] * 6), np.ones(6, bool))

    def distance(digits):
        return np.maximum(0, 90 - digits).sum(axis=1) / 90.0  # one in 8e5 random designs misses nothing

    state, batches = run(grid, 100, 60, 0, violated=distance)
    assert (distance(grid.digits(batches[0])) > 0).all()
    assert (state.violation == 0).all()
    assert (grid.digits(state.index) >= 90).all()


def test_grids_of_more_designs_than_marks():
    grid = SearchGrid(np.array([1000] * 5), np.ones(5, bool))
    _, batches = run(grid, 200, 10, 0)
    designs = np.concatenate(batches)
    assert len(np.unique(designs)) == len(designs) == 2000
    assert designs.max() > 2**40
    assert np.array_equal(grid.index(grid.digits(designs)), designs)

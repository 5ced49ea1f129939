"""Fronts, hypervolume, knees and thinning against definitions written out."""

import numpy as np
import pytest

from dse.base.pareto_filter import Box
from dse.pareto.fronts import front, knees, thin, thin_to


def dominated(costs):
    """Which rows another row dominates, by the definition."""
    no_worse = (costs[None] <= costs[:, None]).all(axis=2)
    better = (costs[None] < costs[:, None]).any(axis=2)
    return (no_worse & better).any(axis=1)


def sphere(count, objectives, seed=0):
    """Points that bulge toward the origin, none of which dominates another, as positive costs."""
    x = np.abs(np.random.default_rng(seed).normal(size=(count, objectives)))
    return np.exp(1.0 - x / np.linalg.norm(x, axis=1)[:, None])


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_the_front_is_the_definition_s_with_ties(objectives):
    costs = np.random.default_rng(objectives).integers(1, 9, (600, objectives)).astype(float)
    assert len(np.unique(costs, axis=0)) < len(costs)
    assert front(costs).tolist() == np.flatnonzero(~dominated(costs)).tolist()


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_the_front_of_many_chunks_is_the_planted_one(objectives):
    planted = sphere(2000, objectives)
    random = np.random.default_rng(1)
    worse = planted[random.integers(2000, size=300_000)] * random.uniform(1.001, 2.0, (300_000, objectives))
    costs = np.vstack([worse, planted])
    order = random.permutation(len(costs))
    assert np.array_equal(np.sort(order[front(costs[order])]), np.arange(300_000, 302_000))


def test_the_front_refuses_nan():
    with pytest.raises(ValueError, match="NaN"):
        front(np.array([[1.0, np.nan], [1.0, 2.0]]))


def test_hypervolume_of_two_points_by_hand():
    box = Box.of(np.array([[1.0, np.e], [np.e, 1.0]]))
    assert box(np.array([[1.0, np.e], [np.e, 1.0]])).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    # Two slabs of 1.1 x 0.1, of which the corner of 0.1 x 0.1 is common.
    assert box.hypervolume(np.array([[1.0, np.e], [np.e, 1.0]])) == pytest.approx(2 * 1.1 * 0.1 - 0.01)
    assert box.hypervolume(np.array([[1.0, 1.0]])) == pytest.approx(1.21)
    assert box.hypervolume(np.array([[20.0, 20.0]])) == 0.0


def test_hypervolume_in_three_objectives_agrees_with_counting_random_points():
    costs = sphere(200, 3)
    box = Box.of(costs)
    points = box(costs)
    draws = np.random.default_rng(2).uniform(0.0, 1.1, (100_000, 3))
    share = np.mean([(points <= draw).all(axis=1).any() for draw in draws])
    assert box.hypervolume(costs) == pytest.approx(share * 1.1**3, rel=0.01)


def test_an_objective_that_is_maximised_keeps_its_order_in_the_box():
    costs = np.array([[-4.0, 1.0], [-2.0, 0.5], [-1.0, 0.25]])
    points = Box.of(costs)(costs)
    assert points[:, 0].tolist() == [0.0, 0.5, 1.0]
    assert points[:, 1].tolist() == [1.0, 0.5, 0.0]


def test_the_knee_of_a_bend_is_its_corner():
    arm = np.linspace(0.0, 1.0, 50)
    costs = np.exp(
        np.vstack(
            [np.column_stack([0.1 * arm, 1 - 0.9 * arm]), np.column_stack([0.1 + 0.9 * arm[1:], 0.1 - 0.1 * arm[1:]])]
        )
    )
    sharpest = knees(costs)
    assert np.log(costs[sharpest[0]]) == pytest.approx([0.1, 0.1])
    assert len(sharpest) == 1


def test_a_straight_front_has_no_knee():
    x = np.linspace(0.0, 1.0, 30)
    assert len(knees(np.exp(np.column_stack([x, 1 - x])))) == 0
    assert len(knees(np.empty((0, 2)))) == 0


@pytest.mark.parametrize("objectives", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_a_thinned_front_stands_for_all_of_it(objectives, epsilon):
    costs = sphere(5000, objectives)
    thinned = thin(costs, epsilon)
    points = Box.of(costs)(costs)
    excess = (points[thinned][None] - points[:, None]).max(axis=2).min(axis=1)
    assert excess.max() <= epsilon * (1 + 1e-9)
    assert len(thinned) < len(costs)
    assert set(points.argmin(axis=0)) <= set(thinned)


def test_thinning_to_a_number_keeps_no_more_and_nearly_as_many():
    costs = sphere(20_000, 3)
    thinned = thin_to(costs, 300)
    assert 150 <= len(thinned) <= 300
    assert thin_to(costs[:10], 300).tolist() == list(range(10))

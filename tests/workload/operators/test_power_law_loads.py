"""Loads by a power law against the same steps taken one pair at a time."""

import numpy as np
import pytest

from dse.workload.operators.power_law_loads import DRAWS, _raised, power_law_loads

SHAPES = [(1, 256, 8, 4, 1.2), (4, 256, 8, 32, 1.01), (384, 8, 2, 2, 1.2), (96, 64, 22, 4, 1.0), (80, 8, 2, 8, 1.01)]


@pytest.mark.parametrize("shape", SHAPES)
def test_loads_are_whole_bounded_and_no_rank_has_more(shape):
    tokens, experts, chosen, ranks, _ = shape
    loads = power_law_loads(*shape)
    assert loads.rows.shape == (DRAWS, experts // ranks)
    assert (loads.rows == np.round(loads.rows)).all() and loads.rows.min() >= 0 and loads.rows.max() <= tokens
    assert (loads.rows.sum(axis=1) >= tokens * chosen / ranks).all()  # the busiest has the mean at least
    assert (loads.met <= np.minimum(tokens, loads.rows.sum(axis=1))).all()
    assert (loads.met >= loads.rows.max(axis=1)).all()


def test_few_pairs_are_handed_to_every_rank_in_turn():
    """One token to eight of 256 experts on four ranks: two each, where rounding left none."""
    loads = power_law_loads(1, 256, 8, 4, 1.2)
    assert (loads.rows.sum(axis=1) == 2).all()
    assert (loads.met == 1).all()


def test_one_rank_has_all_pairs():
    loads = power_law_loads(1000, 128, 8, 1, 1.2)
    assert (loads.rows.sum(axis=1) == 8000).all()
    assert (loads.met == 1000).all()


def test_pairs_are_added_as_one_by_one():
    random = np.random.default_rng(3)
    loads, more = random.integers(0, 9, (5, 3, 7)), random.integers(0, 30, (5, 3))
    expected = loads.copy()
    for i in range(5):
        for j in range(3):
            for _ in range(more[i, j]):
                able = np.flatnonzero(expected[i, j] < 9)
                if len(able):
                    expected[i, j, able[expected[i, j, able].argmin()]] += 1
    found = _raised(loads, more, 9)
    assert (np.sort(found, axis=-1) == np.sort(expected, axis=-1)).all()

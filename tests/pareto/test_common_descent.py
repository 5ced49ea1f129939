"""Directions that lower several objectives at once, by hand and on random rows."""

import numpy as np
import pytest

from dse.pareto.common_descent import common_descent


def test_a_common_descent_lowers_every_row_and_stays_in_the_box():
    random = np.random.default_rng(1)
    rows = random.normal(size=(500, 3, 5))
    places = random.choice([0.0, 0.5, 1.0], (500, 5), p=[0.2, 0.6, 0.2])
    counted = np.ones((500, 3), bool)
    direction = common_descent(rows, counted, places)
    along = np.einsum("pra,pa->pr", rows, direction)
    assert (along <= 0).all()
    some = np.abs(direction).max(axis=1) > 0
    assert 0.5 < some.mean() < 1
    assert (along[some] < 0).all()
    assert not ((places == 0) & (direction < 0)).any()
    assert not ((places == 1) & (direction > 0)).any()


def test_opposed_rows_have_no_common_descent():
    rows = np.asarray([[[1.0, 2.0], [-2.0, -4.0]], [[1.0, 0.0], [0.0, 0.0]]])
    direction = common_descent(rows, np.ones((2, 2), bool), np.full((2, 2), 0.5))
    assert direction[0] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert direction[1].tolist() == [-1.0, 0.0]  # a flat row has nothing to say


def test_a_row_that_does_not_count_flattens_no_other():
    rows = np.asarray([[[1.0, 0.0], [1e31, 0.0]]])
    direction = common_descent(rows, np.asarray([[True, False]]), np.full((1, 2), 0.5))
    assert direction[0].tolist() == [-1.0, 0.0]

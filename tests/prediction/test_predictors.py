"""Every predictor: laws it must find, constraints it must keep, and its record against the library that fitted it."""

import numpy as np
import pytest

from dse.prediction.linear import LINEAR, p_values
from dse.prediction.merits import merits, random_folds
from dse.prediction.nonlinear import TREES
from dse.prediction.predictors import PREDICTORS, Rows, fit, left_out, rank_features
from tests.prediction.laws import NOISY, TRUTH, X


@pytest.mark.parametrize("name", LINEAR)
def test_linear_predictors_find_a_linear_law(name):
    exact = fit(name, Rows(X, TRUTH)).many(X)
    assert np.abs(exact / TRUTH - 1).mean() < 0.02
    predicted, _ = left_out(name, NOISY, random_folds(160))
    assert merits(predicted, NOISY.y)["error"] < 4.0


@pytest.mark.parametrize("name", ["forest", "network"])
def test_non_linear_predictors_come_near_it(name):
    predicted, trees = left_out(name, NOISY, random_folds(160, 3))
    assert merits(predicted, NOISY.y)["error"] < 25
    assert (trees in TREES) == (name == "forest")


@pytest.mark.parametrize("name", PREDICTORS)
def test_residual_learning_finds_a_factor(name):
    """Costs of 1.7 times what the model says: the factor is learned, whatever the features."""
    analytical = X.sum(axis=1)
    rows = Rows(np.column_stack([X, analytical]), 1.7 * analytical)
    assert np.abs(fit(name, rows, residual=True).many(rows.x) / rows.y - 1).max() < 0.02


def test_a_feature_that_never_varied_gets_no_coefficient():
    rows = Rows(np.column_stack([X, np.full(160, 1410.0)]), TRUTH)
    predicted = fit("ols", rows)
    assert float(predicted.response.coefficients[-1]) == 0.0  # pyright: ignore
    other_clock = rows.x.copy()
    other_clock[:, -1] = 1980.0
    assert np.array_equal(predicted.many(other_clock), predicted.many(rows.x))


def test_features_are_ranked():
    assert (p_values(*NOISY)[:2] < 0.05).all()
    names = [row["feature"] for row in rank_features(NOISY, ("a", "b", "c", "d"))]
    assert names[0] == "a"
    assert set(names) == {"a", "b", "c", "d"}


def test_predictions_are_finite_and_positive_far_outside():
    far = np.vstack([np.zeros(4), np.full(4, 1e12), X[0] * [1, 1, 1, 1e6]])
    for name in PREDICTORS:
        predicted = fit(name, NOISY, trees=8).many(far)
        assert np.isfinite(predicted).all() and (predicted > 0).all(), name

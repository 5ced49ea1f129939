"""Every predictor: laws it must find, constraints it must keep, and its record against the library that fitted it."""

from itertools import combinations

import numpy as np
import pytest

from dse.measured.fitted_roofline import CalibratedRoofline, fit_roofline, mean_roofline
from dse.prediction.linear import LINEAR, Relative, non_negative, ordinary, p_values, stepwise
from dse.prediction.merits import group_folds, inlier_ratio, merits, random_folds, size_folds, splits
from dse.prediction.nonlinear import TINY, TREES, forest_record, grown, predictions_by_trees
from dse.prediction.predictors import PREDICTORS, FittedPredictor, Rows, fit, left_out, rank_features

RNG = np.random.default_rng(1)
X = np.exp(RNG.uniform(np.log(1e3), np.log(1e6), (160, 4)))
TRUTH = 5000 + X @ [1.2, 0.4, 0.0, 0.0]
NOISY = Rows(X, TRUTH * np.exp(0.03 * RNG.standard_normal(160)))


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


def test_non_negative_coefficients_and_intercept():
    rows = Relative.of(X, X @ [1.0, 1.0, 0.0, -0.0005] - 500)
    assert ordinary(rows).min() < 0
    assert non_negative(rows).min() >= 0
    for name in (n for n in LINEAR if "nnls" in n or "non-negative" in n):
        assert np.min(LINEAR[name](rows)) >= 0, name


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_stepwise_keeps_what_matters(forward, criterion, positive):
    """The chosen set has the least criterion of all sets, which four features allow to try."""
    from dse.prediction.linear import _criterion

    rows = Relative.of(*NOISY)
    chosen = set(np.flatnonzero(stepwise(forward, criterion, positive)(rows))) - {0}
    assert {1, 2} <= chosen
    every = [list(c) for size in range(5) for c in combinations(range(1, 5), size)]
    best = min(_criterion(rows, kept, criterion, positive) for kept in every)
    assert _criterion(rows, sorted(chosen), criterion, positive) == pytest.approx(best)


def test_criterion_is_statsmodels():
    import statsmodels.api as sm

    from dse.prediction.linear import _criterion

    rows = Relative.of(*NOISY)
    fitted = sm.OLS(rows.ones, rows.columns[:, [0, 1, 2]]).fit()
    assert _criterion(rows, [1, 2], "aic", False) == pytest.approx(fitted.aic)
    assert _criterion(rows, [1, 2], "bic", False) == pytest.approx(fitted.bic)


def test_a_feature_that_never_varied_gets_no_coefficient():
    rows = Rows(np.column_stack([X, np.full(160, 1410.0)]), TRUTH)
    found = fit("ols", rows)
    assert float(found.response.coefficients[-1]) == 0.0  # pyright: ignore
    other_clock = rows.x.copy()
    other_clock[:, -1] = 1980.0
    assert np.array_equal(found.many(other_clock), found.many(rows.x))


def test_features_are_ranked():
    assert (p_values(*NOISY)[:2] < 0.05).all()
    names = [row["feature"] for row in rank_features(NOISY, ("a", "b", "c", "d"))]
    assert names[0] == "a"
    assert set(names) == {"a", "b", "c", "d"}


def test_the_forest_record_is_scikit_learns():
    forest = grown(X, TRUTH, 16)
    record = FittedPredictor(forest_record(forest), False).many(X)
    assert np.allclose(record, np.exp(forest.predict(np.log(X + TINY))), rtol=1e-4)
    assert np.allclose(predictions_by_trees(forest, X)[16], record, rtol=1e-4)


def test_predictions_are_finite_and_positive_far_outside():
    far = np.vstack([np.zeros(4), np.full(4, 1e12), X[0] * [1, 1, 1, 1e6]])
    for name in PREDICTORS:
        found = fit(name, NOISY, trees=8).many(far)
        assert np.isfinite(found).all() and (found > 0).all(), name


def test_merits_by_hand():
    found = merits(np.array([110.0, 80.0, 300.0]), np.array([100.0, 100.0, 300.0]))
    assert found["error"] == pytest.approx(10.0)
    assert found["inliers"]["10"] == pytest.approx(200 / 3)
    assert found["inliers"]["20"] == pytest.approx(100)
    assert list(found["inliers"]) == ["1", "5", "10", "15", "20", "30", "40", "50"]
    assert found["bias"] == pytest.approx((1.1 * 0.8) ** (1 / 3))
    assert merits(np.ones(3), np.arange(1.0, 4))["spearman"] == 0.0
    assert inlier_ratio(np.array([1.0, 1.0001]), 1) == 50


def test_folds_leave_groups_and_sizes_out_whole():
    groups = np.array(list("aabbccddeeff"))
    fold = group_folds(groups, 3)
    assert all(len(set(fold[groups == g])) == 1 for g in "abcdef")
    assert len(set(fold)) == 3
    sizes = np.arange(100.0)[::-1]
    assert all(np.ptp(sizes[out]) == 19 for _, out in splits(size_folds(sizes)))
    assert sorted(np.concatenate([out for _, out in splits(random_folds(25))])) == list(range(25))


def test_a_calibrated_roofline_is_found_again():
    truth = CalibratedRoofline(4000.0, 0.7, 0.85)
    arithmetic, memory = X[:, 0], X[:, 1]
    found = fit_roofline(arithmetic, memory, truth(arithmetic, memory))
    assert found == pytest.approx(truth, rel=1e-3)
    assert mean_roofline([truth, CalibratedRoofline(1000.0, 0.7, 0.85)]).overhead == pytest.approx(2000)

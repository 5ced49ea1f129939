"""Linear predictors: constraints that they keep, and the choice of features against all sets."""

from itertools import combinations

import numpy as np
import pytest

from dse.prediction.linear import LINEAR, Relative, non_negative, ordinary, stepwise
from tests.prediction.laws import NOISY, X


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
    selected = set(np.flatnonzero(stepwise(forward, criterion, positive)(rows))) - {0}
    assert {1, 2} <= selected
    every = [list(c) for size in range(5) for c in combinations(range(1, 5), size)]
    best = min(_criterion(rows, subset, criterion, positive) for subset in every)
    assert _criterion(rows, sorted(selected), criterion, positive) == pytest.approx(best)


def test_criterion_is_statsmodels():
    import statsmodels.api as sm

    from dse.prediction.linear import _criterion

    rows = Relative.of(*NOISY)
    fitted = sm.OLS(rows.ones, rows.columns[:, [0, 1, 2]]).fit()
    assert _criterion(rows, [1, 2], "aic", False) == pytest.approx(fitted.aic)
    assert _criterion(rows, [1, 2], "bic", False) == pytest.approx(fitted.bic)

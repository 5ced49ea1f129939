"""Linear predictors: cycles are a sum of features with coefficients; all minimise relative errors.

Rows are divided by what was measured before the fit, so that least squares are squares of relative errors: measured
times span five decades, and squares of cycles would see the longest kernels only. Least squares with or without
constraints are SciPy's and statsmodels', Lasso, elastic net and elimination scikit-learn's; the stepwise selection is
O'Neal's, a few lines of ours on statsmodels.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import nnls

from dse.base.extras import extra

ELASTIC_NET_L1 = 1.0 / 3.0
"""scikit-learn's mixing that weighs b^2 and |b| equally, as the dissertation does: it halves the squares."""

FREE = 1e3
"""The intercept's column is scaled up by this, so that a penalty hardly touches it."""

FOLDS = 5
"""Inner folds that choose a penalty or the number of features."""


class Linear(eqx.Module):
    """b_0 + sum of b_i x_i [cycle], not below ``floor``; ``coefficients`` (1 + features,), the intercept first."""

    coefficients: Array
    floor: Array

    def __call__(self, x: Array) -> Array:
        """Return the prediction of one row of features, shape (features,)."""
        return jnp.maximum(self.coefficients[0] + jnp.dot(x, self.coefficients[1:]), self.floor)


class Relative(NamedTuple):
    """Rows for relative least squares: columns [1, x] over y, each column scaled to unit root mean square."""

    columns: np.ndarray
    scale: np.ndarray
    ones: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> "Relative":
        """Divide rows by what was measured.

        A feature that never varied cannot be told from the intercept and gets no coefficient.
        """
        varied = np.ptp(x, axis=0) > 1e-9 * np.abs(x).max(axis=0)
        columns = np.column_stack([np.ones(len(y)), np.where(varied, x, 0.0)]) / y[:, None]
        scale = np.sqrt(np.mean(columns**2, axis=0))
        scale[scale == 0] = 1.0
        return cls(columns / scale, scale, np.ones(len(y)))


Solve = Callable[[Relative], np.ndarray]


def fit_linear(solve: Solve, x: np.ndarray, y: np.ndarray) -> Linear:
    """Return the linear predictor that ``solve`` finds; ``x`` (rows, features), ``y`` (rows,) positive.

    Predictions are kept above a tenth of the smallest measurement: with negative coefficients a sum can be negative.
    """
    rows = Relative.of(x, y)
    coefficients = solve(rows) / rows.scale
    return Linear(jnp.asarray(coefficients), jnp.asarray(0.1 * y.min()))


def ordinary(rows: Relative) -> np.ndarray:
    """Least squares."""
    return np.linalg.lstsq(rows.columns, rows.ones, rcond=None)[0]


def non_negative(rows: Relative) -> np.ndarray:
    """Least squares with coefficients, the intercept's too, that are not negative."""
    return nnls(rows.columns, rows.ones)[0]


def stepwise(forward: bool, criterion: str, positive: bool) -> Solve:
    """Return the selection that adds (or removes) the feature that lowers AIC or BIC most, until none does."""

    def solve(rows: Relative) -> np.ndarray:
        every = list(range(1, rows.columns.shape[1]))
        selected: list[int] = [] if forward else every
        best = _criterion(rows, selected, criterion, positive)
        while True:
            candidates = [c for c in every if c not in selected] if forward else selected
            tried = {c: [*selected, c] if forward else [k for k in selected if k != c] for c in candidates}
            scores = {c: _criterion(rows, trial, criterion, positive) for c, trial in tried.items()}
            if not scores or min(scores.values()) >= best:
                return _solved(rows, selected, positive)
            step = min(scores, key=lambda c: scores[c])
            selected, best = tried[step], scores[step]

    return solve


def _criterion(rows: Relative, selected: list[int], criterion: str, positive: bool) -> float:
    """Return the AIC or BIC of a fit with an intercept and the chosen columns, by statsmodels."""
    with extra("predict", "a choice of features"):
        from statsmodels.tools.eval_measures import aic, bic

    columns = rows.columns[:, [0, *selected]]
    residual = rows.ones - columns @ _solved(rows, selected, positive)[[0, *selected]]
    n = len(residual)
    likelihood = -n / 2 * (np.log(2 * np.pi * max(np.mean(residual**2), 1e-300)) + 1)
    return float((aic if criterion == "aic" else bic)(likelihood, n, columns.shape[1]))


def _solved(rows: Relative, selected: list[int], positive: bool) -> np.ndarray:
    """Return the coefficients of all columns, 0 for those not chosen."""
    used = [0, *selected]
    part = Relative(rows.columns[:, used], rows.scale[used], rows.ones)
    coefficients = np.zeros(rows.columns.shape[1])
    coefficients[used] = non_negative(part) if positive else ordinary(part)
    return coefficients


def eliminated(positive: bool) -> Solve:
    """Return recursive feature elimination: the smallest coefficient goes first, folds choose how many stay."""

    def solve(rows: Relative) -> np.ndarray:
        with extra("predict", "a choice of features"):
            from sklearn.feature_selection import RFECV
            from sklearn.linear_model import LinearRegression
            from sklearn.model_selection import KFold

        folds = KFold(FOLDS, shuffle=True, random_state=0)
        model = LinearRegression(fit_intercept=False, positive=positive)
        search = RFECV(model, cv=folds, scoring="neg_mean_absolute_error", min_features_to_select=1)
        search.fit(rows.columns, rows.ones)
        return _solved(rows, [c for c in np.flatnonzero(search.support_).tolist() if c], positive)

    return solve


def penalised(l1_ratio: float, positive: bool) -> Solve:
    """Return Lasso (``l1_ratio`` 1) or elastic net, the penalty chosen by folds."""

    def solve(rows: Relative) -> np.ndarray:
        with extra("predict", "a penalised fit"):
            from sklearn.exceptions import ConvergenceWarning
            from sklearn.linear_model import ElasticNetCV
            from sklearn.model_selection import KFold

        columns = rows.columns * np.where(np.arange(rows.columns.shape[1]) == 0, FREE, 1.0)
        folds = KFold(FOLDS, shuffle=True, random_state=0)
        model = ElasticNetCV(
            l1_ratio=l1_ratio,
            alphas=np.geomspace(1e-1, 1e-5, 20),
            cv=folds,
            fit_intercept=False,
            positive=positive,
            max_iter=2000,
            tol=1e-3,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the smallest penalties of the path are least squares
            coefficients = np.array(model.fit(columns, rows.ones).coef_)
        coefficients[0] *= FREE
        return coefficients

    return solve


def p_values(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the p-value of every feature in relative least squares (statsmodels' OLS), 1 for a column of zeros."""
    with extra("predict", "a p-value"):
        import statsmodels.api as sm

    rows = Relative.of(x, y)
    used = np.flatnonzero(np.any(rows.columns != 0, axis=0))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear features share a coefficient; their p-values are then of no use
        fitted = sm.OLS(rows.ones, rows.columns[:, used]).fit().pvalues
    p = np.ones(rows.columns.shape[1])
    p[used] = np.nan_to_num(fitted, nan=1.0)
    return p[1:]


LINEAR: dict[str, Solve] = (
    {"ols": ordinary}
    | {
        f"ols/{'forward' if f else 'backward'}/{c}": stepwise(f, c, False)
        for f in (True, False)
        for c in ("aic", "bic")
    }
    | {"ols/rfe": eliminated(False), "nnls": non_negative}
    | {
        f"nnls/{'forward' if f else 'backward'}/{c}": stepwise(f, c, True)
        for f in (True, False)
        for c in ("aic", "bic")
    }
    | {
        "nnls/rfe": eliminated(True),
        "lasso": penalised(1.0, False),
        "elastic_net": penalised(ELASTIC_NET_L1, False),
        "lasso/non-negative": penalised(1.0, True),
        "elastic_net/non-negative": penalised(ELASTIC_NET_L1, True),
    }
)
"""Name -> function that fits its coefficients."""

"""All predictors by name: fitted on rows of features and costs, each a record that predicts one row."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dse.evaluate.batching import over_arrays
from dse.prediction.linear import LINEAR, Linear, fit_linear, p_values
from dse.prediction.merits import percentage_errors, splits
from dse.prediction.nonlinear import Forest, Perceptron, fit_network, forest_record, grown, predictions_by_trees

PREDICTORS = (*LINEAR, "forest", "network")
"""Names of the dissertation's three ensembles together, simplest first."""

PADDING = 512
"""Rows are predicted in multiples of so many."""

Response = Linear | Forest | Perceptron


class FittedPredictor(eqx.Module):
    """A predictor of cycles from features [cycle].

    With ``residual`` it predicts a factor on the last feature, the analytical cycles; a linear one then sees every
    other feature as a share of it.
    """

    response: Response
    residual: bool = eqx.field(static=True)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the cycles of one row, shape (features,)."""
        if not self.residual:
            return self.response(x)
        share = x[:-1] / x[-1] if isinstance(self.response, Linear) else x
        return x[-1] * self.response(share)

    def many(self, x: np.ndarray) -> np.ndarray:
        """Return the cycles of rows (rows, features)."""
        padded = np.pad(x, ((0, -len(x) % PADDING), (0, 0)), mode="edge")  # few shapes, so few compilations
        return np.asarray(_many(self, jnp.asarray(padded)), dtype=float)[: len(x)]


@eqx.filter_jit
def _many(fitted: FittedPredictor, x: jax.Array) -> jax.Array:
    return over_arrays(lambda *row: fitted(jnp.stack(row)), *x.T)


class Rows(NamedTuple):
    """Rows to learn from: ``x`` (rows, features) and ``y`` (rows,) [cycle]."""

    x: np.ndarray
    y: np.ndarray

    def take(self, places: np.ndarray) -> "Rows":
        """Return the rows at some places."""
        return Rows(self.x[places], self.y[places])

    def prepared(self, residual: bool, linear: bool) -> "Rows":
        """Return the rows that the response is fitted on (see :class:`FittedPredictor`)."""
        if not residual:
            return self
        analytical = self.x[:, -1:]
        return Rows(self.x[:, :-1] / analytical if linear else self.x, self.y / analytical[:, 0])


def fit(name: str, rows: Rows, residual: bool = False, trees: int = 128) -> FittedPredictor:
    """Return a fitted predictor; ``trees`` are a forest's. See PREDICTORS for the names.

    Worked example, cycles that are a launch and two sums of bytes::

        import numpy as np
        from dse.prediction.predictors import Rows, fit

        x = np.random.default_rng(0).uniform(1e3, 1e6, (100, 2))
        found = fit("nnls", Rows(x, 5000 + x @ [1.2, 0.4]))
        print(found.response.coefficients)      # 5000, 1.2, 0.4
    """
    rows = rows.prepared(residual, name in LINEAR)
    if name in LINEAR:
        return FittedPredictor(fit_linear(LINEAR[name], *rows), residual)
    if name == "forest":
        return FittedPredictor(forest_record(grown(*rows, trees)), residual)
    return FittedPredictor(fit_network(*rows), residual)


def left_out(name: str, rows: Rows, fold: np.ndarray, residual: bool = False, trees: int = 0) -> tuple[np.ndarray, int]:
    """Return every row's prediction [cycle] by the fit that has not seen its fold, and a forest's number of trees.

    Unless ``trees`` is given, that is the power of two with the least mean error over all folds (E_out); 0 for other
    predictors.
    """
    if name == "forest" and not trees:
        return _left_out_forest(rows, fold, residual)
    predicted = np.zeros(len(rows.y))
    for training, out in splits(fold):
        predicted[out] = fit(name, rows.take(training), residual, trees).many(rows.x[out])
    return predicted, trees


def _left_out_forest(rows: Rows, fold: np.ndarray, residual: bool) -> tuple[np.ndarray, int]:
    prepared = rows.prepared(residual, linear=False)
    offset = rows.x[:, -1] if residual else np.ones(len(rows.y))
    by_trees: dict[int, np.ndarray] = {}
    for training, out in splits(fold):
        forest = grown(prepared.x[training], prepared.y[training])
        for trees, answer in predictions_by_trees(forest, prepared.x[out]).items():
            by_trees.setdefault(trees, np.zeros(len(rows.y)))[out] = answer * offset[out]
    errors = {trees: percentage_errors(answer, rows.y).mean() for trees, answer in by_trees.items()}
    best = min(errors, key=lambda trees: errors[trees])
    return by_trees[best], best


def rank_features(rows: Rows, names: tuple[str, ...]) -> list[dict[str, float | str]]:
    """Return the features, most important first: share of a forest's decrease in squares, p-value of least squares."""
    importance = grown(*rows, 64).feature_importances_
    ranked = zip(names, importance, p_values(*rows), strict=True)
    rows_of_features: list[dict[str, float | str]] = [
        {"feature": n, "forest": float(f), "p_value": float(p)} for n, f, p in ranked
    ]
    return sorted(rows_of_features, key=lambda row: -float(row["forest"]))

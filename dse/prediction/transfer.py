"""Transfer from some rows to others: predictors fitted on the first, scored by folds there and on the second."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dse.prediction.baselines import Baseline, Calibrated, baselines
from dse.prediction.features import MODES
from dse.prediction.learning_rows import LearningRows
from dse.prediction.merits import group_folds, merits, percentage_errors, random_folds, size_folds
from dse.prediction.predictors import PREDICTORS, FittedPredictor, fit, left_out, rank_features
from dse.prediction.quantities import TIME, Response

MOST_FOLD_ROWS = 600
"""Rows on which folds are fitted: enough for eight coefficients, and a forest of 1024 trees in a second."""

MOST_ROWS = 3000
"""Rows on which the final predictor is fitted."""

MIN_ROWS = 20
"""Fewer rows are not learned from."""


class ScoredPredictor(NamedTuple):
    """A predictor in a mode, fitted, with its errors."""

    name: str
    mode: str
    e_out: dict[str, Any]  # merits under random folds
    e_family: float  # mean error with shape families left out [%]
    e_transfer: float  # mean error with devices left out, or of one device blocks of sizes [%]
    target: dict[str, Any]  # merits on the target's rows
    errors: np.ndarray  # (target's rows,) [%]
    fitted: FittedPredictor
    trees: int  # of a forest, else 0
    fit_seconds: float  # [s]

    def document(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {
            "predictor": self.name,
            "mode": self.mode,
            "e_out": self.e_out["error"],
            "e_out_inliers": self.e_out["inliers"],
            "e_out_families": self.e_family,
            "e_out_transfer": self.e_transfer,
            "target": self.target,
            "trees": self.trees or None,
            "fit_seconds": round(self.fit_seconds, 4),
        }


@dataclass(frozen=True)
class Transfer:
    """All predictors learned on ``train`` with their errors on ``test``."""

    train: LearningRows
    test: LearningRows
    scored: tuple[ScoredPredictor, ...]
    baselines: tuple[Baseline, ...]
    ranking: dict[str, list[dict[str, Any]]]

    @property
    def chosen(self) -> ScoredPredictor:
        """The predictor with the least error on devices, or blocks of sizes, that were left out of training."""
        return min(self.scored, key=lambda j: (j.e_transfer, j.e_out["error"]))

    @property
    def least_e_out(self) -> ScoredPredictor:
        """The predictor with the least E_out under random folds: the dissertation's choice."""
        return min(self.scored, key=lambda j: j.e_out["error"])

    @property
    def hindsight(self) -> ScoredPredictor:
        """The predictor with the least error on the target, which nobody can know beforehand."""
        return min(self.scored, key=lambda j: j.target["error"])


SAME_IN_RESIDUAL_MODE = ("ols", "nnls")
"""Predictors that are the same with the analytical cycles as a feature and in residual mode, but for rounding: over
what was measured, both have the columns 1, demands and analytical cycles (a launch among the demands is constant), and
nothing selects or weighs them. Loads of watts have no constant among them where boards differ."""


def predictor_modes(names: tuple[str, ...], quantity: Response = TIME) -> list[tuple[str, str]]:
    """Return the predictors with the modes to fit them in, mode by mode; no mode that is another, too."""
    same = SAME_IN_RESIDUAL_MODE if quantity is TIME else ()
    return [(name, mode) for mode in MODES for name in names if mode != "residual" or name not in same]


def transfer(
    train: LearningRows,
    test: LearningRows,
    names: tuple[str, ...] = PREDICTORS,
    calibrated: Sequence[Calibrated] = (),
    model_fair: bool = True,
) -> Transfer:
    """Fit every predictor in every mode on ``train``; score it there by folds, and on ``test``, beside the baselines
    (:func:`dse.prediction.baselines.baselines`)."""
    sample, whole = train.sample(MOST_FOLD_ROWS), train.sample(MOST_ROWS)
    scored = [score(name, mode, sample, whole, test) for name, mode in predictor_modes(names, train.quantity)]
    ranking = {
        mode: rank_features(sample.rows(mode), train.quantity.feature_names(mode)) for mode in ("plain", "analytical")
    }
    beside = baselines(train, test, calibrated, model_fair)
    return Transfer(train, test, tuple(scored), tuple(beside), ranking)


def score(name: str, mode: str, sample: LearningRows, whole: LearningRows, test: LearningRows) -> ScoredPredictor:
    """Fit one predictor in one mode; folds on ``sample``, the final fit on ``whole``, the error on ``test``."""
    residual, rows = mode == "residual", sample.rows(mode)
    families = group_folds(sample.frame["family"].to_numpy(), 5)
    predicted, trees = left_out(name, rows, random_folds(len(rows.y)), residual)
    by_family, by_transfer = (
        left_out(name, rows, fold, residual, trees)[0] for fold in (families, transfer_folds(sample))
    )
    start = perf_counter()
    fitted = fit(name, whole.rows(mode), residual, trees or 2)
    seconds = perf_counter() - start
    answer = fitted.many(test.rows(mode).x)
    return ScoredPredictor(
        name,
        mode,
        merits(predicted, rows.y),
        float(percentage_errors(by_family, rows.y).mean()),
        float(percentage_errors(by_transfer, rows.y).mean()),
        merits(answer, test.y),
        percentage_errors(answer, test.y),
        fitted,
        trees,
        seconds,
    )


def transfer_folds(rows: LearningRows) -> np.ndarray:
    """Return the folds that are most like a new device: devices, or of one device five blocks of neighbouring sizes."""
    if len(rows.devices) > 1:
        return group_folds(rows.frame["preset"].to_numpy())
    return size_folds(rows.arithmetic + rows.memory)

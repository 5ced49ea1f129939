"""Transfer from some rows to others: predictors fitted on the first, scored by folds there and on the second."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dse.base.units import KILO
from dse.measured.fitted_roofline import CalibratedRoofline, fit_roofline, mean_roofline
from dse.prediction.features import MODES, feature_names
from dse.prediction.learning_rows import LearningRows
from dse.prediction.merits import group_folds, merits, percentage_errors, random_folds, size_folds
from dse.prediction.predictors import PREDICTORS, FittedPredictor, fit, left_out, rank_features

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


class Baseline(NamedTuple):
    """A simpler predictor to compare with: ``fair`` where it has not seen the target."""

    name: str
    fair: bool
    target: dict[str, Any]
    errors: np.ndarray

    def document(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {"baseline": self.name, "fair": self.fair, "target": self.target}


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
nothing selects or weighs them."""


def predictor_modes(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the predictors with the modes to fit them in, mode by mode; those of TWICE not in residual mode."""
    return [(name, mode) for mode in MODES for name in names if mode != "residual" or name not in SAME_IN_RESIDUAL_MODE]


def transfer(
    train: LearningRows,
    test: LearningRows,
    names: tuple[str, ...] = PREDICTORS,
    calibrated: Sequence["Calibrated"] = (),
) -> Transfer:
    """Fit every predictor in every mode on ``train``; score it there by folds, and on ``test``, beside the baselines,
    those of ``calibrated`` among them."""
    sample, whole = train.sample(MOST_FOLD_ROWS), train.sample(MOST_ROWS)
    scored = [score(name, mode, sample, whole, test) for name, mode in predictor_modes(names)]
    ranking = {mode: rank_features(sample.rows(mode), feature_names(mode)) for mode in ("plain", "analytical")}
    return Transfer(train, test, tuple(scored), tuple(baselines(train, test, calibrated)), ranking)


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


ANALYTICAL_ALONE = "analytical model alone"
OF_OTHERS = "calibrated roofline of the other devices (overhead in {})"
OF_TARGET = "calibrated roofline fitted to the target itself"
ROOFLINES = tuple(OF_OTHERS.format(unit) for unit in ("cycles", "us"))
"""Those of them that stand for the calibrated roofline of the other devices."""

CALIBRATED = "analytical model, calibrated to {}"
"""Baselines: the timing model, three fitted numbers of the data sheet's roofline, and the timing model with the shipped
coefficients of another device."""


class Calibrated(NamedTuple):
    """What the timing model calibrated to another device says of the target's rows; ``fair`` where no row of the target
    was among those that it was fitted to."""

    device: str
    fair: bool
    cycles: np.ndarray  # (target's rows,)


def transfer_folds(rows: LearningRows) -> np.ndarray:
    """Return the folds that are most like a new device: devices, or of one device five blocks of neighbouring sizes."""
    if len(rows.devices) > 1:
        return group_folds(rows.frame["preset"].to_numpy())
    return size_folds(rows.arithmetic + rows.memory)


def baselines(train: LearningRows, test: LearningRows, calibrated: Sequence[Calibrated] = ()) -> list[Baseline]:
    """Return the analytical model alone, three-number rooflines from the other devices and the target's own, and the
    model as it was calibrated to other devices."""
    predictions = [(ANALYTICAL_ALONE, True, test.analytical)]
    predictions += [(CALIBRATED.format(one.device), one.fair, one.cycles) for one in calibrated]
    for unit in ("cycles", "us"):
        predictions.append(
            (OF_OTHERS.format(unit), True, _roofline([_fitted(train.of(d), unit) for d in train.devices], test, unit))
        )
    own = _roofline([_fitted(test, "cycles")], test, "cycles")
    predictions.append((OF_TARGET, False, own))
    return [Baseline(n, fair, merits(p, test.y), percentage_errors(p, test.y)) for n, fair, p in predictions]


def _fitted(rows: LearningRows, unit: str) -> CalibratedRoofline:
    """Return the three fitted numbers of a device, the overhead in cycles or in microseconds."""
    per = KILO * rows.clock_ghz if unit == "us" else np.ones(len(rows.y))
    return fit_roofline(rows.arithmetic / per, rows.memory / per, rows.y / per)


def _roofline(devices: list[CalibratedRoofline], test: LearningRows, unit: str) -> np.ndarray:
    per = KILO * test.clock_ghz if unit == "us" else np.ones(len(test.y))
    return mean_roofline(devices)(test.arithmetic / per, test.memory / per) * per

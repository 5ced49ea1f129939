"""What a predictor has to beat: the model by equations, three fitted numbers, and, of watts, a share of the limit."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dse.base.units import KILO
from dse.measured.fitted_roofline import CalibratedRoofline, fit_roofline, mean_roofline
from dse.prediction.learning_rows import LearningRows
from dse.prediction.merits import merits, percentage_errors
from dse.prediction.quantities import POWER


class Baseline(NamedTuple):
    """A simpler predictor to compare with: ``fair`` where it has not seen the target."""

    name: str
    fair: bool
    target: dict[str, Any]
    errors: np.ndarray

    def document(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {"baseline": self.name, "fair": self.fair, "target": self.target}


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


SHARE_OF_OTHERS = "share of the power limit that the other devices draw"
SHARE_OF_TARGET = "share of the power limit that the target draws"
"""Baselines of watts: one number, the geometric mean of watts over the limit."""

SIMPLE = (*ROOFLINES, SHARE_OF_OTHERS)
"""Baselines with a few numbers fitted to the devices that were learned from."""


def model_alone(rows: LearningRows) -> str:
    """Return the name of the baseline that is the model by equations."""
    return f"{rows.quantity.model} alone"


def baselines(
    train: LearningRows, test: LearningRows, calibrated: Sequence[Calibrated] = (), model_fair: bool = True
) -> list[Baseline]:
    """Return the model by equations, the simple baselines from the other devices and from the target's own rows, and
    the model as it was calibrated to other devices; ``model_fair``: the model has not seen such rows of the target."""
    predictions = [(model_alone(test), model_fair, test.analytical)]
    predictions += [(CALIBRATED.format(one.device), one.fair, one.cycles) for one in calibrated]
    predictions += (_shares if test.quantity is POWER else _rooflines)(train, test)
    return [Baseline(n, fair, merits(p, test.y), percentage_errors(p, test.y)) for n, fair, p in predictions]


def _rooflines(train: LearningRows, test: LearningRows) -> list[tuple[str, bool, np.ndarray]]:
    found = []
    for unit in ("cycles", "us"):
        others = [_fitted(train.of(device), unit) for device in train.devices]
        found.append((OF_OTHERS.format(unit), True, _roofline(others, test, unit)))
    return [*found, (OF_TARGET, False, _roofline([_fitted(test, "cycles")], test, "cycles"))]


def _shares(train: LearningRows, test: LearningRows) -> list[tuple[str, bool, np.ndarray]]:
    limit = POWER.place("limit")
    fair = {SHARE_OF_OTHERS: train, SHARE_OF_TARGET: test}
    share = {name: float(np.exp(np.mean(np.log(rows.y / rows.x[:, limit])))) for name, rows in fair.items()}
    return [(name, rows is train, share[name] * test.x[:, limit]) for name, rows in fair.items()]


def _fitted(rows: LearningRows, unit: str) -> CalibratedRoofline:
    """Return the three fitted numbers of a device, the overhead in cycles or in microseconds."""
    per = KILO * rows.clock_ghz if unit == "us" else np.ones(len(rows.y))
    return fit_roofline(rows.arithmetic / per, rows.memory / per, rows.y / per)


def _roofline(devices: list[CalibratedRoofline], test: LearningRows, unit: str) -> np.ndarray:
    per = KILO * test.clock_ghz if unit == "us" else np.ones(len(test.y))
    return mean_roofline(devices)(test.arithmetic / per, test.memory / per) * per

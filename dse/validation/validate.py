"""A model held against a measured table, of time or of power: what ``dse validate`` asks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.errors import InputError, accepted, path_of
from dse.measured.table import has_power
from dse.power.calibration import calibrated_board
from dse.validation.power import OPERATORS, validate_power
from dse.validation.stalls import validate_stalls
from dse.validation.time import TimeValidation, validate_time

QUANTITIES = ("power", "time", "stalls")
"""What a validation compares."""


@dataclass(frozen=True)
class PowerValidation:
    """Answer of a validation of power: ``document`` as JSON has it."""

    document: dict[str, Any]

    def to_frame(self) -> pd.DataFrame:
        """Return the errors, a row a device and operator: n, power_mape and power_bias [%]."""
        return pd.DataFrame(self.document["device"])


@dataclass(frozen=True)
class StallValidation:
    """Answer of a validation of stalls: ``document`` as JSON has it."""

    document: dict[str, Any]

    def to_frame(self) -> pd.DataFrame:
        """Return a row a kernel: what was measured and predicted, and what is misplaced [1]."""
        return pd.DataFrame(self.document["rows"])


def quantity_of(table: str | Path, quantity: str | None = None) -> str:
    """Return what of a table is compared: as asked, else power where a kernel of it has any; raises InputError."""
    if quantity not in (None, *QUANTITIES):
        raise InputError(f"--quantity: no quantity is called {quantity!r}; {accepted(str(quantity), QUANTITIES)}")
    return quantity or ("power" if has_power(Path(table), OPERATORS) else "time")


def validate(
    table: str | Path,
    quantity: str | None = None,
    *,
    time: str = "measured",
    timing: str = "amali",
    gpu: str | None = None,
    harness: str | None = None,
    calibration: str | None = None,
    engine: str | None = None,
    bindings: bool = False,
) -> TimeValidation | PowerValidation | StallValidation:
    """Compare a model with a measured table, by device and operator, as ``dse validate`` does.

    ``quantity``: time, power, or stalls of an export of Nsight Compute. ``time``, of power: measured or model.
    ``timing``, ``harness`` and ``engine`` are of time. ``calibration``: of the quantity's model, a name or a TOML.
    ``bindings``: rows say what binds them. Raises InputError.
    """
    table = path_of("table", table)
    asked = quantity_of(table, quantity)
    if asked == "stalls":
        return StallValidation(validate_stalls(table, timing, gpu, calibration))
    if asked == "power":
        board = None if calibration is None else calibrated_board(Path(calibration))
        return PowerValidation(validate_power(table, time, board, gpu))
    return validate_time(table, timing, gpu, harness, calibration, engine, bindings=bindings)

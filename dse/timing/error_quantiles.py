"""Errors of a calibration on rows that no fit has seen, as a line of its file."""

from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, accepted
from dse.base.toml_file import refuse_keys
from dse.base.toml_text import inline
from dse.workload.implementation import KINDS

REGIMES = ("all", "under_10us", "10_to_50us", "memory_above_50us", "compute_above_50us")
"""Regimes of a predicted time (:mod:`dse.measured.regimes`)."""

NO_RELEASE = "no release"
"""Way of rows that name no framework whose kernels ran: those of the nearest release stand for them."""

MOST = 10.0
"""A log error is no larger: a factor of 22,000."""


@dataclass(frozen=True)
class ErrorQuantiles:
    """Log errors log(predicted / measured) of left-out rows: their 10, 50 and 90 % quantiles, and how many rows.

    ``gpu``: the preset that was measured, UNSEEN for others, "" for the measured ones together; ``way`` of
    measuring, "" for any; ``fitted``: whether rows of this type, GPU and way were fitted, or only judged.
    """

    implementation: str
    op: str
    dtype: str
    regime: str
    n: int
    q10: float
    q50: float
    q90: float
    gpu: str = ""
    way: str = ""
    fitted: bool = True


def line_of(quantiles: ErrorQuantiles) -> str:
    """Return a residual as an inline table of TOML."""
    return inline(asdict(quantiles), 5)


def read_error_quantiles(path: Path, where: str, row: Any) -> ErrorQuantiles:
    """Return the residual of an inline table, told as ``where``; raises InputError."""
    keys = [f.name for f in fields(ErrorQuantiles)]
    needed = {f.name for f in fields(ErrorQuantiles) if f.default is MISSING}
    if not isinstance(row, dict) or not needed <= set(row):
        raise InputError(f"{path}: {where} is {row!r}; give {', '.join(keys)}")
    refuse_keys(path, where, row, keys)
    for key, value in row.items():
        if wanted := _wanted(key, value):
            raise InputError(f"{path}: {where}: {key} is {value!r}; {wanted}")
    found = ErrorQuantiles(**row)
    if not found.q10 <= found.q50 <= found.q90:
        raise InputError(
            f"{path}: {where}: q10, q50, q90 are {found.q10}, {found.q50}, {found.q90}; give them in order"
        )
    return found


def _wanted(key: str, value: Any) -> str:
    """What would be accepted in place of a residual's value, "" where it is accepted."""
    names = {"regime": REGIMES, "implementation": tuple(KINDS)}
    if key == "n":
        return "" if type(value) is int and value > 0 else "give a whole number of rows, 1 or more"
    if key in ("q10", "q50", "q90"):
        known = type(value) in (int, float) and abs(value) <= MOST
        return "" if known else f"give a log error from {-MOST:g} to {MOST:g}"
    if key == "fitted":
        return "" if isinstance(value, bool) else "give true or false"
    if key in names:
        return "" if value in names[key] else accepted(str(value), names[key])
    return "" if isinstance(value, str) else "give a text"

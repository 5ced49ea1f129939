"""A user's CSV table: read, its columns as numbers; what is wrong is told with the file, the line and the value."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from dse.errors import InputError

MICROSECONDS = "latency_us (microseconds)"
OTHER_UNITS = {
    "power_mw": "power_w (watts)", "power_kw": "power_w (watts)", "meas_mW": "meas_W (watts)",
    **dict.fromkeys(("latency_ms", "latency_s", "latency_ns", "latency", "time_us", "time_ms"), MICROSECONDS),
}  # fmt: skip
"""Columns in another unit or under another name -> what to give instead."""

OTHER_UNIT = 100.0
"""Predicted over measured time that no kernel and no engine explains: times are in another unit."""

NAMED = 5
"""Lines of a table that a refusal names beside the first."""


def read_csv(path: Path, rows: int | None = None) -> pd.DataFrame:
    """Return a table, or its first ``rows``; raises InputError where there is no file or no table in it."""
    try:
        refuse_separators(path, pd.read_csv(path, nrows=0).columns)
        return pd.read_csv(path, nrows=rows, low_memory=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path}: is no CSV table: {' '.join(str(error).split())}") from None


def refuse_separators(path: Path, columns: Iterable[object]) -> None:
    """Raise InputError at a header whose cells stand apart by something else than commas."""
    header = list(map(str, columns))
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            raise InputError(f"{path}: its columns stand apart by {called}; give commas (and decimal points)")


def numbers(path: Path, frame: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column as numbers (rows,), nan where a cell is empty; raises InputError at a word."""
    found = pd.to_numeric(frame[column], errors="coerce")
    wrong = (found.isna() & frame[column].notna()).to_numpy()
    refuse_cells(path, column, frame[column].to_numpy(object), wrong, "give a number")
    return found.to_numpy(float)


def times_us(path: Path, frame: pd.DataFrame) -> np.ndarray:
    """Return the column ``latency_us`` [us] (rows,), nan where a cell is empty; raises InputError at no time."""
    time = numbers(path, frame, "latency_us")
    refuse_cells(path, "latency_us", time, (time <= 0) | np.isinf(time), "give a positive time")
    return time


def refuse_units(path: Path, columns: pd.Index) -> None:
    """Raise InputError at a column of OTHER_UNITS, unless the right one stands beside it."""
    for column, instead in OTHER_UNITS.items():
        if column in columns and instead.split()[0] not in columns:
            raise InputError(f"{path}: column {column} is not read; give {instead}")


def refuse_cells(path: Path, column: str, cells: np.ndarray, wrong: np.ndarray, instead: str) -> None:
    """Raise InputError where any cell of a column is wrong, both (rows,): the first one and the lines of the others.

    The header is line 1.
    """
    lines = (np.flatnonzero(wrong) + 2).tolist()
    if not lines:
        return
    first = cells[wrong][0]
    value = f"{first:g}" if isinstance(first, float) else repr(first)
    named = ", ".join(map(str, lines[1 : NAMED + 1])) + (" ..." if len(lines) > NAMED + 1 else "")
    others = f" ({len(lines) - 1} more: {named})" if len(lines) > 1 else ""
    raise InputError(f"{path}: row {lines[0]}: {column} is {value}; {instead}{others}")


def notes_of_unit(apart: float, of: str = "") -> list[str]:
    """Return that times are in another unit, where the median of predicted over measured ones says so."""
    if 1 / OTHER_UNIT < apart < OTHER_UNIT:
        return []
    return [f"the median row{of} is predicted {apart:.2g} times as long as measured: is latency_us in microseconds?"]


def sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

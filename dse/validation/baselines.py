"""Both baselines of a validated table: the data sheet's roofline, and the one of three numbers fitted to other rows."""

from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pandas as pd

from dse.measured.rooflines import FOLDS, fitted_roofline

FEWEST = 4
"""Rows that three numbers are fitted to at least: they fit three rows exactly."""

FITTED_ROOFLINE = "fitted roofline"
"""What a note on it begins with."""


def with_rooflines(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what both rooflines say [us]: ``sheet_us``, and ``three_us`` fitted to the other families.

    A run of a whole network brings its own ``sheet_us``, each launch the longer of arithmetic and memory; the fitted
    one knows only its sums.
    Three numbers belong to a device, operator and data type; where there are less than FEWEST such rows, to those of
    all types, then to the device, and then to the whole table (its overhead, and shares of each device's own sheet).
    NaN in a smaller table.
    """
    longer = np.maximum(rows["compute_us"], rows["memory_us"])
    sheet = rows["sheet_us"].fillna(longer) if "sheet_us" in rows else longer
    rows = rows.assign(sheet_us=sheet, three_us=np.nan)
    fitted: dict[tuple[str, ...], pd.Series] = {}
    for part, key, others in _others(rows):
        if key not in fitted:
            fitted[key] = pd.Series(fitted_roofline(others, _folds(others)), others.index)
        rows.loc[part.index, "three_us"] = fitted[key][part.index]
    return rows


def _others(rows: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, tuple[str, ...], pd.DataFrame]]:
    """The rows of each device, operator and type, and those that their three numbers are fitted to, with a name."""
    for (device, op, dtype), part in rows.groupby(["device", "op", "dtype"], sort=True):
        mine = rows[rows["device"] == device]
        names = (str(device), str(op), str(dtype))
        wider = ((names, part), (names[:2], mine[mine["op"] == op]), (names[:1], mine), ((), rows))
        for key, others in wider:
            if len(others) >= FEWEST:
                yield part, key, others
                break


def _folds(rows: pd.DataFrame) -> np.ndarray:
    return np.array([crc32(name.encode()) % FOLDS for name in rows["family"]])


def roofline_notes(rows: pd.DataFrame) -> list[str]:
    """Return what the fitted roofline's error does not say: that there is none, or what else it was fitted to."""
    if len(rows) < FEWEST:
        count = "1 row is" if len(rows) == 1 else f"{len(rows)} rows are"
        return [f"{FITTED_ROOFLINE}: no error, since {count} predicted and its three numbers need {FEWEST}"]
    wider, alone = [], []
    for part, key, others in _others(rows):
        name = f"{part['op'].iloc[0]} {part['dtype'].iloc[0]} on {part['device'].iloc[0]}"
        if len(key) < 3:
            wider.append(f"{name} (to {('the table', 'the device', 'all data types')[len(key)]})")
        if len(set(_folds(others))) < 2:
            alone.append(name)
    notes = []
    if wider:
        notes.append(
            f"{FITTED_ROOFLINE}: fitted to other rows too, where there are less than {FEWEST} of an operator "
            f"and data type: {', '.join(wider)}"
        )
    if alone:
        notes.append(
            f"{FITTED_ROOFLINE}: a training error, with no other shape family to be fitted to: {', '.join(alone)}"
        )
    return notes

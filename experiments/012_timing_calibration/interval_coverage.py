"""How many measured rows lie within the intervals called 80 %, by operator and by group.

Run with ``python experiments/012_timing_calibration/interval_coverage.py`` (four minutes on two cores). Prints the
table of ``experiments/README.md``: rows of left-out families within the shipped intervals, which are made of these
very rows; the same by folds, each family held to the interval that the others make; and all rows, most of them
fitted.
"""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pandas as pd

from dse.timing.calibration import TimingCalibration, calibration_for, load_timing_calibration
from dse.validation.error_quantiles import KIND, seen
from dse.validation.group_errors import interval_of
from experiments.data.errors import rows_with_errors

FOLDS = 10
"""Parts that left-out families are dealt to: a tenth of them, as new ones, is held to the quantiles of the rest."""

LEAST = 30
"""Rows of a group that its share is told of."""


def inside(rows: pd.DataFrame, calibrations: dict[str, TimingCalibration]) -> np.ndarray:
    """Return 1 where a row lies within its interval, 0 where not, NaN where it has none; by the row's ``gpu``."""
    found = np.full(len(rows), np.nan)
    for (gpu, op, dtype), at in rows.groupby(["gpu", "op", "dtype"]).indices.items():
        part = rows.iloc[at]
        low, high, *_ = interval_of(part, calibrations[str(gpu)], str(gpu), str(op), str(dtype))
        error = part["error"].to_numpy()
        found[at] = np.where(np.isnan(low), np.nan, (error >= low) & (error <= high))
    return found


def folds(rows: pd.DataFrame) -> np.ndarray:
    """Return the fold of each row: the families of each KIND dealt in turn, in the order of a checksum."""
    found = np.zeros(len(rows), int)
    for at in rows.groupby(KIND).indices.values():
        family = rows["family"].to_numpy()[at]
        names = sorted(set(family), key=lambda name: crc32(f"fold {name}".encode()))
        place = {name: number % FOLDS for number, name in enumerate(names)}
        found[at] = [place[name] for name in family]
    return found


def by_folds(rows: pd.DataFrame, calibrations: dict[str, TimingCalibration]) -> pd.DataFrame:
    """Return left-out rows, each with ``inside`` by quantiles of the families in the other folds."""
    fold, parts = folds(rows), []
    for number in range(FOLDS):
        told = seen(rows[fold != number], (), ())
        others = {gpu: replace(c, error_quantiles=told) for gpu, c in calibrations.items()}
        held = rows[fold == number]
        parts.append(held.assign(inside=inside(held, others)))
    return pd.concat(parts)


def never_fitted(rows: pd.DataFrame, calibrations: dict[str, TimingCalibration]) -> np.ndarray:
    """Return which rows no fit has seen: those of left-out families, and all in a way or a type that none was of."""
    found = rows["out"].to_numpy().copy()
    for (gpu, *kind), at in rows.groupby(["gpu", *KIND]).indices.items():
        known = calibrations[str(gpu)].error_quantiles
        fitted = any((r.implementation, r.op, r.dtype, r.way, r.gpu) == (*kind, gpu) and r.fitted for r in known)
        found[at] |= not fitted
    return found


def share(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return how many rows have an interval, and how many of them lie within [%]."""
    known = rows[rows["inside"].notna()].groupby(columns)["inside"].agg(["size", "mean"])
    return known.assign(mean=100 * known["mean"]).rename(columns={"size": "rows", "mean": "within"})


def main() -> None:
    """Judge and print."""
    rows = rows_with_errors()
    show(rows)


def show(rows: pd.DataFrame) -> None:
    """Print the tables."""
    calibrations = {str(g): load_timing_calibration(calibration_for(str(g))) for g in rows["gpu"].unique()}
    rows = rows.assign(inside=inside(rows, calibrations))
    out = rows[never_fitted(rows, calibrations)]
    dealt = by_folds(out, calibrations)
    for columns in (["table", "op", "dtype"], ["op", "dtype"]):
        table = share(out, columns).join(share(dealt, columns)["within"].rename("by folds"), how="left")
        print(table.join(share(rows, columns)["within"].rename("all rows")).round(1).to_string())
    for name, part in (("left out", out), ("by folds", dealt), ("all rows", rows)):
        for columns in (["op", "dtype"], ["table", "gpu", "op", "dtype"], ["table", "gpu", "op", "dtype", "where"]):
            found = share(part, columns)
            found = found[found["rows"] >= LEAST]
            good = ((found["within"] >= 75) & (found["within"] <= 85)).mean()
            print(
                f"{name}, by {', '.join(columns)}: {len(found)} groups, mean {found['within'].mean():.1f} %, "
                f"mean distance from 80: {np.abs(found['within'] - 80).mean():.1f}, 75 to 85 in {100 * good:.0f} %"
            )
    groups = share(out, ["table", "gpu", "op", "dtype"])
    print(groups[groups["rows"] >= LEAST].round(1).to_string())


if __name__ == "__main__":
    main()

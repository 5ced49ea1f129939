"""The noise of measured rows, from the smallest and largest of their own repeats: what no model can be nearer than."""

from math import pi, sqrt

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dse.base.errors import InputError
from dse.base.skipped_rows import counted, why_skipped

COLUMNS = ("rep_n", "rep_lo_us", "rep_hi_us")
"""Repeats of a row, the shortest and the longest of them [us]; a table may lack them."""

NOT_AROUND = "latency_us is not between rep_lo_us and rep_hi_us; give all three in microseconds"

KNOWN_SHARE = 0.5
"""A group's noise is told where at least this share of its rows has repeats."""


def noise_percent(rows: pd.DataFrame, path: str) -> tuple[np.ndarray, list[str]]:
    """Return the mean deviation of one repeat from the row's time [%], NaN where fewer than two are known (rows,), and
    in a note whose repeats are left out.

    Of n normal repeats the range is d(n) and the mean absolute deviation sqrt(2 / pi) standard deviations on average,
    so |repeat - median| / median is taken as sqrt(2 / pi) / d(n) * (highest - lowest) / median. On framework tables
    of matrix products this comes within about a tenth of the deviation that was taken from the repeats themselves.
    Raises InputError where a repeat is no number.
    """
    if not set(COLUMNS) <= set(rows.columns):
        return np.full(len(rows), np.nan), []
    n, low, high = (_numbers(rows, column, path) for column in COLUMNS)
    time = rows["latency_us"].to_numpy(float)
    told = (n >= 2) & ~np.isnan(low) & ~np.isnan(high)
    whole, around = np.isfinite(n) & (np.floor(n) == n), (low > 0) & (low <= time) & (time <= high)
    spread = np.full(len(rows), np.nan)
    spread[told & whole & around] = [sqrt(2 / pi) / range_of(count) for count in n[told & whole & around].tolist()]
    why = np.select([told & ~whole, told & ~around], ["rep_n is no whole number", NOT_AROUND], "")
    left_out = why_skipped(counted(why.tolist()))
    return 100 * spread * (high - low) / time, [f"noise floor, repeats left out: {left_out}"] if left_out else []


def group_noise(percent: np.ndarray) -> float | None:
    """Return the mean of the rows' noise [%], None where too few rows have any."""
    known = np.isfinite(percent)
    return float(percent[known].mean()) if known.mean() >= KNOWN_SHARE else None


def range_of(n: float) -> float:
    """Return the expected range of ``n`` draws of a standard normal: the integral of 1 - F^n - (1 - F)^n."""
    if n not in _RANGES:
        x = np.linspace(-9, 9, 3601)
        _RANGES[n] = float(np.trapezoid(1 - ndtr(x) ** n - ndtr(-x) ** n, x))
    return _RANGES[n]


_RANGES: dict[float, float] = {}


def _numbers(rows: pd.DataFrame, column: str, path: str) -> np.ndarray:
    numbers = pd.to_numeric(rows[column], errors="coerce")
    wrong = numbers.isna() & rows[column].notna()
    if wrong.any():
        raise InputError(f"{path}: {column} is {rows[column][wrong].iloc[0]!r}; give a number, or leave the cell empty")
    return numbers.to_numpy(float)

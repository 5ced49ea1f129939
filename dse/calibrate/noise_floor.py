"""The noise of measured rows, from the smallest and largest of their own repeats: what no model can be nearer than."""

from math import pi, sqrt

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dse.errors import InputError

COLUMNS = ("rep_n", "rep_lo_us", "rep_hi_us")
"""Repeats of a row, the shortest and the longest of them [us]; a table may lack them."""

KNOWN_SHARE = 0.5
"""A group's noise is told where at least this share of its rows has repeats."""


def noise_percent(rows: pd.DataFrame, path: str) -> np.ndarray:
    """Return the mean deviation of one repeat from the row's time [%], NaN where fewer than two are known (rows,).

    Of n normal repeats the range is d(n) and the mean absolute deviation sqrt(2 / pi) standard deviations on average,
    so |repeat - median| / median is taken as sqrt(2 / pi) / d(n) * (highest - lowest) / median. On framework tables
    of matrix products this comes within about a tenth of the deviation that was taken from the repeats themselves.
    Raises InputError where a repeat is no number.
    """
    if not set(COLUMNS) <= set(rows.columns):
        return np.full(len(rows), np.nan)
    n, low, high = (_numbers(rows, column, path) for column in COLUMNS)
    known = (n >= 2) & (low > 0) & (high >= low)
    spread = np.array([sqrt(2 / pi) / range_of(int(i)) if ok else np.nan for i, ok in zip(n, known, strict=True)])
    return 100 * spread * (high - low) / rows["latency_us"].to_numpy(float)


def group_noise(percent: np.ndarray) -> float | None:
    """Return the mean of the rows' noise [%], None where too few rows have any."""
    known = np.isfinite(percent)
    return float(percent[known].mean()) if known.mean() >= KNOWN_SHARE else None


def range_of(n: int) -> float:
    """Return the expected range of ``n`` draws of a standard normal: the integral of 1 - F^n - (1 - F)^n."""
    if n not in _RANGES:
        x = np.linspace(-9, 9, 3601)
        _RANGES[n] = float(np.trapezoid(1 - ndtr(x) ** n - ndtr(-x) ** n, x))
    return _RANGES[n]


_RANGES: dict[int, float] = {}


def _numbers(rows: pd.DataFrame, column: str, path: str) -> np.ndarray:
    numbers = pd.to_numeric(rows[column], errors="coerce")
    wrong = numbers.isna() & rows[column].notna()
    if wrong.any():
        raise InputError(f"{path}: {column} is {rows[column][wrong].iloc[0]!r}; give a number, or leave the cell empty")
    return numbers.to_numpy(float)

"""Regimes of a launch: where it stands decides what rules its time, so errors are never one number."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dse.base.constants import constant
from dse.timing.error_quantiles import REGIMES

SHORT_US, LONG_US = constant("regime_short_us"), constant("regime_long_us")
"""Ends of the regimes [us]: launches and latencies rule below the first, rates above the second."""


def compute_bound(table: pd.DataFrame) -> np.ndarray:
    """Return whether arithmetic takes longer than memory on the data sheet's roofline (rows,)."""
    return (table["compute_us"] >= table["memory_us"]).to_numpy()


def regime(time_us: np.ndarray, compute: np.ndarray) -> np.ndarray:
    """Return the regime (rows,) of times [us], of rows that are ``compute``-bound or not."""
    long = np.where(compute, "compute_above_50us", "memory_above_50us")
    return np.where(time_us < SHORT_US, "under_10us", np.where(time_us < LONG_US, "10_to_50us", long))


def by_regime(regimes: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each regime that has rows with their mask, all of them first."""
    for name in REGIMES:
        rows = np.ones(len(regimes), bool) if name == "all" else regimes == name
        if rows.any():
            yield name, rows

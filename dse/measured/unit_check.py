"""Rows whose time is so far from what is predicted that it is in another unit, among others that are not."""

import numpy as np
import pandas as pd

from dse.measured.table import SHAPE_COLUMNS

FAR = 30.0
"""Predicted over measured time, or the other way round, that no kernel and no engine explains in a single row."""


def far_rows(rows: pd.DataFrame, predicted_us: np.ndarray, of: str = "") -> list[str]:
    """Return how many rows are more than FAR times off and which is the first; nothing where none is."""
    apart = np.abs(np.log(predicted_us / rows["latency_us"].to_numpy(float)))
    far = np.flatnonzero(apart > np.log(FAR))
    if not len(far):
        return []
    first = rows.iloc[far[0]]
    shape = [f"{c}={first[c]:g}" for c in SHAPE_COLUMNS if c in rows and isinstance(first[c], float) and first[c] > 0]
    named = " ".join((str(first["op"]), str(first["dtype"]), *shape))
    us = f"measured {first['latency_us']:.3g} us, predicted {predicted_us[far[0]]:.3g}"
    told = f"{len(far)} of {len(rows)} rows{of} are more than {FAR:g} times off, first {named}, {us}"
    return [f"{told}: is latency_us in microseconds?"]

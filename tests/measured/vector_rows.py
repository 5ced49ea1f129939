"""Measured rows of vector kernels, times to be filled in."""

import numpy as np
import pandas as pd

from dse.measured.table import OPERATOR_COLUMNS

DEVICE = "H100-SXM5-80GB"


def rows(op="silu_and_mul", source="vidur", count=60, device=DEVICE, dtype="fp16") -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"rows": 2.0 ** rng.integers(0, 14, count), "cols": 256.0 * rng.integers(4, 64, count)})
    frame = frame.assign(source=source, device=device, op=op, dtype=dtype, latency_us=1.0, group="")
    return frame.reindex(columns=["source", "group", *OPERATOR_COLUMNS])


def first(frame):
    return next(frame.itertuples())

"""Matrix products of an H100 that expose every stage of a calibration."""

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.table import OPERATOR_COLUMNS
from dse.measured.timed_rows import TimedRows, blocks, joined

DEVICE = "H100-SXM5-80GB"


ROWS = 128
"""As many as a stage is compiled for, so that every fit of these tests runs the same programs."""


def products(count: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Matrix products of an H100 that expose every stage: from tiny to long, in many families; time to be filled in."""
    rng = np.random.default_rng(seed)
    sizes = 2 ** rng.integers(8, 15, (count, 3))
    frame = pd.DataFrame(sizes, columns=["m", "n", "k"]).astype(float)
    frame["m"] = 2.0 ** rng.integers(0, 15, count)
    frame = frame.assign(source="aiconfigurator", device=DEVICE, op="gemm", dtype="bf16", latency_us=1.0)
    return frame.reindex(columns=["source", *OPERATOR_COLUMNS])


def timed(frame: pd.DataFrame) -> TimedRows:
    return joined(list(blocks(frame, {DEVICE: load_sheet(DEVICE)}, None, Skipped())))

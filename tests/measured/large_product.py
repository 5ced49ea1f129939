"""A product so large that boards reach their power limit."""

import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.timed_rows import best, blocks
from dse.timing.calibration import calibration_for, load_timing_calibration

LARGE = {"op": "gemm", "m": 8192.0, "n": 8192.0, "k": 8192.0, "latency_us": 1.0}


def chosen(preset: str, dtype: str = "fp16", source: str = "neusight", **shape: float):
    """The kernel of one product, and the model that chose it."""
    frame = pd.DataFrame([LARGE | shape | {"device": preset, "dtype": dtype, "source": source}])
    (rows,) = blocks(frame, {preset: load_sheet(preset)}, None, Skipped())
    model = load_timing_calibration(calibration_for(preset)).model
    return model, best(model, rows)[1]

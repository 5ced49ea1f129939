"""Measured runs of a whole network on an H100."""

import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.network_runs.rows import network_rows
from dse.timing.calibration import load_timing_calibration

H100 = load_sheet("h100_sxm")


MODEL = load_timing_calibration("h100_sxm").model


ROW = {"device": "H100-SXM5-80GB", "dtype": "bf16", "group": "x_Meta-Llama-3-8B", "source": "llm-inference-bench",
       "notes": "framework=vLLM", "op": "llm_e2e", "batch": 8.0, "seq_q": 256.0, "seq_kv": 64.0, "tp": 1.0,
       "latency_us": 1e6}  # fmt: skip


def runs(*changes):
    """Rows of ROW with changes on an H100, and why others are none."""
    skipped = Skipped()
    return network_rows(pd.DataFrame([ROW | change for change in changes]), H100, skipped), skipped

"""Best bf16 products that others found on whole GPUs (stas00/ml-engineering, MAMF), most of them never fitted."""

import numpy as np
import pandas as pd
import pytest

from dse.calibrate.harness import harnesses
from dse.calibrate.timed import best, blocks
from dse.hardware.presets import load_sheet
from dse.timing.calibration import calibration_for, load_timing_calibration

FOUND = (
    ("a100_sxm_80gb", (1024, 10240, 5120), 271.2),
    ("a100_pcie_40gb", (2048, 5120, 6144), 252.9),
    ("h100_sxm", (2048, 2048, 13312), 794.5),
    ("gh200", (1024, 15360, 4096), 828.6),
    ("b200", (1792, 16128, 3072), 1745.0),
    ("gb200", (4096, 9728, 2048), 1822.0),
)
"""Preset, best shape (m, n, k), TFLOP/s there: compute/accelerator/README.md @744d01e1 (MLE)."""


def tflops(preset: str, shapes: list[tuple[int, int, int]]) -> np.ndarray:
    columns = {"device": preset, "op": "gemm", "dtype": "bf16", "latency_us": 1.0, "source": "aiconfigurator"}
    frame = pd.DataFrame(shapes, columns=["m", "n", "k"]).astype(float).assign(**columns)
    (rows,) = blocks(frame, {preset: load_sheet(preset)}, harnesses()["aiconfigurator"], {})
    time, _ = best(load_timing_calibration(calibration_for(preset)).model, rows)
    return 2e-6 * frame[["m", "n", "k"]].prod(axis=1).to_numpy() / time


@pytest.mark.parametrize(("preset", "shape", "found"), FOUND)
def test_the_best_product_of_a_gpu(preset, shape, found):
    assert tflops(preset, [shape])[0] == pytest.approx(found, rel=0.1)


def test_the_best_product_of_a_b300():
    # So short a k is a sixth too slow: Blackwell's epilogue stores from tensor memory while the next tile is computed.
    assert tflops("b300", [(12288, 18432, 1024)])[0] == pytest.approx(1769.0, rel=0.2)


UNSEEN = ("b200", "gb200", "b300", "l40s", "l4", "rtx_4090", "rtx_3090", "a40", "h100_pcie", "gh200")


@pytest.mark.parametrize("preset", UNSEEN)
def test_no_product_beats_the_tensor_peak_at_boost(preset):
    gpu = load_sheet(preset).numbers()
    peak = 2e-6 * gpu["sm_count"] * gpu["tensor_cores_per_sm"] * gpu["tensor_fma_bf16"] * gpu["boost_clock_mhz"]
    reached = tflops(preset, [(4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 16384)]) / peak
    assert (reached > 0.6).all() and (reached < 0.95).all()

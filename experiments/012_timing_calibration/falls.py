"""How far times of products fall as they gain rows: measured, and predicted with and without the discrepancy.

python experiments/012_timing_calibration/falls.py
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.protocol import protocols
from dse.measured.table import read_times
from dse.measured.timed_rows import blocks, fastest_us
from dse.timing.calibration import calibration_for, load_timing_calibration
from experiments import data

Weights = tuple[tuple[int, int], ...]

WEIGHTS: Weights = ((4096, 4096), (28672, 4096), (4096, 14336), (6144, 4096), (1280, 8192), (1024, 512), (12288, 3072))
"""(n, k) of products that are predicted."""

EDGES = (*(2**i for i in range(5, 14)), 96, 384, 768, 1536, 3072, 6144)
"""Rows at which a tile or a pair of them is full: one fewer and one more are predicted, too."""

ROWS = sorted(
    {*range(1, 33), *(round(2 ** (i / 4)) for i in range(20, 57)), *(e + d for e in EDGES for d in (-1, 0, 1))}
)

PREDICTED = (
    ("a100_sxm_80gb", "aiconfigurator"), ("h100_sxm", "aiconfigurator"), ("h200", "aiconfigurator"),
    ("rtx_pro_6000", "aiconfigurator"), ("rtx_a6000", "aiconfigurator"), ("l40s", "aiconfigurator"),
    ("b200", "aiconfigurator"), ("a100_sxm_80gb", "vidur"), ("h100_sxm", "vidur"),
)  # fmt: skip
"""Preset and way of measuring, which tells the library; those without a calibration have the shared one."""

MEASURED = (
    ("aiconfigurator__gemm", "A100-SXM4-80GB"), ("aiconfigurator__gemm", "H100-SXM5-80GB"),
    ("aiconfigurator__gemm", "H200-SXM-141GB"), ("vidur__gemm", "A100-SXM4-80GB"), ("vidur__gemm", "H100-SXM5-80GB"),
)  # fmt: skip
"""Table and device."""

FALL = 0.01
"""A fall that counts."""


def main() -> None:
    """Print how far measured times fall, and predicted ones."""
    print("| measured | (n, k) | that fall by over 1 % | median fall % | monotone at best % |\n" + "|---" * 5 + "|")
    for table, device in MEASURED:
        falls, floor = measured_falls(table, device)
        share, median = 100 * (falls > FALL).mean(), 100 * np.median(falls)
        print(f"| {table} {device} | {len(falls)} | {share:.0f} % | {median:.1f} | {floor:.1f} |")
    print(
        "\n| predicted | equations: largest fall % | with discrepancy % | from m to m, of n, k |\n" + "|---" * 4 + "|"
    )
    for preset, way in PREDICTED:
        law, _ = predicted_fall(preset, way, discrepancy=False)
        fall, place = predicted_fall(preset, way)
        print(f"| {preset} {way} | {100 * law:.1f} | {100 * fall:.1f} | {place} |", flush=True)


def measured_falls(table: str, device: str) -> tuple[np.ndarray, float]:
    """Return the largest fall below any smaller product's time of each (n, k) with three sizes at least, and the mean
    error [%] of the times nearest to the measured ones in the log's squares that never fall."""
    frame = read_times(data.path(table)).frame
    kept = (frame["device"] == device) & (frame["op"] == "gemm") & frame["dtype"].isin(("bf16", "fp16"))
    medians = frame[kept].groupby(["n", "k", "m"], as_index=False)["latency_us"].median()
    logs = [np.log(g["latency_us"].to_numpy()) for _, g in medians.groupby(["n", "k"]) if len(g) > 2]
    off = [np.exp(IsotonicRegression().fit_transform(np.arange(len(x)), x) - x) - 1 for x in logs]
    return np.array([largest_fall(np.exp(x))[0] for x in logs]), 100 * float(np.abs(np.concatenate(off)).mean())


def predicted_fall(preset: str, way: str, discrepancy: bool = True, weights: Weights = WEIGHTS) -> tuple[float, str]:
    """Return the largest fall of a product's predicted time over ROWS, and where it is."""
    times = predicted(preset, way, discrepancy, weights)
    found = [(*largest_fall(us), n, k) for (n, k), us in zip(weights, times, strict=True)]
    fall, first, last, n, k = max(found)
    return fall, f"{ROWS[first]} to {ROWS[last]} of {n}, {k}" if fall > FALL else ""


def predicted(preset: str, way: str, discrepancy: bool, weights: Weights) -> np.ndarray:
    """Return the predicted time (weights, ROWS) [us] of products in bf16, without a protocol's overhead."""
    sizes = pd.DataFrame([(m, n, k) for n, k in weights for m in ROWS], columns=["m", "n", "k"]).astype(float)
    frame = sizes.assign(device=preset, op="gemm", dtype="bf16", latency_us=1.0)
    model = load_timing_calibration(calibration_for(preset)).model
    model = model if discrepancy else replace(model, discrepancy=None)
    parts = blocks(frame, {preset: load_sheet(preset)}, protocols()[way], Skipped())
    return np.concatenate([fastest_us(model, rows)[0] for rows in parts]).reshape(len(weights), len(ROWS))


def largest_fall(us: np.ndarray) -> tuple[float, int, int]:
    """Return by what share the times (rows,) fall most below one before, and the places of both."""
    fall = 1 - us / np.maximum.accumulate(us)
    last = int(fall.argmax())
    return float(fall[last]), int(us[: last + 1].argmax()), last


if __name__ == "__main__":
    main()

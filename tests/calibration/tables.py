"""Small made-up tables for the tests of fits: kernels whose watts follow from known multipliers."""

from pathlib import Path

import numpy as np
import pandas as pd

from dse.measured.table import OPERATOR_COLUMNS

DYNAMIC = ("INTP", "FPUP", "SCHEDP", "IBP", "L2CP", "DRAMP")
TRUTH = {"INTP": 1.5, "FPUP": 2.0, "SCHEDP": 0.7, "IBP": 1.0, "L2CP": 1.3, "DRAMP": 0.8}


def kernel_table(path: Path, kernels: int = 24, groups: int = 8, noise: float = 0.0, seed: int = 0) -> Path:
    """Write kernels with components of the SASS variant, measured watts from TRUTH."""
    rng = np.random.default_rng(seed)
    parts = {part: rng.uniform(0, 40, kernels) * (rng.uniform(size=kernels) < 0.7) for part in DYNAMIC}
    fixed = {
        "IDLE_COREP": rng.uniform(0, 8, kernels),
        "CONSTP": np.full(kernels, 32.3),
        "STATICP": np.full(kernels, 30),
    }
    watts = sum((TRUTH[p] * w for p, w in parts.items()), np.zeros(kernels)) + sum(fixed.values(), np.zeros(kernels))
    frame = pd.DataFrame(
        {
            "kernel": [f"k{i}" for i in range(kernels)],
            "benchmark_group": [f"b{i % groups}" for i in range(kernels)],
            "meas_W": watts * np.exp(noise * rng.standard_normal(kernels)),
            **{f"sass_{part}_W": values for part, values in (parts | fixed).items()},
        }
    )
    frame.to_csv(path, index=False)
    return path


def operator_table(path: Path, **changes: object) -> Path:
    """Write GEMMs of an H200 of two families with power; ``changes`` replace columns."""
    columns = [*OPERATOR_COLUMNS, "power_w"]
    rows = [{"device": "H200-SXM-141GB", "op": "gemm", "dtype": "bf16", "m": 8192, "n": n, "k": 8192,
             "latency_us": us, "power_w": watts}
            for n, us, watts in ((8192, 1600.0, 690.0), (16384, 3200.0, 688.0), (128, 40.0, 300.0))]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns).assign(**changes)  # pyright: ignore[reportArgumentType]
    frame.to_csv(path, index=False)
    return path

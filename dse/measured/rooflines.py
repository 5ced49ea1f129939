"""Baselines: the data sheet's roofline, and the one with overhead and two efficiencies fitted to a device's rows."""

import numpy as np
import pandas as pd

from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import GpuSheet
from dse.measured.fitted_roofline import fit_roofline
from dse.workload.kernel import Kernel

FOLDS = 10
"""Groups of shape families; each is predicted from the other nine."""


def sheet_times(kernel: Kernel, sheet: GpuSheet) -> tuple[float, float]:
    """Return arithmetic at the sheet's peak, and every operand once at the sheet's bandwidth [us]."""
    numbers = sheet.numbers()
    dtype = "fp32" if float(kernel.fma_lanes) > 0 else TENSOR_DTYPES[int(kernel.tensor_dtype)]
    peak = peak_tflops(numbers, "vector" if dtype == "fp32" else "tensor", dtype)
    moved = float(kernel.read_share * (kernel.cold_bytes + kernel.warm_bytes) + kernel.write_bytes)
    return 2e-6 * float(kernel.fma) / max(peak, 1e-9), moved / numbers["dram_bandwidth_gbs"] * 1e-3


def fitted_roofline(rows: pd.DataFrame, fold: np.ndarray) -> np.ndarray:
    """Return t = overhead + max(arithmetic / eff_F, memory / eff_B) of every row [us], fitted without its ``fold``.

    ``rows`` need ``compute_us``, ``memory_us`` and ``latency_us``; a fold without others is fitted on itself.
    """
    found = np.empty(len(rows))
    columns = rows[["compute_us", "memory_us", "latency_us"]].to_numpy(float).T
    for f in np.unique(fold):
        seen = fold != f if (fold != f).any() else np.ones(len(rows), bool)
        found[fold == f] = fit_roofline(*columns[:, seen])(*columns[:2, fold == f])
    return found

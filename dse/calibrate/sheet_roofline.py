"""Baselines: the data sheet's roofline, and the one with overhead and two efficiencies fitted to a device's rows."""

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from dse.hardware.peak import peak_tflops
from dse.hardware.presets import GpuSheet
from dse.workload.kernel import TENSOR_DTYPES, Kernel

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
        found[fold == f] = _roofline(_three(*columns[:, seen]), *columns[:2, fold == f])
    return found


def _roofline(log: np.ndarray, arithmetic: np.ndarray, memory: np.ndarray) -> np.ndarray:
    overhead, compute, bandwidth = np.exp(log)
    return overhead + np.maximum(arithmetic / compute, memory / bandwidth)


def _three(arithmetic: np.ndarray, memory: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Logarithms of overhead [us] and efficiencies that fit best, by robust log errors."""

    def error(log: np.ndarray) -> np.ndarray:
        return np.log(_roofline(log, arithmetic, memory) / measured)

    start = np.log([max(0.5 * measured.min(), 1e-3), 0.75, 0.8])
    ends = np.log([[1e-6, 0.01, 0.01], [1e6, 1.5, 1.5]])
    return least_squares(error, np.clip(start, *ends), bounds=ends, loss="soft_l1", f_scale=0.05).x

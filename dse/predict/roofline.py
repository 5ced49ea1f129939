"""The baseline to beat: a roofline with three numbers a device, overhead, compute and bandwidth efficiency."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares


class CalibratedRoofline(NamedTuple):
    """cycles = overhead + max(arithmetic / compute, bytes / bandwidth); efficiencies are shares of the data sheet."""

    overhead: float
    compute: float
    bandwidth: float

    def __call__(self, arithmetic: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return cycles from the data sheet's arithmetic and DRAM time of all operands [cycle]."""
        return self.overhead + np.maximum(arithmetic / self.compute, memory / self.bandwidth)


def fit_roofline(arithmetic: np.ndarray, memory: np.ndarray, measured: np.ndarray) -> CalibratedRoofline:
    """Return the three numbers with the least (soft) absolute relative error on a device's rows."""

    def off(logs: np.ndarray) -> np.ndarray:
        return CalibratedRoofline(*np.exp(logs))(arithmetic, memory) / measured - 1.0

    start = np.log([measured.min(), 0.7, 0.7])
    found = least_squares(off, start, loss="soft_l1", f_scale=0.1, bounds=(-12.0, 25.0))
    return CalibratedRoofline(*np.exp(found.x).tolist())


def mean_roofline(devices: list[CalibratedRoofline]) -> CalibratedRoofline:
    """Return the geometric mean of several devices' numbers: what is known of one that was left out."""
    return CalibratedRoofline(*np.exp(np.mean(np.log(devices), axis=0)).tolist())

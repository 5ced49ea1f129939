"""The baseline to beat: a roofline with three numbers a device, overhead, compute and bandwidth efficiency."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares


class CalibratedRoofline(NamedTuple):
    """time = overhead + max(arithmetic / compute, memory / bandwidth); efficiencies are shares of the data sheet."""

    overhead: float
    compute: float
    bandwidth: float

    def __call__(self, arithmetic: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return times from the data sheet's arithmetic and DRAM time of all operands, in the unit of the overhead."""
        return self.overhead + np.maximum(arithmetic / self.compute, memory / self.bandwidth)


def fit_roofline(arithmetic: np.ndarray, memory: np.ndarray, measured: np.ndarray) -> CalibratedRoofline:
    """Return the three numbers that fit a device's rows best, by robust log errors; all in one unit of time."""

    def error(log: np.ndarray) -> np.ndarray:
        return np.log(CalibratedRoofline(*np.exp(log))(arithmetic, memory) / measured)

    least = float(measured.min())
    ends = np.log([[1e-6 * least, 0.01, 0.01], [1e3 * least, 1.5, 1.5]])
    start = np.log([0.5 * least, 0.75, 0.8])
    found = least_squares(error, start, bounds=ends, loss="soft_l1", f_scale=0.05)
    return CalibratedRoofline(*np.exp(found.x).tolist())


def mean_roofline(devices: list[CalibratedRoofline]) -> CalibratedRoofline:
    """Return the geometric mean of several devices' numbers: what is known of one that was left out."""
    return CalibratedRoofline(*np.exp(np.mean(np.log(devices), axis=0)).tolist())

"""The baseline to beat: a roofline with three numbers a device, overhead, compute and bandwidth efficiency."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares, minimize

CORNER = 0.05
"""Log error up to which a row counts by about the error's square, and from which by the error."""

OVERHEADS = (0.02, 0.3, 0.6, 0.9, 1.2, 1.6, 2.2, 3.0)
EFFICIENCIES = (1.0, 0.8, 0.63, 0.5, 0.4, 0.32, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.015)
GRID = np.log([*product(OVERHEADS, EFFICIENCIES, EFFICIENCIES)])
"""Logarithms of starts: overheads over the least measured time, compute and bandwidth efficiencies."""

USUAL = np.log([0.5, 0.75, 0.8])
"""A start that is taken beside the best of the grid."""

ENDS = np.log([[1e-6, 0.01, 0.01], [1e3, 1.5, 1.5]])
"""What the three logarithms stay within."""

DESCENTS = 4
"""Starts of the grid that are descended from."""

MOST, LOOKED_AT = 500, 50
"""Rows, evenly taken, that the whole grid is looked at with where there are more; its starts that all rows look at."""

EQUAL = 1e-9
"""Losses that differ by less are one: the first start then decides what the rows leave open, not rounding."""

STEP = 0.05
"""How far in each logarithm the last search looks at first."""


class CalibratedRoofline(NamedTuple):
    """time = overhead + max(arithmetic / compute, memory / bandwidth); efficiencies are shares of the data sheet."""

    overhead: float
    compute: float
    bandwidth: float

    def __call__(self, arithmetic: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Return times from the data sheet's arithmetic and DRAM time of all operands, in the unit of the overhead."""
        return self.overhead + np.maximum(arithmetic / self.compute, memory / self.bandwidth)


class _Rows(NamedTuple):
    """A device's rows, and what is said of rooflines by the logarithms of their numbers, (3,) or, of n, (3, n, 1)."""

    arithmetic: np.ndarray
    memory: np.ndarray
    measured: np.ndarray

    def error(self, log: np.ndarray) -> np.ndarray:
        """Log errors of the rows."""
        return np.log(CalibratedRoofline(*np.exp(log))(self.arithmetic, self.memory) / self.measured)

    def slope(self, log: np.ndarray) -> np.ndarray:
        """Derivatives of a roofline's errors by the three logarithms."""
        overhead, compute, bandwidth = np.exp(log)
        busy = np.column_stack([self.arithmetic / compute, self.memory / bandwidth])
        longer = busy.max(axis=1, keepdims=True)
        return np.column_stack([np.full(len(busy), overhead), -busy * (busy == longer)]) / (overhead + longer)

    def loss(self, log: np.ndarray) -> np.ndarray:
        """The soft-L1 loss that ``least_squares`` descends."""
        return CORNER**2 * (np.sqrt(1 + (self.error(log) / CORNER) ** 2) - 1).sum(axis=-1)


def fit_roofline(arithmetic: np.ndarray, memory: np.ndarray, measured: np.ndarray) -> CalibratedRoofline:
    """Return the three numbers that fit a device's rows best, by robust log errors; all in one unit of time.

    The loss has several valleys with edges in them, where rounding would choose the end of one descent. So several
    starts descend, the least loss decides, and the rows' order does not count.
    """
    order = np.lexsort((measured, memory, arithmetic))
    rows = _Rows(arithmetic[order], memory[order], measured[order])
    unit = np.array([np.log(rows.measured.min()), 0.0, 0.0])
    ends = [_descended(rows, USUAL + unit, ENDS + unit, "2-point")]
    ends += [_descended(rows, start, ENDS + unit, rows.slope) for start in _starts(rows, GRID + unit)]
    losses = np.array([rows.loss(end) for end in ends])
    best = ends[np.argmax(losses <= losses.min() + EQUAL)]
    return CalibratedRoofline(*np.exp(_polished(rows, best, ENDS + unit)).tolist())


def _starts(rows: _Rows, grid: np.ndarray) -> np.ndarray:
    """The starts of a grid with the least loss: on all rows, of those that have it on every so many rows."""
    few = _Rows(*(column[:: 1 + (len(column) - 1) // MOST] for column in rows))
    return _lowest(rows, _lowest(few, grid, LOOKED_AT), DESCENTS)


def _lowest(rows: _Rows, starts: np.ndarray, count: int) -> np.ndarray:
    return starts[np.argsort(rows.loss(starts.T[:, :, None]), kind="stable")[:count]]


def _descended(rows: _Rows, start: np.ndarray, ends: np.ndarray, slope: Any) -> np.ndarray:
    """Where a descent on all rows stops."""
    return least_squares(rows.error, start, slope, bounds=ends, loss="soft_l1", f_scale=CORNER).x


def _polished(rows: _Rows, found: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The best place near by: a descent by slopes stops early on an edge, where a row goes over to its other bound."""
    inwards = np.where(found + STEP > ends[1], -STEP, STEP)
    options = {"initial_simplex": np.vstack([found, found + np.diag(inwards)]), "xatol": 1e-7, "fatol": 1e-12}
    return minimize(rows.loss, found, method="Nelder-Mead", bounds=ends.T, options=options).x


def mean_roofline(devices: list[CalibratedRoofline]) -> CalibratedRoofline:
    """Return the geometric mean of several devices' numbers: what is known of one that was left out."""
    return CalibratedRoofline(*np.exp(np.mean(np.log(devices), axis=0)).tolist())

"""What runs of whole networks tell of an engine's costs, and which they tell only together."""

from collections.abc import Mapping, Sequence

import numpy as np

from dse.calibration.engine.fit import SCALES
from dse.measured.network_runs.rows import Passes
from dse.workload.serving_engine import COSTS

UNTOLD = 0.5
"""Deviation of a direction, in sizes of its costs, from which on runs do not tell it: an interval of 95 % is the size
itself."""

PART = 0.05
"""Costs that change by less than this share of their size, as a direction changes by 1, are told whatever becomes of
it."""

LEAST_ERROR = 0.03
"""Log error of a run at least: no kernels are predicted nearer than that, however well costs fit a few runs."""

STEP = 1e-4
"""Change of a cost, in sizes, that slopes are taken over."""

FLAT = 1e-12
"""Curvature below which a direction changes no run's time."""


def untold(
    passes: Passes, measured_us: np.ndarray, family: np.ndarray, costs: Mapping[str, float], free: Sequence[str]
) -> dict[str, str]:
    """Return those of the ``free`` costs that the runs do not tell apart, or not at all, and why.

    Directions of Gauss and Newton's curvature of the log times (rows,) in sizes of the costs: runs of one ``family``
    err together, so that a family counts as one run. A cost's size is its value, or what a fit starts from.
    """
    if not free:
        return {}
    size = np.array([max(costs[name], SCALES[name]) for name in free])
    slope, error = _slopes(passes, measured_us, costs, free, size)
    spare = max(len(error) - len(free), 1) / len(error)
    noise = max(1.48 * float(np.median(np.abs(error))) / spare**0.5, LEAST_ERROR)  # of most: a few may be broken
    curvature, directions = np.linalg.eigh(slope.T @ slope / len(slope))
    deviation = noise / np.sqrt(np.maximum(curvature, FLAT) * len(np.unique(family)))
    found: dict[str, str] = {}
    for direction in directions.T[deviation > UNTOLD]:
        moved = np.flatnonzero(np.abs(direction) >= PART)
        names = [free[int(i)] for i in moved]
        why = _why(names, slope[:, moved] / size[moved])
        found = dict.fromkeys(names, why) | found
    return {name: found[name] for name in COSTS if name in found}


def _slopes(
    passes: Passes, measured_us: np.ndarray, costs: Mapping[str, float], free: Sequence[str], size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how the log times change by a size of each free cost (rows, costs), and the log errors (rows,)."""

    def log_us(changed: Mapping[str, float]) -> np.ndarray:
        return np.log(np.bincount(passes.row, passes.total_us(dict(costs) | dict(changed)), len(measured_us)))

    slopes = [
        (log_us({name: costs[name] + STEP * s}) - log_us({name: costs[name] - STEP * s})) / (2 * STEP)
        for name, s in zip(free, size, strict=True)
    ]
    return np.stack(slopes, axis=1), log_us({}) - np.log(measured_us)


def _why(names: Sequence[str], slope: np.ndarray) -> str:
    """Why runs do not tell the named costs, by how their log times change with each (rows, costs)."""
    if len(names) == 1:
        return "no run takes longer by it than its error is"
    if len(names) > 2:
        return f"the runs tell only sums of {', '.join(names)}"
    first, second = map(int, np.argsort(-np.abs(slope).sum(axis=0)))
    ratio = float(slope[:, first] @ slope[:, second] / (slope[:, second] @ slope[:, second]))
    return f"the runs tell only {ratio:.3g} {names[first]} + {names[second]}"

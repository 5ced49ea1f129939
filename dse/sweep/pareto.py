"""Pareto fronts: the non-dominated designs of a set, exact, with ties kept."""

import moocore
import numpy as np


def pareto_mask(costs: np.ndarray) -> np.ndarray:
    """Return which rows of ``costs`` (shape (designs, objectives), all to be minimised) no other row dominates.

    A row dominates another when it is nowhere worse and somewhere better; equal rows are all kept. Raises ValueError
    on NaN, which would silently remove valid rows.
    """
    costs = np.ascontiguousarray(costs, dtype=np.float64)
    if not np.isfinite(costs).all():
        raise ValueError("costs hold NaN or infinity; leave infeasible designs out")
    if len(costs) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(costs, keep_weakly=True))


class FrontBuilder:
    """The front of a set that arrives in chunks: only the rows that are still non-dominated are held."""

    def __init__(self, objectives: int) -> None:
        self._costs = np.empty((0, objectives))
        self._index = np.empty(0, dtype=np.int64)

    def add(self, costs: np.ndarray, index: np.ndarray) -> None:
        """Take a chunk: ``costs`` of shape (designs, objectives) and each design's number."""
        if len(costs) == 0:
            return
        kept = pareto_mask(costs)
        costs = np.vstack([self._costs, costs[kept]])
        index = np.concatenate([self._index, index[kept]])
        alive = pareto_mask(costs)
        self._costs, self._index = costs[alive], index[alive]

    @property
    def index(self) -> np.ndarray:
        """Numbers of the designs on the front, ascending."""
        return np.sort(self._index)


def spread(costs: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of ``count`` rows of a front that lie far apart, the best of each objective first.

    Greedy farthest-point choice on logarithms scaled to the front's box; deterministic.
    """
    if len(costs) <= count:
        return np.arange(len(costs))
    logs = np.log(np.maximum(costs, 1e-300)) if (costs > 0).all() else costs
    low, high = logs.min(axis=0), logs.max(axis=0)
    box = (logs - low) / np.where(high > low, high - low, 1.0)
    chosen = list(dict.fromkeys(int(i) for i in box.argmin(axis=0)))[:count]
    distance = np.min([np.linalg.norm(box - box[i], axis=1) for i in chosen], axis=0)
    while len(chosen) < count:
        farthest = int(distance.argmax())
        chosen.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(box - box[farthest], axis=1))
    return np.asarray(sorted(chosen))

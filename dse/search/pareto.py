"""Fronts of a search: hypervolume, knees, and thinning, on logarithms scaled to a front's box.

:mod:`dse.sweep.pareto` says what a front is. Costs are to be minimised throughout; the logarithm keeps the order, so a
front stays the same front.
"""

from dataclasses import dataclass

import moocore
import numpy as np

from dse.sweep.pareto import FrontBuilder, pareto_mask

REFERENCE = 1.1
"""Reference point of the hypervolume in every objective: a tenth beyond the worst of the front's box."""

CHUNK = 65536
"""Designs whose front is taken at once: small enough for a core's cache (spec speed, section 5)."""


def front(costs: np.ndarray) -> np.ndarray:
    """Return the numbers of the non-dominated rows of ``costs`` (shape (designs, objectives)), ascending, ties kept.

    Exact. Raises ValueError on NaN or infinity.
    """
    builder = FrontBuilder(costs.shape[1])
    for start in range(0, len(costs), CHUNK):
        part = costs[start : start + CHUNK]
        builder.add(part, np.arange(start, start + len(part)))
    return builder.index


@dataclass(frozen=True)
class Box:
    """The box of a front, from its lowest to its highest cost in each objective, shape (objectives,) each.

    ``sign``: 1 where the costs are positive and scaled by their logarithm, -1 where they are negative (an objective
    that is maximised) and scaled by the logarithm of the size, 0 where they are neither and scaled as they are.
    """

    sign: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, costs: np.ndarray) -> "Box":
        """Return the box around ``costs`` (at least one row), which should be a front."""
        sign = np.where((costs > 0).all(axis=0), 1, np.where((costs < 0).all(axis=0), -1, 0))
        logs = _logs(costs, sign)
        return cls(sign, logs.min(axis=0), logs.max(axis=0))

    def __call__(self, costs: np.ndarray) -> np.ndarray:
        """Return ``costs`` scaled: 0 at the front's best, 1 at its worst (and at all of an objective that is flat)."""
        return (_logs(costs, self.sign) - self.low) / np.where(self.high > self.low, self.high - self.low, 1.0)

    def hypervolume(self, costs: np.ndarray, reference: float = REFERENCE) -> float:
        """Return the volume that ``costs`` dominate up to the reference point; the box itself has volume 1."""
        points = self(costs)
        inside = points[(points < reference).all(axis=1)]
        if len(inside) == 0:
            return 0.0
        return float(moocore.hypervolume(np.ascontiguousarray(inside), ref=np.full(points.shape[1], reference)))


def _logs(costs: np.ndarray, sign: np.ndarray) -> np.ndarray:
    sizes = np.log(np.maximum(np.where(sign == 0, 1.0, sign * costs), np.finfo(float).tiny))
    return np.where(sign == 0, costs, sign * sizes)


def box_of(costs: np.ndarray) -> np.ndarray:
    """Return the costs of a front scaled to its own box."""
    return Box.of(costs)(costs)


def knees(costs: np.ndarray, count: int = 5, radius: float = 0.2) -> np.ndarray:
    """Return the positions of up to ``count`` knees of a front, the sharpest first.

    A knee bulges below the plane through the ends of the front (Das, "On characterizing the 'knee' of the Pareto
    curve", 1999): its distance to that plane, in the front's box, is the largest within ``radius``.
    """
    if len(costs) == 0:
        return np.empty(0, np.int64)
    points = box_of(costs)
    depth = (1.0 - points.sum(axis=1)) / np.sqrt(points.shape[1])
    chosen: list[int] = []
    open_ = depth > 1e-9
    while open_.any() and len(chosen) < count:
        deepest = int(np.where(open_, depth, -np.inf).argmax())
        # A slope that only leads up to a knee already taken is no knee.
        near = np.linalg.norm(points - points[deepest], axis=1) <= radius
        if depth[deepest] >= depth[near].max():
            chosen.append(deepest)
        open_ &= ~near
    return np.asarray(chosen, np.int64)


def thin(costs: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the positions of a part of a front that stands for all of it: no row is better than a kept one by more
    than ``epsilon`` of the front's box in any objective.

    The epsilon-dominance archive of Laumanns, Thiele, Deb and Zitzler (2002): one row a cell of a grid of that width,
    the cells non-dominated. The best of each objective stays too. Ascending.
    """
    points = box_of(costs)
    cells = np.floor(points / epsilon).astype(np.int64)
    toward = np.linalg.norm(points / epsilon - cells, axis=1)
    order = np.lexsort((np.arange(len(costs)), toward))
    _, first = np.unique(cells[order], axis=0, return_index=True)
    kept = order[first]
    kept = kept[pareto_mask(cells[kept])]
    return np.union1d(kept, points.argmin(axis=0))


def thin_to(costs: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of at most ``count`` rows of a front (or the best of each objective, if those are more),
    thinned with the least epsilon that a bisection of eight steps finds; ascending."""
    if len(costs) <= count:
        return np.arange(len(costs))
    low, high = 1e-4, 1.0
    best = thin(costs, high)
    for _ in range(8):
        middle = float(np.sqrt(low * high))
        kept = thin(costs, middle)
        if len(kept) <= count:
            best, high = kept, middle
        else:
            low = middle
    return best

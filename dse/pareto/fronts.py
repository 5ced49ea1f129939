"""Fronts of a search: knees, and thinning, on logarithms scaled to a front's box.

:mod:`dse.base.pareto_filter` says what a front is. Costs are to be minimised throughout; the logarithm keeps the
order, so a front stays the same front.
"""

import numpy as np

from dse.base.pareto_filter import Box, FrontBuilder, pareto_mask

EXACT_OBJECTIVES = 3
"""Objectives up to which the hypervolume of a whole front is cheap."""

CHUNK = 65536
"""Designs whose front is taken at once: small enough for a core's cache (docs/model/speed.md 5)."""


def front(costs: np.ndarray) -> np.ndarray:
    """Return the numbers of the non-dominated rows of ``costs`` (shape (designs, objectives)), ascending, ties kept.

    Exact. Raises ValueError on NaN or infinity.
    """
    builder = FrontBuilder(costs.shape[1])
    for start in range(0, len(costs), CHUNK):
        part = costs[start : start + CHUNK]
        builder.add(part, np.arange(start, start + len(part)))
    return builder.index


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
    positions: list[int] = []
    open_ = depth > 1e-9
    while open_.any() and len(positions) < count:
        deepest = int(np.where(open_, depth, -np.inf).argmax())
        # A slope that only leads up to a knee already chosen is no knee.
        near = np.linalg.norm(points - points[deepest], axis=1) <= radius
        if depth[deepest] >= depth[near].max():
            positions.append(deepest)
        open_ &= ~near
    return np.asarray(positions, np.int64)


def thin(costs: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the positions of a thinned front: a row left out is better than some kept one by at most ``epsilon`` of
    the front's box in every objective.

    The epsilon-dominance archive of Laumanns, Thiele, Deb and Zitzler (2002): one row a cell of a grid of that width,
    the cells non-dominated. The best of each objective stays too. Ascending.
    """
    points = box_of(costs)
    cells = np.floor(points / epsilon).astype(np.int64)
    toward = np.linalg.norm(points / epsilon - cells, axis=1)
    order = np.lexsort((np.arange(len(costs)), toward))
    _, first = np.unique(cells[order], axis=0, return_index=True)
    survivors = order[first]
    survivors = survivors[pareto_mask(cells[survivors])]
    return np.union1d(survivors, points.argmin(axis=0))


def hypervolume(box: Box, costs: np.ndarray, most: int) -> float:
    """Return the hypervolume of a front in a box; above EXACT_OBJECTIVES objectives of at most ``most`` of its rows,
    since its exact value takes a time that grows with their power."""
    return box.hypervolume(costs[thin_to(costs, most)] if costs.shape[1] > EXACT_OBJECTIVES else costs)


def thin_to(costs: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of at most ``count`` rows of a front (or the best of each objective, if those are more),
    thinned with the least epsilon that a bisection of eight steps finds; ascending."""
    if len(costs) <= count:
        return np.arange(len(costs))
    low, high = 1e-4, 1.0
    best = thin(costs, high)
    for _ in range(8):
        middle = float(np.sqrt(low * high))
        thinned = thin(costs, middle)
        if len(thinned) <= count:
            best, high = thinned, middle
        else:
            low = middle
    return best

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


KILLERS = 16
"""Members of a front against which designs are held before the exact comparison."""

MANY = 0.1
"""Share of a chunk that is left by the members it is held against, beyond which others are chosen."""

CANDIDATES = 256
"""Members from which they are chosen, and designs on which they are tried."""

WAITING = 16_384
"""Least designs that are compared exactly at once."""


class FrontBuilder:
    """The front of a set that arrives in chunks: only the rows that are still non-dominated are held.

    Most rows of a chunk are dominated by one of a few members that dominate much; only the others wait for the exact
    comparison, until they are as many as the front. The front does not depend on the order of the rows.

    ``killers``: the members that dominate much, shape (few, objectives); rows of another part of the same set, given
    before the first chunk, spare their search, and what they dominate.
    """

    def __init__(self, objectives: int) -> None:
        self._costs = np.empty((0, objectives))
        self._index = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self.killers = self._costs

    def add(self, costs: np.ndarray, index: np.ndarray) -> None:
        """Take a chunk: ``costs`` of shape (designs, objectives) and each design's number; ValueError on NaN."""
        if not np.isfinite(costs).all():
            raise ValueError("costs hold NaN or infinity; leave infeasible designs out")
        kept = self._take(costs, index)
        if kept > MANY * len(costs) and len(costs) > CANDIDATES:
            self._compare()
            self.killers = _strongest(self._costs, costs)

    def _take(self, costs: np.ndarray, index: np.ndarray) -> int:
        """Let rows wait for the exact comparison, but those that are dominated anyway; return how many they are."""
        kept = _not_dominated(costs, self.killers)
        if len(kept):
            self._waiting.append((costs[kept], index[kept]))
        if self.held - len(self._index) > max(WAITING, len(self._index)):
            self._compare()
        return len(kept)

    @property
    def held(self) -> int:
        """Rows in memory: at least those of the front."""
        return len(self._index) + sum(len(index) for _, index in self._waiting)

    def _compare(self) -> None:
        """Compare the front and all that waits exactly."""
        if not self._waiting:
            return
        costs = np.vstack([self._costs, *(costs for costs, _ in self._waiting)])
        index = np.concatenate([self._index, *(index for _, index in self._waiting)])
        self._waiting = []
        alive = pareto_mask(costs)
        self._costs, self._index = costs[alive], index[alive]

    def merge(self, other: "FrontBuilder") -> None:
        """Take the rows of another front."""
        other._compare()
        self._take(other._costs, other._index)

    def __len__(self) -> int:
        self._compare()
        return len(self._index)

    @property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the designs on the front, ascending, and their costs, shape (designs, objectives)."""
        self._compare()
        order = np.argsort(self._index)
        return self._index[order], self._costs[order]

    @property
    def index(self) -> np.ndarray:
        """Numbers of the designs on the front, ascending."""
        return self.members[0]


def _not_dominated(costs: np.ndarray, killers: np.ndarray) -> np.ndarray:
    """Return the positions of the rows that none of ``killers`` dominates."""
    alive = np.arange(len(costs))
    columns = [np.ascontiguousarray(column) for column in costs.T]
    for killer in killers:
        better, worse = np.zeros(len(alive), bool), np.zeros(len(alive), bool)
        for column, cost in zip(columns, killer, strict=True):
            better |= column < cost
            worse |= column > cost
        kept = better | ~worse
        if not kept.all():
            alive, columns = alive[kept], [column[kept] for column in columns]
    return alive


def _strongest(front: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the rows of a front that together dominate most of a sample of ``costs``, the strongest first."""
    members, probes = front[:: 1 + len(front) // CANDIDATES], costs[:: 1 + len(costs) // CANDIDATES]
    better, worse = np.zeros((2, len(members), len(probes)), bool)
    for member, probe in zip(members.T, probes.T, strict=True):
        better |= probe < member[:, None]
        worse |= probe > member[:, None]
    dominated, chosen = worse & ~better, []
    while len(chosen) < KILLERS and dominated.any():
        chosen.append(int(dominated.sum(axis=1).argmax()))
        dominated = dominated[:, ~dominated[chosen[-1]]]
    return members[chosen]


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

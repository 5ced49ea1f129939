"""Pareto fronts: the non-dominated designs of a set, exact, with ties kept; a front's box, and what lies far apart."""

from dataclasses import dataclass
from typing import Any

import moocore
import numpy as np

from dse.base.errors import InputError, shown


def pareto_mask(costs: np.ndarray) -> np.ndarray:
    """Return which rows of ``costs`` (shape (designs, objectives), all to be minimised) no other row dominates.

    A row dominates another when it is nowhere worse and somewhere better; equal rows are all kept. Raises InputError
    on what is no such array, and ValueError on NaN, which would silently remove valid rows, and on infinity.
    """
    costs = _as_costs(costs)
    if not np.isfinite(costs).all():
        raise ValueError("costs hold NaN or infinity; leave infeasible designs out")
    if len(costs) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(moocore.is_nondominated(costs, keep_weakly=True))


def _as_costs(costs: Any) -> np.ndarray:
    try:
        found = np.ascontiguousarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 2 and found.shape != (0,):
        raise InputError(f"costs = {shown(costs)} is not accepted; give an array of shape (designs, objectives)")
    return found


KILLERS = 16
"""Designs against which others are held before the exact comparison."""

MANY = 0.02
"""Share of a chunk that is left by those it is held against, beyond which others are chosen, from what is left."""

ROUNDS = 3
"""Times that others are chosen for one chunk."""

ENOUGH = 2048
"""Designs that are compared exactly in the time that the choice takes."""

CANDIDATES = 4096
"""Most designs from which they are chosen."""

STRESS = 15.0
"""Weight of one objective above the others' in that choice."""

WAITING = 16_384
"""Least designs that are compared exactly at once."""


class FrontBuilder:
    """The front of a set that arrives in chunks: only the rows that are still non-dominated are held.

    Most rows of a chunk are dominated by one of a few that dominate much; only the others wait for the exact
    comparison, until they are as many as the front. The front does not depend on the order of the rows.

    ``killers``: rows that dominate much, shape (few, objectives), the strongest first; rows of another part of the
    same set, given before the first chunk, spare their search, and what they dominate.
    """

    def __init__(self, objectives: int) -> None:
        self._costs = np.empty((0, objectives))
        self._index = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._pending = 0  # rows that wait
        self.killers = self._costs

    def add(self, costs: np.ndarray, index: np.ndarray) -> None:
        """Take a chunk: ``costs`` of shape (designs, objectives) and each design's number; ValueError on NaN."""
        if not np.isfinite(costs).all():
            raise ValueError("costs hold NaN or infinity; leave infeasible designs out")
        if len(costs) > ENOUGH:
            kept = self._thinned(np.require(costs.T, np.float64, ["C", "W"]))
            costs, index = costs[kept], index[kept]
        self._wait(costs, index)

    def _thinned(self, columns: np.ndarray) -> np.ndarray:
        """Return the positions of the rows that no killer dominates, having looked for better ones where many are."""
        kept, kills = _not_dominated(columns, self.killers)
        killers = self.killers[np.argsort(-kills, kind="stable")][: np.count_nonzero(kills)]
        most = max(MANY * columns.shape[1], ENOUGH)
        for _ in range(ROUNDS):
            if len(kept) <= most:
                break
            left, before = np.take(columns, kept, axis=1), len(kept)
            found = _leaders(left[:, :: 1 + before // CANDIDATES])
            still, kills = _not_dominated(left, found)
            kept, killers = kept[still], np.concatenate([found[kills > 0], killers])
            if 2 * len(kept) > before:
                break
        if len(killers):
            self.killers = killers[:KILLERS]
        return kept

    def _wait(self, costs: np.ndarray, index: np.ndarray) -> None:
        """Let rows wait for the exact comparison."""
        if len(index):
            self._waiting.append((costs, index))
            self._pending += len(index)
        if self._pending > max(WAITING, len(self._index)):
            self._compare()

    @property
    def rows(self) -> int:
        """Rows in memory: at least those of the front."""
        return len(self._index) + self._pending

    def _compare(self) -> None:
        """Compare the front and all that waits exactly."""
        if not self._waiting:
            return
        costs = np.vstack([self._costs, *(costs for costs, _ in self._waiting)])
        index = np.concatenate([self._index, *(index for _, index in self._waiting)])
        self._waiting, self._pending = [], 0
        alive = pareto_mask(costs)
        self._costs, self._index = costs[alive], index[alive]

    def merge(self, other: "FrontBuilder") -> None:
        """Take the rows of another front."""
        other._compare()
        if self.rows:
            self._wait(other._costs, other._index)
        else:
            self._costs, self._index = other._costs, other._index

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


def _not_dominated(columns: np.ndarray, killers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the designs that no row of ``killers`` dominates, and how many designs each row did.

    ``columns``: shape (objectives, designs). Those that a row dominates are not held against the next.
    """
    kept, kills = np.arange(columns.shape[1]), np.zeros(len(killers), np.int64)
    for number, killer in enumerate(killers[:, :, None]):
        dominated = (columns >= killer).all(axis=0) & (columns > killer).any(axis=0)
        kills[number] = np.count_nonzero(dominated)
        if kills[number]:
            kept, columns = kept[~dominated], np.compress(~dominated, columns, axis=1)
    return kept, kills


def _leaders(columns: np.ndarray) -> np.ndarray:
    """Return rows that dominate much of ``columns``: the best of all objectives together, and with stress on each."""
    low, high = columns.min(axis=1, keepdims=True), columns.max(axis=1, keepdims=True)
    box = (columns - low) / np.where(high > low, high - low, 1.0)
    total = box.sum(axis=0)
    places = [int(total.argmin()), *(int((total + STRESS * one).argmin()) for one in box)]
    return np.ascontiguousarray(columns[:, list(dict.fromkeys(places))].T)


REFERENCE = 1.1
"""Reference point of the hypervolume in every objective: a tenth beyond the worst of the front's box."""


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

    def hypervolume(self, costs: np.ndarray) -> float:
        """Return the volume that ``costs`` dominate up to the reference point; the box itself has volume 1."""
        points = self(costs)
        inside = points[(points < REFERENCE).all(axis=1)]
        if len(inside) == 0:
            return 0.0
        return float(moocore.hypervolume(np.ascontiguousarray(inside), ref=np.full(points.shape[1], REFERENCE)))


def _logs(costs: np.ndarray, sign: np.ndarray) -> np.ndarray:
    sizes = np.log(np.maximum(np.where(sign == 0, 1.0, sign * costs), np.finfo(float).tiny))
    return np.where(sign == 0, costs, sign * sizes)


def spread(costs: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of ``count`` rows of a front that lie far apart, the best of each objective first.

    Greedy farthest-point choice in the front's :class:`Box`; deterministic.
    """
    if len(costs) <= count:
        return np.arange(len(costs))
    box = Box.of(costs)(costs)
    chosen = list(dict.fromkeys(int(i) for i in box.argmin(axis=0)))[:count]
    distance = np.min([np.linalg.norm(box - box[i], axis=1) for i in chosen], axis=0)
    distance[chosen] = -1.0
    while len(chosen) < count:
        farthest = int(distance.argmax())
        chosen.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(box - box[farthest], axis=1))
        distance[chosen] = -1.0  # where all that is left lies on those chosen, each comes once
    return np.asarray(sorted(chosen))

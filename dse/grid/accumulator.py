"""What a sweep accumulates over designs: the front, the best, statistics of the axes, counts of reasons."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dse.base.errors import InputError
from dse.base.pareto_filter import FrontBuilder
from dse.grid.statistics import AxisStatistics

TOP = 10
"""Designs kept of each objective: the best, of equal ones the first of the grid."""

NONE = np.iinfo(np.int64).max
"""Stands for the number of a design where there are fewer."""

LARGEST_FRONT = 2_000_000
"""Most designs on a front: beyond, they do not stay in memory."""


class Accumulator:
    """The front, the best and the statistics of a set of designs, in memory that grows with the front alone.

    Accumulators of different designs can be merged; the order of the designs does not matter.
    """

    def __init__(self, lengths: Sequence[int], signs: Sequence[float]) -> None:
        self.signs = np.asarray(signs, float)
        self.front = FrontBuilder(len(signs))
        self.axes = AxisStatistics(tuple(lengths), len(signs))
        self.reasons: Counter[str] = Counter()
        self._top = [(np.full(TOP, np.inf), np.full(TOP, NONE)) for _ in signs]

    def add(self, start: int, feasible: np.ndarray, values: np.ndarray) -> None:
        """Take designs from number ``start`` of the grid on; ``values``: objectives, shape (objectives, designs)."""
        costs = self.signs[:, None] * values
        self.axes.add(start, feasible, values, costs)
        numbers = np.arange(start, start + len(feasible))
        if not feasible.all():
            numbers, costs = numbers[feasible], np.compress(feasible, costs, axis=1)
        self.add_best(numbers, costs)

    def add_best(self, numbers: np.ndarray, costs: np.ndarray) -> None:
        """Take feasible designs, but for the statistics of the axes; ``costs`` (objectives, designs)."""
        self.front.add(costs.T, numbers)
        for best, column in zip(self._top, costs, strict=True):
            keep_best(*best, column, numbers)

    def merge(self, other: "Accumulator") -> None:
        """Take the designs of another accumulator; raises InputError where the front grows beyond memory."""
        self.front.merge(other.front)
        if self.front.rows > LARGEST_FRONT and len(self.front) > LARGEST_FRONT:
            raise InputError(
                f"more than {LARGEST_FRONT:,} designs are equally good; leave out axes that move no objective, or add "
                "a constraint"
            )
        self.axes.merge(other.axes)
        self.reasons.update(other.reasons)
        for mine, theirs in zip(self._top, other._top, strict=True):
            keep_best(*mine, *map(np.array, theirs))  # what came from another process may be read-only

    def top(self, objective: int) -> np.ndarray:
        """Return the numbers of the best designs of one objective, the best first."""
        _, numbers = self._top[objective]
        return numbers[numbers != NONE]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all of it as arrays, from which :meth:`restore` makes an equal accumulator."""
        numbers, costs = self.front.members
        top = {f"top_{i}_{part}": a for i, pair in enumerate(self._top) for part, a in zip("cn", pair, strict=True)}
        reasons = np.frombuffer(json.dumps(self.reasons).encode(), np.uint8)
        return {"front": numbers, "costs": costs, "reasons": reasons, **self.axes.arrays(), **top}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what :meth:`arrays` returned, into an accumulator of no designs."""
        self.front.add(arrays["costs"], arrays["front"])
        self.reasons.update(json.loads(bytes(arrays["reasons"])))
        self.axes.restore(arrays)
        for objective, best in enumerate(self._top):
            keep_best(*best, arrays[f"top_{objective}_c"], arrays[f"top_{objective}_n"])


def keep_best(best: np.ndarray, of: np.ndarray, costs: np.ndarray, numbers: np.ndarray) -> None:
    """Sort designs into the ``best`` costs and the numbers they are ``of``: by cost, then by number; each once."""
    some = (costs <= best[-1]) & (numbers != NONE)
    if np.count_nonzero(some) > len(best):  # beyond the last of so many costs there is none of the best
        some &= costs <= np.partition(costs[some], len(best) - 1)[len(best) - 1]
    if not some.any():
        return
    candidates = np.concatenate([of, numbers[some]])
    each, place = np.unique(candidates, return_index=True)
    cost = np.concatenate([best, costs[some]])[place]
    order = np.lexsort((each, cost))[: len(best)]
    best[: len(order)], of[: len(order)] = cost[order], each[order]

"""What is kept of designs that are not kept themselves: the front, the best, statistics of axes, counts of reasons."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from dse.errors import InputError
from dse.sweep.pareto import FrontBuilder
from dse.sweep.statistics import AxisStatistics

TOP = 10
"""Designs kept of each objective: the best, of equal ones the first of the grid."""

LARGEST_FRONT = 2_000_000
"""Most designs on a front: beyond, they do not stay in memory."""


class Fold:
    """What a set of designs comes down to, in memory that does not grow with them (but with their front).

    Two folds of different designs make one; the order in which designs come does not matter.
    """

    def __init__(self, lengths: Sequence[int], signs: Sequence[float]) -> None:
        self.signs = np.asarray(signs, float)
        self.front = FrontBuilder(len(signs))
        self.axes = AxisStatistics(tuple(lengths), len(signs))
        self.reasons: Counter[str] = Counter()
        self._top = [(np.empty(0), np.empty(0, np.int64)) for _ in signs]

    def add(self, start: int, digits: Sequence[np.ndarray], feasible: np.ndarray, values: np.ndarray) -> None:
        """Take designs from number ``start`` on; ``values``: objectives, shape (objectives, designs)."""
        self.axes.add(digits, feasible, values, self.signs)
        numbers = np.arange(start, start + len(feasible))
        costs = self.signs[:, None] * values
        if not feasible.all():
            numbers, costs = numbers[feasible], costs[:, feasible]
        self.front.add(costs.T, numbers)
        for objective, column in enumerate(costs):
            self._keep_best(objective, column, numbers)

    def merge(self, other: "Fold") -> None:
        """Take the designs of another fold; raises InputError where the front grows beyond memory."""
        self.front.merge(other.front)
        if self.front.held > LARGEST_FRONT and len(self.front) > LARGEST_FRONT:
            raise InputError(
                f"more than {LARGEST_FRONT:,} designs are equally good; leave out axes that move no objective, or add "
                "a constraint"
            )
        self.axes.merge(other.axes)
        self.reasons.update(other.reasons)
        for objective, (costs, numbers) in enumerate(other._top):
            self._keep_best(objective, costs, numbers)

    def top(self, objective: int) -> np.ndarray:
        """Return the numbers of the best designs of one objective, the best first."""
        return self._top[objective][1]

    def _keep_best(self, objective: int, costs: np.ndarray, numbers: np.ndarray) -> None:
        best, of = self._top[objective]
        if len(best) == TOP:
            near = costs <= best[-1]
            costs, numbers = costs[near], numbers[near]
        if len(costs) > TOP:
            near = costs <= np.partition(costs, TOP - 1)[TOP - 1]
            costs, numbers = costs[near], numbers[near]
        costs, numbers = np.concatenate([best, costs]), np.concatenate([of, numbers])
        order = np.lexsort((numbers, costs))[:TOP]
        self._top[objective] = costs[order], numbers[order]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all of it as arrays, from which :meth:`restore` makes an equal fold."""
        numbers, costs = self.front.members
        top = {f"top_{i}_{part}": a for i, pair in enumerate(self._top) for part, a in zip("cn", pair, strict=True)}
        reasons = np.frombuffer(json.dumps(self.reasons).encode(), np.uint8)
        return {"front": numbers, "costs": costs, "reasons": reasons, **self.axes.arrays(), **top}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what :meth:`arrays` returned, into a fold of no designs."""
        self.front.add(arrays["costs"], arrays["front"])
        self.reasons.update(json.loads(bytes(arrays["reasons"])))
        self.axes.restore(arrays)
        for objective in range(len(self._top)):
            self._keep_best(objective, arrays[f"top_{objective}_c"], arrays[f"top_{objective}_n"])

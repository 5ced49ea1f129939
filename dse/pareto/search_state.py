"""The state of a search, which depends on its finished batches alone, so that a resumed search has the same."""

import numpy as np

from dse.base.pareto_filter import Box
from dse.pareto.fronts import hypervolume
from dse.pareto.local_search import LocalSearch, SearchGrid
from dse.space.space import Space

THINNED = 500
"""Members that stand for the front where the hypervolume of a whole one is dear."""

GROWTH = 1.1
"""The hypervolume is taken again when so many times the designs have been evaluated."""


def grid_of(space: Space) -> SearchGrid:
    """Return the grid of a space's axes; an axis of names, or of numbers in no order, has no neighbours."""

    def ordered(numbers: np.ndarray) -> bool:
        steps = np.diff(numbers)
        return bool((steps > 0).all() or (steps < 0).all())

    plain = [not (axis.attribute.choices or axis.attribute.type == "bool") for axis in space.axes]
    ordered_axes = [p and ordered(np.asarray(a.numbers)) for p, a in zip(plain, space.axes, strict=True)]
    return SearchGrid(np.asarray([len(axis) for axis in space.axes], np.int64), np.asarray(ordered_axes, bool))


class SearchState:
    """The state of a search: its front (``local``), the ``designs`` evaluated, their ``count``, the ``hypervolume``.

    The hypervolume is in the box of the first batch's front, reference point 1.1: it compares batches of one search,
    and searches that share their first batch.
    """

    def __init__(self, space: Space) -> None:
        self.local = LocalSearch(grid_of(space))
        self.designs: list[np.ndarray] = []
        self.count = 0
        self.hypervolume = 0.0
        self._box: Box | None = None
        self._counted_at = 0

    def add(self, index: np.ndarray, entrants: np.ndarray, costs: np.ndarray, violation: np.ndarray) -> np.ndarray:
        """Add a batch: all its designs, and ``entrants`` that may enter the front with costs and violation.

        Returns the positions among ``entrants`` of those that entered.
        """
        self.designs.append(index)
        self.count += len(index)
        fresh = self._fresh(entrants)
        self.local.evaluated.add(index)
        entered = fresh[self.local.tell(entrants[fresh], costs[fresh], violation[fresh])]
        self._measure()
        return entered

    def _fresh(self, entrants: np.ndarray) -> np.ndarray:
        """Return the positions of designs that are not on the front yet: samplers and workers repeat designs."""
        fresh = np.sort(np.unique(entrants, return_index=True)[1])
        maybe = self.local.evaluated.has(entrants[fresh])
        maybe[maybe] = np.isin(entrants[fresh][maybe], self.local.index)
        return fresh[~maybe]

    @property
    def feasible(self) -> bool:
        """Whether a feasible design has been evaluated."""
        return len(self.local.index) > 0 and not self.local.violation[0]

    def measured(self) -> float:
        """Return the hypervolume of the front as it stands, taken again where it is of an earlier one."""
        if self.feasible and self._counted_at < self.count:
            self._update_hypervolume()
        return self.hypervolume

    def _measure(self) -> None:
        if self.feasible and self.count >= GROWTH * self._counted_at:
            self._update_hypervolume()

    def _update_hypervolume(self) -> None:
        costs = self.local.costs
        self._box, self._counted_at = self._box or Box.of(costs), self.count
        self.hypervolume = hypervolume(self._box, costs, THINNED)

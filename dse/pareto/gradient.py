"""Gradient refinement: from the members of a front, descent in all objectives at once between the grid's values.

The direction comes from the smooth model (:mod:`dse.pareto.smoothed`); every step is evaluated exactly, and taken only
when the new design can be had and dominates the one before it. What is found dominates where it began.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dse.base.pareto_filter import Box, pareto_mask
from dse.base.units import signed
from dse.pareto.batch import BatchModel, EvaluatedDesigns
from dse.pareto.common_descent import common_descent
from dse.pareto.fronts import hypervolume, thin_to
from dse.pareto.smoothed import Smoothed, continuous_axes
from dse.space import designs
from dse.space.space import Space

STEPS = 32
"""Steps from every member."""

FIRST, SHRINK, GROW, LAST = 0.05, 0.4, 1.6, 1e-3
"""Length of the first step in the unit box of the axes, its factor after a refused and after a taken one, and the
length below which a descent ends."""

LEAST_GAIN = 1e-4
"""What a design must be better by, relative, in one objective at least: less is not worth leaving the grid for."""

NEAR = 0.02
"""A constraint that is closer than this, relative, is kept away from: a member that lies so near one and could gain
along it is left as it is."""

LEAN, HOLD = 0.1, 5.0
"""Weights of an objective that a descent leans to, and of a constraint that it only has to hold."""

LANES = 8192
"""Descents at most: beyond, members begin fewer of them, and then not all members begin one."""

EXACT_MEMBERS = 2000
"""Members beyond which the hypervolume in more than three objectives is that of a thinned front."""

OFF_GRID = "off_grid"
"""Column of a refined front: whether a design lies between the grid's values."""


@dataclass(frozen=True)
class Refinement:
    """What refinement found.

    ``axes``: the continuous ones; ``members`` of the front that descents ``began`` from, and how many of them
    ``improved``: a design dominates them; ``off_grid``: designs found that stand on the front; ``evaluations``: exact
    ones; ``before`` and ``after``: hypervolume in the box of the front before, reference point 1.1. ``table``: the
    front, the given members first, as a sweep writes it with a column ``off_grid``; ``successors``: axis -> for
    each member its number in a design that dominates the member, nan where none was found.
    """

    axes: tuple[str, ...]
    members: int
    began: int
    improved: int
    off_grid: int
    evaluations: int
    before: float
    after: float
    table: pa.Table = field(repr=False)
    successors: dict[str, np.ndarray] = field(repr=False)

    @property
    def gain(self) -> float:
        """What the hypervolume gained."""
        return self.after - self.before

    def record(self) -> dict[str, Any]:
        """Return what a run record holds."""
        return {
            "axes": list(self.axes),
            "members": self.members,
            "began": self.began,
            "improved": self.improved,
            "off_grid": self.off_grid,
            "evaluations": self.evaluations,
            "hypervolume_before": self.before,
            "hypervolume_after": self.after,
            "gain": self.gain,
        }

    def sentence(self) -> str:
        """Return what was gained in a sentence, also when it is nothing."""
        if not self.axes:
            return "refinement: no axis is a real number, so nothing lies between the grid's values; gain 0"
        if not self.members:
            return "refinement: the front is empty, so there is nothing to begin from; gain 0"
        began = "" if self.began == self.members else f" ({self.began:,} were tried)"
        share = f" ({signed(100 * self.gain / self.before, 2)} %)" if self.before > 0 else ""
        return (
            f"refinement: {self.improved:,} of {self.members:,} members{began} are dominated by a design between the "
            f"grid's values; hypervolume {self.before:.4f} to {self.after:.4f}{share}, {self.off_grid:,} designs off "
            f"the grid, {self.evaluations:,} evaluations"
        )


def refine(space: Space, axes: Mapping[str, np.ndarray], model: BatchModel | None = None) -> Refinement:
    """Return the refinement of a front, given as the numbers of its members on every axis.

    ``model``: the space's, where it is compiled already.
    """
    model = model or BatchModel(space, 512)
    names = tuple(axis.name for axis in continuous_axes(space))
    columns = designs.with_links(space, {axis.name: np.asarray(axes[axis.name], float) for axis in space.axes})
    count = len(next(iter(columns.values()), ()))
    if not count:
        return _unmoved(space, names, model.table(model.baseline()).slice(0, 0), 0.0)
    origin = model.of(np.full(count, -1), columns)
    if not names:
        volume = hypervolume(Box.of(origin.costs), origin.costs, EXACT_MEMBERS)
        return _unmoved(space, names, model.table(origin), volume)
    found = _Descents(space, model, origin)
    found.run()
    return found.refinement()


def _unmoved(space: Space, names: tuple[str, ...], table: pa.Table, volume: float) -> Refinement:
    """The refinement of a front that nothing can begin from."""
    nothing = {axis.name: np.full(len(table), np.nan) for axis in space.axes}
    marked = table.append_column(OFF_GRID, pa.array(np.zeros(len(table), bool)))
    return Refinement(names, len(table), 0, 0, 0, 0, volume, volume, marked, nothing)


class _Descents:
    """Lanes that descend together: ``member`` where each began, ``columns`` and ``costs`` where it stands."""

    def __init__(self, space: Space, model: BatchModel, origin: EvaluatedDesigns) -> None:
        self.space, self.model, self.origin = space, model, origin
        self.count, self.evaluations = len(origin.costs), 0
        self.box = Box.of(origin.costs)
        self.member, self.lean = self._lanes()
        self.smooth = Smoothed(space, model.base_results)
        self.columns = {name: np.asarray(values, float)[self.member] for name, values in origin.columns.items()}
        self.places = self.smooth.coordinates.places(self.columns)
        self.costs = origin.costs[self.member]

    def _lanes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the member and the lean of every lane: one in all objectives alike, one leaning to each."""
        objectives = len(self.space.objectives)
        kinds = np.arange(-1, objectives) if objectives > 1 else np.asarray([-1])
        kinds = kinds[: max(1, LANES // self.count)]
        members = np.arange(self.count)
        if self.count > LANES:
            members = thin_to(self.origin.costs, LANES)
        return np.repeat(members, len(kinds)), np.tile(kinds, len(members))

    def run(self) -> None:
        """Take the steps; a lane whose steps grow short, or that has no direction, ends."""
        step, active = np.full(len(self.member), FIRST), np.arange(len(self.member))
        direction, stale = np.zeros_like(self.places), np.ones(len(self.member), bool)
        for _ in range(STEPS):
            asked = active[stale[active]]
            if len(asked):
                direction[asked] = self._directions(asked)
            active = active[(np.abs(direction[active]).max(axis=1) > 0) & (step[active] >= LAST)]
            if not len(active):
                break
            taken = self._try(active, step[active, None] * direction[active])
            stale[active] = taken
            step[active] *= np.where(taken, GROW, SHRINK)

    def _directions(self, lanes: np.ndarray) -> np.ndarray:
        """Return directions of length 1 in the largest axis, zero where a lane stands where nothing is to be gained."""
        columns = {name: values[lanes] for name, values in self.columns.items()}
        found = self.smooth(self.places[lanes], self.smooth.staying(columns))
        objectives = len(self.space.objectives)
        costs, slopes = self.costs[lanes], found.slopes.copy()
        # In logarithms where the box has them, each objective by the front's extent.
        slopes[:, :objectives] /= np.where(self.box.sign == 0, 1.0, np.maximum(np.abs(costs), 1e-30))[:, :, None]
        slopes[:, :objectives] /= np.where(self.box.high > self.box.low, self.box.high - self.box.low, 1.0)[:, None]
        leaning = self.lean[lanes][:, None] == np.arange(objectives)
        slopes[:, :objectives] *= np.where(leaning, LEAN, 1.0)[:, :, None]
        slopes[:, objectives:] *= HOLD
        counted = np.ones(slopes.shape[:2], bool)
        counted[:, objectives:] = found.values[:, objectives:] > -NEAR
        direction = common_descent(np.nan_to_num(slopes, posinf=0.0, neginf=0.0), counted, self.places[lanes])
        return direction / np.maximum(np.abs(direction).max(axis=1, keepdims=True), 1e-30)

    def _try(self, lanes: np.ndarray, move: np.ndarray) -> np.ndarray:
        """Evaluate lanes moved, exactly; those that dominate where they stood stand there now. Returns which."""
        numbers = self.smooth.coordinates.columns(np.clip(self.places[lanes] + move, 0.0, 1.0))
        axes = {axis.name: numbers.get(axis.name, self.columns[axis.name][lanes]) for axis in self.space.axes}
        columns = designs.with_links(self.space, axes)
        evaluated = self.model.of(np.full(len(lanes), -1), columns)
        self.evaluations += len(lanes)
        taken = (evaluated.violation == 0) & dominates(evaluated.costs, self.costs[lanes])
        into = lanes[taken]
        for name, values in columns.items():
            self.columns[name][into] = values[taken]
        self.costs[into] = evaluated.costs[taken]
        self.places[into] = self.smooth.coordinates.places(self.columns)[into]
        return taken

    def refinement(self) -> Refinement:
        """Return what stands on the front after all."""
        moved = np.flatnonzero(dominates(self.costs, self.origin.costs[self.member]))
        axes = np.stack([self.columns[axis.name][moved] for axis in self.space.axes], axis=1)
        found = moved[np.sort(np.unique(axes, axis=0, return_index=True)[1])]
        costs = np.vstack([self.origin.costs, self.costs[found]])
        kept = np.flatnonzero(pareto_mask(costs))
        on, off = kept[kept < self.count], found[kept[kept >= self.count] - self.count]
        before, after = (hypervolume(self.box, c, EXACT_MEMBERS) for c in (self.origin.costs, costs[kept]))
        return Refinement(
            tuple(self.smooth.coordinates.names),
            self.count,
            len(np.unique(self.member)),
            len(np.unique(self.member[moved])),
            int(self._between(off).sum()),
            self.evaluations,
            before,
            after,
            self._table(on, off),
            self._successors(moved),
        )

    def _between(self, lanes: np.ndarray) -> np.ndarray:
        """Which lanes stand between the grid's values; one that went from end to end of an axis does not."""
        on = [np.isin(self.columns[axis.name][lanes], axis.numbers) for axis in continuous_axes(self.space)]
        return ~np.all(on, axis=0)

    def _table(self, on: np.ndarray, off: np.ndarray) -> pa.Table:
        """Members of the front, then lanes that left it, evaluated once more, marked."""
        parts = [self.model.table(self.origin).take(on)]
        if len(off):
            columns = {name: values[off] for name, values in self.columns.items()}
            parts.append(self.model.table(self.model.of(np.full(len(off), -1), columns)))
        table = pa.concat_tables(parts).unify_dictionaries()
        return table.append_column(OFF_GRID, pa.array(np.append(np.zeros(len(on), bool), self._between(off))))

    def _successors(self, moved: np.ndarray) -> dict[str, np.ndarray]:
        numbers = {axis.name: np.full(self.count, np.nan) for axis in self.space.axes}
        for name, values in numbers.items():
            values[self.member[moved]] = self.columns[name][moved]
        return numbers


def dominates(costs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which rows of ``costs`` are no worse than their row of ``others``, and better by LEAST_GAIN in one."""
    no_worse = np.all(costs <= others, axis=1)
    return no_worse & np.any(others - costs > LEAST_GAIN * np.abs(others), axis=1)

"""Gradient refinement: from the members of a front, descent in all objectives at once between the grid's values.

The direction comes from the smooth model (:mod:`dse.pareto.smooth_model`); every step is evaluated exactly, and
accepted only where the new design is feasible and dominates the one before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dse.base.pareto_filter import Box, pareto_mask
from dse.base.units import signed
from dse.pareto.batch_model import BatchModel, EvaluatedDesigns
from dse.pareto.common_descent import common_descent
from dse.pareto.fronts import hypervolume, thin_to
from dse.pareto.smooth_model import Smoothed, continuous_axes
from dse.space import designs
from dse.space.space import Space

STEPS = 32
"""Steps from every member."""

FIRST, SHRINK, GROW, LAST = 0.05, 0.4, 1.6, 1e-3
"""Length of the first step in the unit box of the axes, its factor after a refused and after an accepted one, and the
length below which a descent ends."""

LEAST_GAIN = 1e-4
"""What a design must be better by, relative, in one objective at least: less is not worth leaving the grid for."""

NEAR = 0.02
"""A descent keeps this distance from constraints, relative; a member nearer to one stays as it is if it could gain only
along it."""

LEAN_WEIGHT, KEEP_WEIGHT = 0.1, 5.0
"""Weights of an objective that a descent prefers, and of a constraint that it only has to satisfy."""

LANES = 8192
"""Descents at most: beyond, members begin fewer of them, and then not all members begin one."""

EXACT_MEMBERS = 2000
"""Members beyond which the hypervolume in more than three objectives is that of a thinned front."""

OFF_GRID = "off_grid"
"""Column of a refined front: whether a design lies between the grid's values."""


@dataclass(frozen=True)
class Refinement:
    """The result of refining a front between the grid's values."""

    axes: tuple[str, ...]  # the continuous ones
    members: int  # of the front before
    began: int  # members that a descent began from
    improved: int  # members that a new design dominates
    off_grid: int  # new designs on the front
    evaluations: int  # exact ones
    before: float  # hypervolume in the box of the front before, reference point 1.1
    after: float  # the same of the front after
    # The front as a sweep writes it, the given members first, with a column off_grid.
    table: pa.Table = field(repr=False)
    # Axis -> (members,): its number in a design that dominates the member, NaN where there is none.
    successors: dict[str, np.ndarray] = field(repr=False)

    @property
    def gain(self) -> float:
        """The growth of the hypervolume."""
        return self.after - self.before

    def record(self) -> dict[str, Any]:
        """Return the refinement as a run's record holds it."""
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
        """Return a sentence on the gain, also where it is 0."""
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
        return _without_descents(space, names, model.table(model.baseline()).slice(0, 0), 0.0)
    origin = model.of(np.full(count, -1), columns)
    if not names:
        volume = hypervolume(Box.of(origin.costs), origin.costs, EXACT_MEMBERS)
        return _without_descents(space, names, model.table(origin), volume)
    descents = _Descents(space, model, origin)
    descents.run()
    return descents.refinement()


def _without_descents(space: Space, names: tuple[str, ...], table: pa.Table, volume: float) -> Refinement:
    """Return the refinement of a front from which no descent can begin."""
    nothing = {axis.name: np.full(len(table), np.nan) for axis in space.axes}
    marked = table.append_column(OFF_GRID, pa.array(np.zeros(len(table), bool)))
    return Refinement(names, len(table), 0, 0, 0, 0, volume, volume, marked, nothing)


class _Descents:
    """Descents that run together: the ``member`` that each began from, its present ``columns`` and ``costs``."""

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
        """Return each descent's member and preferred objective: one without (-1), and one for every objective."""
        objectives = len(self.space.objectives)
        kinds = np.arange(-1, objectives) if objectives > 1 else np.asarray([-1])
        kinds = kinds[: max(1, LANES // self.count)]
        members = np.arange(self.count)
        if self.count > LANES:
            members = thin_to(self.origin.costs, LANES)
        return np.repeat(members, len(kinds)), np.tile(kinds, len(members))

    def run(self) -> None:
        """Step until every descent has no direction or steps that are too short."""
        step, active = np.full(len(self.member), FIRST), np.arange(len(self.member))
        direction, stale = np.zeros_like(self.places), np.ones(len(self.member), bool)
        for _ in range(STEPS):
            turning = active[stale[active]]
            if len(turning):
                direction[turning] = self._directions(turning)
            active = active[(np.abs(direction[active]).max(axis=1) > 0) & (step[active] >= LAST)]
            if not len(active):
                break
            accepted = self._try(active, step[active, None] * direction[active])
            stale[active] = accepted
            step[active] *= np.where(accepted, GROW, SHRINK)

    def _directions(self, lanes: np.ndarray) -> np.ndarray:
        """Return directions of length 1 in the largest axis, zero where a descent has nothing to gain."""
        columns = {name: values[lanes] for name, values in self.columns.items()}
        smooth = self.smooth(self.places[lanes], self.smooth.staying(columns))
        objectives = len(self.space.objectives)
        costs, slopes = self.costs[lanes], smooth.slopes.copy()
        # In logarithms where the box has them, each objective by the front's extent.
        slopes[:, :objectives] /= np.where(self.box.sign == 0, 1.0, np.maximum(np.abs(costs), 1e-30))[:, :, None]
        slopes[:, :objectives] /= np.where(self.box.high > self.box.low, self.box.high - self.box.low, 1.0)[:, None]
        leaning = self.lean[lanes][:, None] == np.arange(objectives)
        slopes[:, :objectives] *= np.where(leaning, LEAN_WEIGHT, 1.0)[:, :, None]
        slopes[:, objectives:] *= KEEP_WEIGHT
        counted = np.ones(slopes.shape[:2], bool)
        counted[:, objectives:] = smooth.values[:, objectives:] > -NEAR
        direction = common_descent(np.nan_to_num(slopes, posinf=0.0, neginf=0.0), counted, self.places[lanes])
        return direction / np.maximum(np.abs(direction).max(axis=1, keepdims=True), 1e-30)

    def _try(self, lanes: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Evaluate descents after a ``step`` exactly, accept those that dominate their place, and return which."""
        numbers = self.smooth.coordinates.columns(np.clip(self.places[lanes] + step, 0.0, 1.0))
        axes = {axis.name: numbers.get(axis.name, self.columns[axis.name][lanes]) for axis in self.space.axes}
        columns = designs.with_links(self.space, axes)
        evaluated = self.model.of(np.full(len(lanes), -1), columns)
        self.evaluations += len(lanes)
        accepted = (evaluated.violation == 0) & dominates(evaluated.costs, self.costs[lanes])
        into = lanes[accepted]
        for name, values in columns.items():
            self.columns[name][into] = values[accepted]
        self.costs[into] = evaluated.costs[accepted]
        self.places[into] = self.smooth.coordinates.places(self.columns)[into]
        return accepted

    def refinement(self) -> Refinement:
        """Return the refined front and its gain."""
        improved = np.flatnonzero(dominates(self.costs, self.origin.costs[self.member]))
        axes = np.stack([self.columns[axis.name][improved] for axis in self.space.axes], axis=1)
        successors = improved[np.sort(np.unique(axes, axis=0, return_index=True)[1])]
        costs = np.vstack([self.origin.costs, self.costs[successors]])
        front = np.flatnonzero(pareto_mask(costs))
        on, off = front[front < self.count], successors[front[front >= self.count] - self.count]
        before, after = (hypervolume(self.box, c, EXACT_MEMBERS) for c in (self.origin.costs, costs[front]))
        return Refinement(
            tuple(self.smooth.coordinates.names),
            self.count,
            len(np.unique(self.member)),
            len(np.unique(self.member[improved])),
            int(self._between(off).sum()),
            self.evaluations,
            before,
            after,
            self._table(on, off),
            self._successors(improved),
        )

    def _between(self, lanes: np.ndarray) -> np.ndarray:
        """Return which descents ended between the grid's values; one that went from end to end of an axis did not."""
        on = [np.isin(self.columns[axis.name][lanes], axis.numbers) for axis in continuous_axes(self.space)]
        return ~np.all(on, axis=0)

    def _table(self, on: np.ndarray, off: np.ndarray) -> pa.Table:
        """Return the members that stay on the front, then the new designs, evaluated once more and marked."""
        parts = [self.model.table(self.origin).take(on)]
        if len(off):
            columns = {name: values[off] for name, values in self.columns.items()}
            parts.append(self.model.table(self.model.of(np.full(len(off), -1), columns)))
        table = pa.concat_tables(parts).unify_dictionaries()
        return table.append_column(OFF_GRID, pa.array(np.append(np.zeros(len(on), bool), self._between(off))))

    def _successors(self, improved: np.ndarray) -> dict[str, np.ndarray]:
        numbers = {axis.name: np.full(self.count, np.nan) for axis in self.space.axes}
        for name, values in numbers.items():
            values[self.member[improved]] = self.columns[name][improved]
        return numbers


def dominates(costs: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which rows of ``costs`` are no worse than their row of ``others``, and better by LEAST_GAIN in one."""
    no_worse = np.all(costs <= others, axis=1)
    return no_worse & np.any(others - costs > LEAST_GAIN * np.abs(others), axis=1)

"""Axes on which no objective depends, where every pair of designs shows it."""

import numpy as np
import pandas as pd

from dse.grid.result import SweepResult
from dse.reports.common.words import axis_value, joined
from dse.reports.sweep.data import varied_axes
from dse.space.axis import Axis

SAME = 1e-6
"""Values of an objective that differ by less, relative to the larger, are the same: rounding of 32 bits."""

MOST = 4_000_000
"""Designs compared one with another; of more, only the statistics of the axes are looked at."""


def idle_note(result: SweepResult) -> list[str]:
    """Return the note on axes without effect: by comparing all designs, or by their statistics.

    Nothing where a part of the designs was evaluated: a few say nothing of the others.
    """
    if result.n != result.space.size:
        return []
    still = still_axes(result)
    if still and (result.keep == "front" or result.n > MOST):
        return _by_statistics(result, still)
    idle = idle_axes(result) if still else []
    if not idle:
        return []
    of = "" if result.n_feasible == result.n else " of a feasible design"
    return [f"No objective{of} moves with {joined(idle)}: the model, the workload or a link leaves it out."]


def _by_statistics(result: SweepResult, still: list[str]) -> list[str]:
    """Return the note by the statistics of the axes."""
    complete = result.axis_effects[["median", "best"]].notna().all(axis=1).groupby(result.axis_effects["axis"]).all()
    idle = [axis for axis in still if complete[axis]]
    if not idle:
        return []
    return [
        f"Neither the median nor the best of any objective moves with {joined(idle)}: the model, the workload or a "
        "link may leave it out."
    ]


def still_axes(result: SweepResult) -> list[str]:
    """Return the varied axes along which no statistic changes (as none does where there is none)."""
    figures = result.axis_effects.groupby(["axis", "objective"], sort=False)[["at_baseline", "median", "best"]]
    varies = ((figures.max() - figures.min()) > SAME * figures.max().abs()).any(axis=1)
    still = {axis for axis, any_varies in varies.groupby(level="axis", sort=False).any().items() if not any_varies}
    return [axis.name for axis in varied_axes(result) if axis.name in still]


def idle_axes(result: SweepResult) -> list[str]:
    """Return the varied axes on which no objective depends, of a result that kept every design of its space.

    Feasible designs that differ in such an axis alone have the same objectives; at least two such designs are there.
    """
    names = [axis.name for axis in result.space.axes]
    points = result.points(list(dict.fromkeys([*names, *(o.name for o in result.space.objectives), "feasible"])))
    if len(points) != result.space.size:
        return []
    order = np.argsort(_numbers(result, points))
    shape = [len(axis) for axis in result.space.axes]
    objectives = points[[o.name for o in result.space.objectives]].where(
        points["feasible"]
    )  # others may have no result
    values = [objectives[o.name].to_numpy(dtype=float)[order].reshape(shape) for o in result.space.objectives]
    places = [i for i, name in enumerate(names) if name in still_axes(result)]
    return [names[i] for i in places if all(_constant(one, i) for one in values)]


def _numbers(result: SweepResult, points: pd.DataFrame) -> np.ndarray:
    """Return the number of each design in the grid, whose last axis varies fastest."""
    number = np.zeros(len(points), np.int64)
    for axis in result.space.axes:
        number = number * len(axis) + codes(axis, points[axis.name])
    return number


def codes(axis: Axis, column: pd.Series) -> np.ndarray:
    """Return which of an axis's values each design has."""
    place = {axis_value(value): i for i, value in enumerate(axis.values)}
    places, values = pd.factorize(column)
    return np.array([place[axis_value(value)] for value in values], np.int64)[places]


def _constant(values: np.ndarray, axis: int) -> bool:
    """Whether an objective is the same all along an axis wherever it has a value, and has two somewhere."""
    there = np.isfinite(values)
    low = np.where(there, values, np.inf).min(axis=axis)
    high = np.where(there, values, -np.inf).max(axis=axis)
    several = there.sum(axis=axis) > 1
    return bool(several.any() and (high - low <= SAME * np.abs(high))[several].all())

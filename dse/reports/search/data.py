"""The data of a search's page: a sample of the evaluated designs, and the effect of each axis among them."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.grid.record import load_result, read_record
from dse.grid.result import SweepResult
from dse.pareto.search_result import SearchResult
from dse.reports.sweep.data import measured_baseline, thinned
from dse.reports.sweep.data_axes import ascending
from dse.reports.sweep.idle_axes import codes
from dse.space.axis import Axis
from dse.space.designs import SAMPLE, encoded
from dse.space.space import Objective

LEAST = 10
"""Pairs of feasible designs that differ in one axis alone, from which the effect of a step of that axis is shown."""


@dataclass(frozen=True)
class SearchReport:
    """A search as its page shows it."""

    result: SweepResult  # as a sweep's, with a sample and axis effects of the evaluated designs
    sampler: str
    seed: int
    evaluations: int
    hypervolume: float
    history: pd.DataFrame  # a row a batch: evaluations, members, hypervolume

    @property
    def late_gain(self) -> float | None:
        """Share of the hypervolume that came with the last tenth of the evaluations; None where that is not known."""
        before = self.history[self.history["evaluations"] <= 0.9 * self.evaluations]
        if before.empty or self.hypervolume <= 0:
            return None
        return float(1 - before["hypervolume"].iloc[-1] / self.hypervolume)


def search_report(search: SearchResult) -> SearchReport:
    """Return a search as its page shows it."""
    return _search_report(search.result, search.record(), search.history)


def load_page(folder: Path) -> SweepResult | SearchReport:
    """Return the sweep or the search of a folder as its page shows it, of any version; raises InputError naming what is
    missing."""
    result = load_result(folder, any_version=True)
    document = read_record(folder)
    return _search_report(result, document["search"], document["timing"]["history"]) if "search" in document else result


def _search_report(result: SweepResult, record: dict[str, Any], history: list[Any]) -> SearchReport:
    evaluated = result.points()
    feasible = evaluated[evaluated["feasible"]]
    shown = replace(result, sample=thinned(feasible, SAMPLE), axis_effects=evaluated_effects(result, feasible))
    rows = [(evaluations, members, volume) for evaluations, _, members, volume in history]
    return SearchReport(
        shown,
        record["sampler"],
        record["seed"],
        record["evaluations"],
        record["hypervolume"],
        pd.DataFrame(rows, columns=["evaluations", "members", "hypervolume"]),
    )


def evaluated_effects(result: SweepResult, feasible: pd.DataFrame) -> pd.DataFrame:
    """Return the axis effects of a search, in the columns of ``SweepResult.axis_effects``, and ``paired``.

    ``paired``: the baseline's objective (the median of the front, where it has none),
    changed step by step by the median ratio between evaluated designs that differ in this axis alone; empty beyond a
    step with fewer than LEAST such pairs. A search evaluates most where it is good, so that median and best of all its
    designs with a value say nothing of the axis: they are empty.
    """
    of_axis = {axis.name: codes(axis, feasible[axis.name]) for axis in result.space.axes}
    rows = []
    for axis in result.space.axes:
        order = ascending(axis)
        keys = _others(result.space.axes, of_axis, axis)
        for o in result.space.objectives:
            values = feasible[o.name].to_numpy(dtype=float)
            figures = _chained(of_axis[axis.name], keys, values, order, *_start(result, axis, o, order))
            rows += [
                (axis.name, axis.numbers[place], axis.values[place], axis.unit, o.name, np.nan, np.nan, np.nan, figure)
                for place, figure in zip(order, figures, strict=True)
            ]
    columns = ["axis", "number", "value", "unit", "objective", "median", "best", "at_baseline", "paired"]
    return pd.DataFrame(rows, columns=columns)


def _others(axes: tuple[Axis, ...], codes: dict[str, np.ndarray], left_out: Axis) -> np.ndarray:
    """Return a number for each design, equal where designs differ at most in one axis."""
    key = np.zeros(len(codes[left_out.name]), np.int64)
    for axis in axes:
        if axis is not left_out:
            key = key * len(axis) + codes[axis.name]
    return key


def _start(result: SweepResult, axis: Axis, objective: Objective, order: np.ndarray) -> tuple[int, float]:
    """Where a chain starts, counted along ``order``, and the objective there: the baseline, at its nearest value."""
    base = measured_baseline(result)
    if base.empty:
        return 0, float(result.front[objective.name].median()) if len(result.front) else np.nan
    number = encoded(axis, base[axis.name].iloc[0])
    return int(np.abs(np.asarray(axis.numbers)[order] - number).argmin()), float(base[objective.name].iloc[0])


def _chained(
    code: np.ndarray, keys: np.ndarray, values: np.ndarray, order: np.ndarray, start: int, value: float
) -> np.ndarray:
    """Return an objective at each value along ``order``, from ``value`` at ``start`` on, by the ratios of pairs."""
    steps = [_ratio(code, keys, values, int(a), int(b)) for a, b in pairwise(order)]
    values = np.full(len(order), np.nan)
    values[start] = value
    for i in range(start, len(steps)):
        values[i + 1] = values[i] * steps[i]
    for i in range(start, 0, -1):
        values[i - 1] = values[i] / steps[i - 1]
    return values


def _ratio(code: np.ndarray, keys: np.ndarray, values: np.ndarray, first: int, second: int) -> float:
    """Return the median ratio of an objective between two values of an axis alone; NaN for too few pairs."""
    here, there = np.flatnonzero(code == first), np.flatnonzero(code == second)
    _, i, j = np.intersect1d(keys[here], keys[there], assume_unique=True, return_indices=True)
    before, after = values[here[i]], values[there[j]]
    positive = (before > 0) & (after > 0)
    return float(np.median(after[positive] / before[positive])) if positive.sum() >= LEAST else np.nan

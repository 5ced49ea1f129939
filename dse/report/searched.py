"""What a search evaluated, as a page needs it: a sample of all, and the best at each value of an axis."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.errors import InputError
from dse.report.findings import thinned
from dse.search.search import SearchResult
from dse.space.designs import SAMPLE
from dse.sweep.record import load_result
from dse.sweep.result import SweepResult

LEAST = 20
"""Feasible designs that must have been evaluated with a value of an axis before the best of them is drawn."""


@dataclass(frozen=True)
class Searched:
    """How a space was searched.

    ``result``: as a sweep's, with a sample and effects of the designs that were evaluated. ``history``: a row a batch
    (evaluations, members of the front, hypervolume).
    """

    result: SweepResult
    sampler: str
    seed: int
    evaluations: int
    hypervolume: float
    history: pd.DataFrame

    @property
    def late_gain(self) -> float | None:
        """Share of the hypervolume that came with the last tenth of the evaluations; None where that is not known."""
        before = self.history[self.history["evaluations"] <= 0.9 * self.evaluations]
        if before.empty or self.hypervolume <= 0:
            return None
        return float(1 - before["hypervolume"].iloc[-1] / self.hypervolume)


def searched(found: SearchResult) -> Searched:
    """Return what the page of a search shows."""
    return _searched(found.result, found.record(), found.history)


def load_page(folder: Path) -> SweepResult | Searched:
    """Return what a page of a folder shows, of a sweep or of a search; raises InputError naming what is missing."""
    result = load_result(folder)
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if "search" not in document:
        return result
    try:
        return _searched(result, document["search"], document["timing"]["history"])
    except KeyError as error:
        raise InputError(f"{folder / 'run.json'}: {error.args[0]} is missing; search again") from None


def _searched(result: SweepResult, record: dict[str, Any], history: list[Any]) -> Searched:
    evaluated = result.points()
    feasible = evaluated[evaluated["feasible"]]
    shown = replace(result, sample=thinned(feasible, SAMPLE), axis_effects=evaluated_effects(result, feasible))
    rows = [(evaluations, members, volume) for evaluations, _, members, volume in history]
    return Searched(
        shown, record["sampler"], record["seed"], record["evaluations"], record["hypervolume"],
        pd.DataFrame(rows, columns=["evaluations", "members", "hypervolume"]),
    )  # fmt: skip


def evaluated_effects(result: SweepResult, feasible: pd.DataFrame) -> pd.DataFrame:
    """Return the axis effects of a search, in the columns of ``SweepResult.axis_effects``.

    ``best``: of the evaluated designs with a value, none where they are fewer than LEAST. A search evaluates most where
    it is good, so their median says nothing of the space, and no axis is moved alone: both are empty.
    """
    rows = []
    for axis in result.space.axes:
        grouped = feasible.groupby(axis.name, observed=True)
        counts = grouped.size()
        for o in result.space.objectives:
            best = grouped[o.name].min() if o.sign > 0 else grouped[o.name].max()
            for number, value in zip(axis.numbers, axis.values, strict=True):
                enough = int(counts.get(value, 0)) >= LEAST
                figure = float(best[value]) if enough else np.nan
                rows.append((axis.name, number, value, axis.unit, o.name, np.nan, figure, np.nan))
    columns = ["axis", "number", "value", "unit", "objective", "median", "best", "at_baseline"]
    return pd.DataFrame(rows, columns=columns)

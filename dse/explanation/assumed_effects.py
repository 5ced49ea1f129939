"""What assumed numbers decide: the answers of a few designs at both ends of every number's range, and their order.

Every number moves alone, the others as they are. The designs stay what they are, with their fastest kernels chosen
anew; what a space links to the base follows it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from dse.base.pareto_filter import pareto_mask
from dse.evaluate.changed_numbers import Answers, Columns, Numbers, answers, design_columns
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.infeasibility import Reasons
from dse.explanation.assumed_numbers import AssumedNumber, assumed_attributes
from dse.explanation.assumed_tables import assumed_of_tables
from dse.grid.result import records
from dse.power.board import BoardPower
from dse.space.space import Space
from dse.timing.traced.reading import why_not_simulated

TIE = 0.01
"""Designs that differ by no more than this share in an objective have no order in it that could change."""

BASE = "base"
"""The base GPU among the names of designs."""

ENDS = ("low", "high")

NUMBER = ("name", "text", "table", "unit", "status", "source", "value", "low", "high")
EFFECT = ("objective", "objective_unit", "design", "nominal", "at_low", "at_high", "elasticity")
CHANGE = ("number", "end", "at", "kind", "objective", "first", "second", "first_at", "second_at", "why")


@dataclass(frozen=True)
class AssumedEffects:
    """What the assumed numbers of an answer decide."""

    numbers: list[AssumedNumber]  # all that were varied
    # A row a number, objective and design, the number that moves an objective most first: place in ``numbers``, NUMBER,
    # range ("stated" or "default"), range_source, EFFECT: the objective as it is and at both ends of the range, and
    # elasticity = d ln(objective) / d ln(number) over the range; NaN where the design has none.
    effects: pd.DataFrame
    # A row a change of the order: number (its place), end, at [its unit], kind (order: ``first`` was better and is
    # worse; base: it was no worse than the base GPU and is; front: another design dominates it; lost: it cannot be
    # had, ``why``), objective, first, second, and both objectives there.
    changes: pd.DataFrame
    challengers: int  # further members of the front that could dominate one
    left_out: dict[str, str]  # number -> why it was not varied

    def largest(self) -> pd.Series:
        """Return the largest change of an objective of a design [1] by number (its place), the largest first."""
        ends = self.effects[["at_low", "at_high"]].div(self.effects["nominal"], axis=0)
        change = (ends - 1).abs().max(axis=1)
        return change.groupby(self.effects["number"], sort=False).max().sort_values(ascending=False, kind="stable")

    def deciding(self, most: int) -> list[int]:
        """Return the places of the numbers that change the order of recommended designs, then of those that move an
        objective most, ``most`` in all, or as many as change the order."""
        largest = self.largest()
        order = self.changes[self.changes["kind"] == "order"]["number"].unique()
        first = [place for place in largest.index if place in order]
        return [*first, *(p for p in largest.index if p not in first and largest[p] > 0)][: max(most, len(first))]

    def document(self, most: int) -> dict[str, Any]:
        """Return for JSON the numbers that decide, ``most`` in all, with every effect; and the elasticities of all."""
        largest = self.largest()
        keys = ["objective", "design", "nominal", "at_low", "at_high", "elasticity"]
        deciding = []
        for place in self.deciding(most):
            rows = self.effects[self.effects["number"] == place]
            about = records(rows.drop(columns=["number", "objective_unit", *keys]).head(1))[0]
            deciding.append(about | {"largest_change": _short(largest[place]), "effects": records(rows[keys])})
        varied = [self._varied(place, change) for place, change in largest.items()]
        return {"deciding": deciding, "varied": varied, "left_out": self.left_out}

    def _varied(self, place: Any, change: float) -> dict[str, Any]:
        """A number with its elasticities by objective and design; a ratio of two designs has their difference."""
        one = self.numbers[place]
        rows = self.effects[self.effects["number"] == place]
        slopes: dict[str, dict[str, float | None]] = {}
        for name, design, slope in rows[["objective", "design", "elasticity"]].itertuples(index=False):
            slopes.setdefault(name, {})[design] = None if np.isnan(slope) else _short(slope)
        about = {"name": one.name, "table": one.table, "value": one.value, "low": one.low, "high": one.high}
        return about | {"largest_change": _short(change), "elasticities": slopes}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def assumed_effects(
    space: Space, axes: Columns, names: Sequence[str], evaluations: Sequence[Evaluation]
) -> AssumedEffects:
    """Return what assumed numbers decide of designs given by their ``axes`` (designs,).

    The first designs have ``names``, which the answer recommends; the others are members of its front that could
    dominate them. With the base GPU they are at most DESIGNS; ``evaluations`` are those of the space's workloads.
    """
    own, reasons = Numbers.of(space), Reasons(space)
    every, left_out = _covered(space, _numbers(space, axes, own))
    settings = [own, *(number.at(own, end) for number in every for end in (number.low, number.high))]
    found = answers(space, axes, settings, evaluations, reasons)
    study = _Study(space, [BASE, *names], every, found, reasons)
    effects = pd.DataFrame(study.effects(), columns=["number", *NUMBER, "range", "range_source", *EFFECT])
    changes = pd.DataFrame(changes_of(space, study.names, every, found, reasons), columns=list(CHANGE))
    return AssumedEffects(every, effects, changes, found.codes.shape[1] - 1 - len(names), left_out)


def changes_of(
    space: Space, names: list[str], numbers: list[AssumedNumber], given: Answers, reasons: Reasons
) -> list[tuple[Any, ...]]:
    """Return the rows of :attr:`AssumedEffects.changes`, of answers at the numbers' own values and both ends of each.

    ``names``: of the first designs, the base among them.
    """
    return list(_Study(space, names, numbers, given, reasons).changes())


def _numbers(space: Space, axes: Columns, own: Numbers) -> list[AssumedNumber]:
    """Return the assumed numbers of a space's base and of the tables."""
    used = design_columns(space, axes, own)
    follows = {}
    for name, _ in space.links:
        changed = Numbers(dict(own.base) | {name: own.base[name] * 1.5}, {}, own.area, own.cost, own.power)
        follows[name] = bool((design_columns(space, axes, changed)[name][1:] != used[name][1:]).any())
    return [*assumed_attributes(space.base, follows), *assumed_of_tables(used, isinstance(own.power, BoardPower))]


def _covered(space: Space, every: list[AssumedNumber]) -> tuple[list[AssumedNumber], dict[str, str]]:
    """Return the numbers that all workloads cover, and why not the others: a trace is simulated for given GPUs."""
    base, covered, refused = space.base.numbers(), [], {}
    for number in every:
        ends = product(space.workloads, (number.low, number.high)) if number.of_gpu else ()
        why = next(filter(None, (why_not_simulated(w, base, number.name, end) for w, end in ends)), "")
        covered += [] if why else [number]
        refused |= {number.name: why} if why else {}
    return covered, refused


@dataclass(frozen=True)
class _Study:
    """Answers of the base GPU, of designs with names and of others, at both ends of every number."""

    space: Space
    names: list[str]
    numbers: list[AssumedNumber]
    answers: Answers
    reasons: Reasons

    def effects(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the effects, the number of the largest effect first."""
        values, count = self.answers.objectives, len(self.names)
        nominal, ends = values[0, :count], values[1:, :count].reshape(-1, 2, count, values.shape[2])
        with np.errstate(all="ignore"):
            change = np.nan_to_num(np.abs(ends / nominal - 1), posinf=0.0).max(axis=(1, 2, 3), initial=0.0)
        for place in np.argsort(-change, kind="stable").tolist():
            number = self.numbers[place]
            known = [getattr(number, name) for name in NUMBER]
            about = [place, *known, "stated" if number.range.stated else "default", number.range.source]
            for (k, o), (d, name) in product(enumerate(self.space.objectives), enumerate(self.names)):
                low, high = ends[place, :, d, k].tolist()
                unit, value = o.unit, float(nominal[d, k])
                yield (*about, o.name, unit, name, value, low, high, _elasticity(number, low, high))

    def changes(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the changes of the order, number after number."""
        on_front = self._on_front(0)
        for (place, number), (k, end) in product(enumerate(self.numbers), enumerate(ENDS)):
            setting = 1 + 2 * place + k
            about = (place, end, getattr(number, end))
            yield from ((*about, *row) for row in self._of_pairs(setting))
            lost = self.answers.codes[setting] != 0
            here = self._on_front(setting)
            for d in range(1, len(self.names)):
                if self.answers.codes[0, d] == 0 and lost[d]:
                    why = str(self.reasons.texts(self.answers.codes[setting, d : d + 1], {})[0])
                    yield (*about, "lost", "", self.names[d], "", np.nan, np.nan, why)
                elif on_front[d] and not here[d]:
                    yield (*about, "front", "", self.names[d], self._dominating(setting, d), np.nan, np.nan, "")

    def _of_pairs(self, setting: int) -> Iterator[tuple[Any, ...]]:
        """Yield in which objectives two designs with names change their order."""
        ok = (self.answers.codes[[0, setting]] == 0).all(axis=0) | (np.arange(self.answers.codes.shape[1]) == 0)
        for (k, o), (i, j) in product(enumerate(self.space.objectives), combinations(range(len(self.names)), 2)):
            before, after = (o.sign * self.answers.objectives[s, [i, j], k] for s in (0, setting))
            if not (ok[i] and ok[j] and np.isfinite([before, after]).all()):
                continue
            was, now = _better(*before), _better(*after)
            if i == 0:  # the base: a design that was no worse, be it by nothing
                if now > TIE and was <= TIE * 1e-3:
                    yield "base", o.name, self.names[j], BASE, *(o.sign * after[::-1]).tolist(), ""
            elif was * now < 0 and min(abs(was), abs(now)) > TIE:
                first, second = (i, j) if was > 0 else (j, i)
                ends = self.answers.objectives[setting, [first, second], k].tolist()
                yield "order", o.name, self.names[first], self.names[second], *ends, ""

    def _on_front(self, setting: int) -> np.ndarray:
        """Whether designs can be had and none of the others dominates them, (designs,); the base is none of them."""
        kept = (self.answers.codes[setting] == 0) & np.isfinite(self.answers.objectives[setting]).all(axis=1)
        kept[0] = False
        front = np.zeros(len(kept), dtype=bool)
        front[kept] = pareto_mask(self._costs(setting)[kept])
        return front

    def _costs(self, setting: int) -> np.ndarray:
        return self.answers.objectives[setting] * np.array([o.sign for o in self.space.objectives])

    def _dominating(self, setting: int, design: int) -> str:
        """Return the name of a design that dominates another, "" where it has none."""
        costs = self._costs(setting)
        better = (costs <= costs[design]).all(axis=1) & (costs < costs[design]).any(axis=1)
        better &= self.answers.codes[setting] == 0
        better[0] = False
        return next((name for d, name in enumerate(self.names) if better[d]), "")


def _better(first: float, second: float) -> float:
    """Return by what share the first of two costs is the smaller one; negative where it is the larger [1]."""
    return float((second - first) / max(abs(first), abs(second), 1e-300))


def _elasticity(number: AssumedNumber, low: float, high: float) -> float:
    """Return d ln(objective) / d ln(number) over a number's range; NaN where a logarithm has no sense."""
    if not (low > 0 and high > 0 and number.low > 0):
        return float("nan")
    return float(np.log(high / low) / np.log(number.high / number.low))

"""The data of the figures and tables of a sweep's page."""

import re
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pandas as pd

import dse
from dse.base.pareto_filter import Box, spread
from dse.grid.result import SweepResult
from dse.reports.common.words import axis_value, gpu_name, superlative
from dse.space.axis import Axis
from dse.space.space import Objective
from dse.timing.timing import PHASE_CAUSES, causes_of
from dse.workload.workload import Workload

MOST_IN_FULL = 6
"""Designs shown in full, the baseline among them."""

SMALL_SHARE = 0.02
"""A cause below this share of every bar is drawn as part of the rest."""

REST = "rest"
"""The causes that are too small to be drawn, together."""

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?= )")
"""A number of a sentence, and no digit of a name."""

_SLOT = "\0"
"""Where a number stood."""


def varied_axes(result: SweepResult) -> list[Axis]:
    """Return the axes that take more than one value."""
    return [axis for axis in result.space.axes if len(axis) > 1]


def costs(frame: pd.DataFrame, objectives: tuple[Objective, ...] | list[Objective]) -> np.ndarray:
    """Return the objectives of designs as numbers to be minimised, shape (designs, objectives), each in its unit."""
    columns = [o.sign * frame[o.name].to_numpy(dtype=float) for o in objectives]
    return np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))


def measured_baseline(result: SweepResult) -> pd.DataFrame:
    """Return the baseline's row, or none where the base GPU has no result (an operator has no kernel that runs)."""
    return result.measured_baseline


def thinned(frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return at most ``count`` rows of a frame, evenly spread over it."""
    return frame.iloc[evenly(len(frame), count)]


def evenly(size: int, count: int) -> list[int]:
    """Return at most ``count`` of the numbers below ``size``, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(count, size)).astype(int)).tolist()


def shown_text(shown: int, total: int) -> str:
    """Return how many of all designs are shown, as "20,000 of 1,358,280 shown"."""
    return f"{total:,}" if shown == total else f"{shown:,} of {total:,} shown"


def chosen_designs(result: SweepResult) -> pd.DataFrame:
    """Return the baseline and a handful of front designs, a row a design: ``letter``, ``design`` (its name), results.

    For each objective, the best design that is no worse than the baseline in the others (of all designs where there is
    none); then the compromise, the design nearest to the best values of all objectives at once (a search's knees, where
    a front bulges, are another thing: dse/pareto/fronts.py). ``position``: its row in the front, -1 for the baseline.
    """
    names: dict[int, list[str]] = {}
    for position, name in _picks(result):
        names.setdefault(position, []).append(name)
    positions = list(names)[: MOST_IN_FULL - 1]
    rows = pd.concat([measured_baseline(result), result.front.iloc[positions]], ignore_index=True)
    has_baseline = len(rows) - len(positions)
    rows.insert(0, "position", [-1] * has_baseline + positions)
    lacking = " (infeasible)" if (measured_baseline(result)["reason"] != "").any() else ""
    rows.insert(
        0, "design", [gpu_name(result.space) + lacking] * has_baseline + [", ".join(names[p]) for p in positions]
    )
    rows.insert(0, "letter", [""] * has_baseline + [chr(ord("A") + i) for i in range(len(positions))])
    return rows


def _picks(result: SweepResult) -> list[tuple[int, str]]:
    """Front positions and the name each earned; a design that is the baseline itself is left out."""
    objectives = result.space.objectives
    values = costs(result.front, objectives)
    if len(values) == 0:
        return []
    picks = [(best_no_worse(result, o), superlative(o)) for o in objectives if gains(result, o)][: MOST_IN_FULL - 2]
    if len(objectives) > 1:
        picks.append((_compromise(values), "best compromise"))
    base = measured_baseline(result)
    same = [p for p, _ in picks if len(base) and np.allclose(values[p], costs(base, objectives)[0], rtol=1e-6)]
    return [(position, name) for position, name in picks if position not in same]


def gains(result: SweepResult, objective: Objective) -> bool:
    """Whether the design of :func:`best_no_worse` betters the baseline in an objective; true where none is within."""
    if not no_worse_than_baseline(result, objective).any():
        return True
    best = costs(result.front.iloc[[best_no_worse(result, objective)]], [objective])[0, 0]
    base = costs(result.baseline, [objective])[0, 0]
    return bool(best < base - 1e-6 * abs(base))


def no_worse_than_baseline(result: SweepResult, free: Objective | None = None) -> np.ndarray:
    """Return which front designs are no worse than the baseline in every objective but ``free``, shape (front,)."""
    base = measured_baseline(result)
    others = [o for o in result.space.objectives if free is None or o.name != free.name]
    if base.empty:
        return np.zeros(len(result.front), dtype=bool)
    limit = costs(base, others)
    return np.all(costs(result.front, others) <= limit + 1e-6 * np.abs(limit), axis=1)


def best_no_worse(result: SweepResult, objective: Objective) -> int:
    """Return the front's row that is best in an objective and within the baseline's other values (else best of all)."""
    allowed = no_worse_than_baseline(result, objective)
    if not allowed.any():
        allowed[:] = True
    first = costs(result.front, [objective])[:, 0]
    tied = allowed & (first <= first[allowed].min() + 1e-6 * abs(first[allowed].min()))
    positions = np.flatnonzero(tied)
    values = costs(result.front, result.space.objectives)
    return int(positions[Box.of(values)(values)[positions].sum(axis=1).argmin()])


def _compromise(values: np.ndarray) -> int:
    """The position of the design nearest to the best of all objectives, in the front's box (Yu 1973; Zeleny 1973)."""
    return int(np.linalg.norm(Box.of(values)(values), axis=1).argmin())


def stack(row: pd.Series, workload: Workload) -> dict[str, float]:
    """Return the time of one run of a workload by cause [ms], causes that cost nothing left out."""
    values = {cause: float(row[f"{workload.name}.{cause}_ms"]) for cause in causes_of(workload)}
    return {cause: value for cause, value in values.items() if value > 0}


def stacks(result: SweepResult) -> pd.DataFrame:
    """Return the time by cause of the chosen designs, a row a workload, design and cause.

    ``ms`` is the time of one run [ms], ``share`` its part of the design's total (0 to 1). Causes below SMALL_SHARE
    in every design of a workload are summed as REST; ``name`` is the design with its letter.
    """
    rows = []
    for workload in result.space.workloads:
        for _, design in chosen_designs(result).iterrows():
            times = stack(design, workload)
            total = sum(times.values())
            name = f"{design['letter']}  {design['design']}" if design["letter"] else design["design"]
            rows += [(workload.name, name, design["letter"], c, ms, ms / total) for c, ms in times.items()]
    frame = pd.DataFrame(rows, columns=["workload", "name", "letter", "cause", "ms", "share"])
    largest = frame.groupby(["workload", "cause"])["share"].transform("max")
    frame.loc[largest < SMALL_SHARE, "cause"] = REST
    keys = ["workload", "name", "letter", "cause"]
    summed = frame.groupby(keys, sort=False, as_index=False)[["ms", "share"]].sum()
    rank = {cause: i for i, cause in enumerate([*PHASE_CAUSES, REST])}
    return summed.sort_values("cause", key=lambda c: c.map(rank), kind="stable").reset_index(drop=True)


def spread_front(result: SweepResult, rows: int, always: list[int] | None = None) -> pd.DataFrame:
    """Return at most ``rows`` front designs that lie far apart, those at the positions ``always`` among them.

    Sorted from the best of the first objective on.
    """
    if result.front.empty:
        return result.front
    values = costs(result.front, result.space.objectives)
    required = set(always or [])
    sets = (
        required | set(spread(values, count).tolist()) for count in range(rows, max(rows - len(required), 1) - 1, -1)
    )
    picked = sorted(next((places for places in sets if len(places) <= rows), required))
    order = np.lexsort(values[picked].T[::-1])
    return result.front.iloc[np.asarray(picked)[order]]


def lettered_front(result: SweepResult, rows: int) -> tuple[pd.DataFrame, list[str]]:
    """Return at most ``rows`` spread front designs, the chosen among them, and each one's letter, "" for the others."""
    chosen = chosen_designs(result)
    letters = {p: letter for p, letter in zip(chosen["position"], chosen["letter"], strict=True) if p >= 0}
    by_label = {result.front.index[p]: letter for p, letter in letters.items()}
    front = spread_front(result, rows, list(letters))
    return front, [by_label.get(label, "") for label in front.index]


def front_table(result: SweepResult, rows: int = 60) -> pd.DataFrame:
    """Return the baseline and at most ``rows`` spread front designs, the chosen among them, a row a design.

    Columns: ``position`` in the front (-1 for the baseline), ``letter`` of a chosen design ("" else, "base" for the
    baseline), the axes, the objectives, and for each workload ``WORKLOAD.bound_by``, the cause
    that costs most, with its share.
    """
    front, letters = lettered_front(result, rows)
    whole = pd.concat([result.baseline, front], ignore_index=True)
    names = [axis.name for axis in varied_axes(result)] + [o.name for o in result.space.objectives]
    table = whole[list(dict.fromkeys(names))].copy()
    table.insert(0, "letter", ["base", *letters])
    table.insert(0, "position", [-1, *result.front.index.get_indexer(front.index)])
    for workload in result.space.workloads:
        table[f"{workload.name}.bound_by"] = [_bound_by(row, workload) for _, row in whole.iterrows()]
    return table


def _bound_by(row: pd.Series, workload: Workload) -> str:
    times = stack(row, workload)
    if not times:
        return ""
    cause = max(times, key=lambda c: times[c])
    return f"{cause} {100 * times[cause] / sum(times.values()):.0f} %"


def infeasible(result: SweepResult) -> pd.DataFrame:
    """Return why designs cannot be had: ``reason``, ``designs``, and their ``share`` of the grid (0 to 1), the most
    first. Sentences of memory that differ in their numbers alone are one, with the span of each number."""
    groups: dict[str, dict[str, int]] = {}
    for reason, count in result.infeasible.items():
        alike = _NUMBER.sub(_SLOT, reason) if reason.startswith("memory:") else reason
        groups.setdefault(alike, {})[reason] = count
    rows = [(_spanned(alike, list(one)), sum(one.values())) for alike, one in groups.items()]
    rows.sort(key=lambda row: -row[1])
    return pd.DataFrame([(*row, row[1] / result.n) for row in rows], columns=["reason", "designs", "share"])


def _spanned(alike: str, reasons: list[str]) -> str:
    """Sentences that are alike but for their numbers, as one with the lowest and the highest of each number."""
    if len(reasons) == 1:
        return reasons[0]
    every = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    ends = [sorted(set(numbers), key=float) for numbers in every]
    spans = iter([each[0] if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in ends])
    return re.sub(_SLOT, lambda _: next(spans), alike)


def axis_text(axis: Axis) -> str:
    """Return the values of an axis: all of a short one, else ends, step and count."""
    values = [axis_value(value) for value in axis.values]
    if len(values) <= 16:
        return ", ".join(values)
    steps = {round(b - a, 9) for a, b in pairwise(axis.numbers)}
    step = f" in steps of {axis_value(steps.pop())}" if len(steps) == 1 else ""
    return f"{values[0]} to {values[-1]}{step} ({len(values)} values)"


def provenance(result: SweepResult) -> list[tuple[str, str]]:
    """Return what decides the result, name and text: inputs, model and versions; no times, which differ each run."""
    space = result.space
    own = [f"{e.attribute.name} = {axis_value(e.value)}" for e in space.base.entries.values() if e.status == "user"]
    rows = [("Space", space.name), ("Base GPU", ", ".join([f"{gpu_name(space)} ({space.base.name})", *own]))]
    rows += [(f"Axis {axis.name}", f"{axis_text(axis)} {_unit(axis)}".rstrip()) for axis in space.axes]
    rows += [(f"Link {name}", expression.text) for name, expression in space.links]
    rows += [("Constraint", constraint.text) for constraint in space.constraints]
    rows += [(f"Workload {w.name}", w.description) for w in space.workloads]
    rows += [("Objective", f"{o.direction} {o.name}" + _as(o)) for o in space.objectives]
    rows += [("Timing model", model_text(result)), ("Calibration", result.calibration)]
    versions = [f"{name} {result.libraries[name]}" for name in ("jax", "numpy", "moocore")]
    rows += [("Versions", ", ".join([f"dse {dse.__version__}", *versions])), ("Digest of all inputs", space.digest)]
    return rows


def model_text(result: SweepResult) -> str:
    """Return the timing model's name with its switches, those that are set first."""
    model = result.space.model
    switches = {f.name: getattr(model, f.name) for f in fields(model) if isinstance(getattr(model, f.name), bool)}
    states = [
        f"{'on' if state else 'off'}: {', '.join(names)}"
        for state in (True, False)
        if (names := [name for name, value in switches.items() if value is state])
    ]
    return f"{type(model).__name__} ({'; '.join(states)})" if states else type(model).__name__


def _unit(axis: Axis) -> str:
    return "" if axis.unit == "1" else axis.unit


def _as(objective: Objective) -> str:
    text = objective.expression.text
    unit = f" [{objective.unit}]" if objective.unit else ""
    return unit if text == objective.name else f"{unit} = {text}"

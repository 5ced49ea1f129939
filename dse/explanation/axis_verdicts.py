"""What each axis of a space is worth: up to which value more of it pays, what binds beyond, which constraint cuts.

Each axis moves alone from the base GPU, with what is linked to it, in steps of 5 %; the models time every step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.hardware.schema import gpu_schema
from dse.space import links
from dse.space.axis import Axis
from dse.space.metrics import named_metric
from dse.space.space import Objective, Space, space_of
from dse.timing.timing import causes_of
from dse.workload.workload import Workload

STEP = 1.05
"""Factor between two values of a scan."""

GAIN = 0.01
"""A step pays that betters an objective by this share at least [1]."""

NO_LIMIT = 1e6
"""A power limit that holds nothing back [W]."""

TIMES = ("time_ms", "ttft_ms", "tbt_ms", "tokens_per_s")
"""Metrics whose causes are those of a time."""

UNTIL, ALWAYS, NEVER = "until", "always", "never"
"""How more of an axis pays: up to a value, on the whole of it, or nowhere."""

ONE = np.ones(1)
"""The value of an axis that stays."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class AxisVerdict:
    """What more of one axis does to one objective, with everything else as on the base GPU.

    ``until``: the value from which on no further value of the axis gains GAIN a step of 5 %, in the mean up to it;
    its next step gains less, and the step before it gained as much or more. ``pays`` is NEVER where that is the lowest
    value of the scan, ALWAYS where it is the highest. ``cause`` leads the time at the next value, "" where there is
    none or the objective is no time; ``power_limit``: that step would pay if no power limit held the clock.
    ``before`` and ``after``: the objective on the base GPU and at ``until``, in its unit; ``area``: die area more at
    ``until`` than on the base [mm2]; ``clock``: share of the requested clock that is left at the next value.
    ``of_base``: the objective on the base GPU as it is, nan where it has no result; ``before`` differs from it where a
    link gives another number at the base's value. ``most``: the objective's best beyond the base GPU, in its unit, and
    ``most_at`` the value where it is reached; ``before`` and the base's value where nothing beyond is better.
    """

    axis: Axis
    objective: Objective
    pays: str
    until: float
    base: float
    of_base: float
    before: float
    after: float
    area: float
    cause: str
    power_limit: bool
    clock: float
    most: float
    most_at: float


_FIELDS = [each.name for each in fields(AxisVerdict)]


@dataclass(frozen=True)
class AxisCut:
    """Where on an axis designs around the base GPU can be had no more: from ``value`` on, up- or downwards, because of
    ``reason``; ``last`` is the last value before it, nan where the base itself cannot be had."""

    axis: Axis
    value: float
    last: float
    upwards: bool
    reason: str


@dataclass(frozen=True)
class AxisVerdicts:
    """The verdicts of a space: a row an axis and an objective that more of it betters, and what cuts each axis."""

    space: Space
    verdicts: tuple[AxisVerdict, ...]
    cuts: tuple[AxisCut, ...]

    def of(self, axis: str) -> list[AxisVerdict]:
        """Return the verdicts of one axis."""
        return [one for one in self.verdicts if one.axis.name == axis]

    def cuts_of(self, axis: str) -> list[AxisCut]:
        """Return what cuts one axis."""
        return [one for one in self.cuts if one.axis.name == axis]

    def table(self) -> pd.DataFrame:
        """Return the verdicts as a table: the fields of :class:`AxisVerdict`, axes and objectives by name."""
        rows = [
            {name: getattr(one, name) for name in _FIELDS} | {"axis": one.axis.name, "objective": one.objective.name}
            for one in self.verdicts
        ]
        return pd.DataFrame(rows, columns=_FIELDS)


@dataclass(frozen=True)
class AxisScan:
    """An axis around the base GPU: its ``values`` in ascending order, and columns and results of each, (values,).

    ``of_base``: the results of the base GPU as it is, without what is linked to the axis; nan where it has none.
    """

    axis: Axis
    values: np.ndarray
    columns: Columns
    results: Mapping[str, np.ndarray]
    code: np.ndarray
    base: float
    of_base: Mapping[str, np.ndarray]

    @cached_property
    def start(self) -> int:
        """The place of the base GPU's value, or of the nearest one."""
        return int(np.abs(self.values - self.base).argmin())


class AxisScans:
    """The scans of all axes of a space that take numbers above 0, evaluated together by shared programs."""

    def __init__(self, space: Space) -> None:
        self.space = _with_power_axis(space)
        self.reasons = Reasons(self.space)
        self._evaluator = Evaluator(self.space, self.reasons, asked=1)

    def scans(self) -> list[AxisScan]:
        """Return the scan of each axis that can be scanned."""
        axes = scanned_axes(self.space)
        values = [scan_values(axis, self._base[axis.name]) for axis in axes]
        parts = [self._columns(axis, numbers) for axis, numbers in zip(axes, values, strict=True)]
        *found, base = self._evaluate([*parts, self._columns()])
        blank = np.asarray(self.reasons.is_blank(base.pop("code")))
        of_base = {name: np.where(blank, np.nan, values) for name, values in base.items()}
        return [
            AxisScan(axis, numbers, columns, results, results.pop("code"), self._base[axis.name], of_base)
            for axis, numbers, columns, results in zip(axes, values, parts, found, strict=True)
        ]

    def unlimited(self, columns: list[Columns]) -> list[dict[str, np.ndarray]]:
        """Return the results of designs whose power nothing limits."""
        return self._evaluate([c | {"tdp_w": np.full_like(c["tdp_w"], NO_LIMIT)} for c in columns])

    @cached_property
    def _base(self) -> dict[str, float]:
        return dict(self.space.base.numbers())

    def _columns(self, axis: Axis | None = None, values: np.ndarray = ONE) -> Columns:
        """The base GPU at the values of an axis, with what is linked to it; or as it is, without an axis."""
        names = [each.name for each in self.space.axes] + [name for name, _ in self.space.links]
        if axis is None:
            return {name: np.full(len(values), self._base[name]) for name in names}
        mine = [link for link in self.space.links if links.deciding([axis], self.space.links, [link[0]])]
        around = {each.name: np.full(len(values), self._base[each.name]) for each in self.space.axes}
        moved = links.with_links(self._base, mine, around | {axis.name: values})
        return {name: moved.get(name, np.full(len(values), self._base[name])) for name in names}

    def _evaluate(self, parts: list[Columns]) -> list[dict[str, np.ndarray]]:
        if not parts:
            return []
        every = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        results = self._evaluator(every)
        results["code"], _ = self.reasons.add_non_finite(results["code"], results)
        ends = np.cumsum([len(next(iter(part.values()))) for part in parts])[:-1]
        split = {name: np.split(np.asarray(column), ends) for name, column in results.items()}
        return [{name: column[place] for name, column in split.items()} for place in range(len(parts))]


def axis_verdicts(space: Space | str | Path) -> AxisVerdicts:
    """Return what more of each axis does to each objective that it betters somewhere, and what cuts each axis.

    ``space``: a space, or the path of a space file. Axes of one value, of words, or with a value of 0 or below have no
    verdict; objectives that are not above 0 neither; of base GPUs and settings of workloads, the baseline's are kept.
    Raises InputError.
    """
    space = space_of(space)
    space = space.variants.home_space if space.variants else space
    scanner = AxisScans(space)
    scans = scanner.scans()
    cuts = [cut for scan in scans for cut in _cuts(scan, scanner.reasons)]
    pairs = [(scan, o) for scan in scans for o in space.objectives if _can_be_judged(scan, o, scanner.reasons)]
    parts = [_runs(scan, scanner.reasons) for scan, _ in pairs]
    found = [_stops(scan, o, part) for (scan, o), part in zip(pairs, parts, strict=True)]
    free = scanner.unlimited(
        [_some(scan.columns, stop, stop + 2) for (scan, _), stop in zip(pairs, found, strict=True)]
    )
    every = zip(pairs, parts, found, free, strict=True)
    verdicts = [_verdict(space, scan, o, part, stop, unlimited) for (scan, o), part, stop, unlimited in every]
    return AxisVerdicts(space, tuple(verdicts), tuple(cuts))


def scanned_axes(space: Space) -> list[Axis]:
    """Return the axes of a space with several values, all numbers above 0, which a scan multiplies."""
    varied = [axis for axis in space.axes if len(axis) > 1 and axis.attribute.type in ("int", "float")]
    return [axis for axis in varied if not axis.attribute.choices and min(axis.numbers) > 0]


def scan_values(axis: Axis, base: float) -> np.ndarray:
    """Return the values of a scan from the lowest to the highest of an axis, around ``base`` where that lies between:
    5 % apart, whole numbers one apart at least."""
    low, high = min(axis.numbers), max(axis.numbers)
    anchor = base if low <= base <= high else low
    first, last = (np.log(end / anchor) / np.log(STEP) for end in (low, high))
    steps = anchor * STEP ** np.arange(np.ceil(first - 1e-9), np.floor(last + 1e-9) + 1)
    values = np.concatenate([[low], steps, [high]])
    return np.unique(np.round(values) if axis.attribute.type == "int" else np.round(values, 9))


def _with_power_axis(space: Space) -> Space:
    """Return the space with its power limit among the axes, so that programs take it as an argument."""
    varied = {axis.name for axis in space.axes} | {name for name, _ in space.links}
    if "tdp_w" in varied:
        return space
    return replace(space, axes=(*space.axes, Axis(gpu_schema()["tdp_w"], (space.base.numbers()["tdp_w"],))))


def _runs(scan: AxisScan, reasons: Reasons) -> slice:
    """The values around the base's that have results."""
    blank = np.asarray(reasons.is_blank(scan.code))
    below, above = np.flatnonzero(blank[: scan.start]), np.flatnonzero(blank[scan.start :])
    return slice(below[-1] + 1 if below.size else 0, scan.start + above[0] if above.size else len(blank))


def _can_be_judged(scan: AxisScan, objective: Objective, reasons: Reasons) -> bool:
    """Whether an objective is above 0 on a scan, and some value of the axis pays in it."""
    values = np.asarray(scan.results[objective.name], float)[_runs(scan, reasons)]
    if len(values) < 2 or not (values > 0).all():
        return False
    costs = objective.sign * np.log(values)
    return bool(costs.min() < costs[0] - GAIN)


def _stops(scan: AxisScan, objective: Objective, part: slice) -> int:
    """The place from which on no further value gains GAIN a step, in the mean of the steps up to it.

    Of ln(cost) + g * steps, with g = -ln(1 - GAIN), it is the minimum: every later value lies above it.
    """
    values, places = np.asarray(scan.results[objective.name], float)[part], np.log(scan.values[part]) / np.log(STEP)
    return part.start + int((objective.sign * np.log(values) - np.log1p(-GAIN) * places).argmin())


def _some(columns: Columns, start: int, stop: int) -> Columns:
    return {name: column[start:stop] for name, column in columns.items()}


def _verdict(
    space: Space, scan: AxisScan, objective: Objective, part: slice, stop: int, unlimited: Mapping[str, np.ndarray]
) -> AxisVerdict:
    values, workload = np.asarray(scan.results[objective.name], float), timed_workload(space, objective)
    last = stop == part.stop - 1
    cause, limited, clock = "", False, 1.0
    if workload and not last:
        stack = {name: float(scan.results[f"{workload.name}.{name}_ms"][stop + 1]) for name in causes_of(workload)}
        cause = max(stack, key=lambda name: stack[name])
        clock = float(scan.results[f"{workload.name}.clock_share"][stop + 1])
        free = objective.sign * np.diff(np.log(np.asarray(unlimited[objective.name], float)))
        steps = np.log(scan.values[stop + 1] / scan.values[stop]) / np.log(STEP)
        limited = bool(clock < 1 and free[0] <= np.log1p(-GAIN) * steps)
    area = np.asarray(scan.results["die_mm2"], float)
    most = scan.start + int((objective.sign * values[scan.start : part.stop]).argmin())
    return AxisVerdict(
        axis=scan.axis,
        objective=objective,
        pays=NEVER if stop == part.start else ALWAYS if last else UNTIL,
        until=float(scan.values[stop]),
        base=scan.base,
        of_base=float(scan.of_base[objective.name][0]),
        before=float(values[scan.start]),
        after=float(values[stop]),
        area=float(area[stop] - area[scan.start]),
        cause=cause,
        power_limit=limited,
        clock=clock,
        most=float(values[most]),
        most_at=scan.base if most == scan.start else float(scan.values[most]),
    )


def timed_workload(space: Space, objective: Objective) -> Workload | None:
    """Return the workload whose time an objective is, None where it is something else."""
    name, metric = named_metric(objective.expression.text)
    found = [w for w in space.workloads if w.name == name or (name == "total" and len(space.workloads) == 1)]
    return found[0] if found and metric in TIMES else None


def _cuts(scan: AxisScan, reasons: Reasons) -> list[AxisCut]:
    """The first value that cannot be had, going up from the base and going down from it."""
    texts = reasons.texts(scan.code, scan.columns)
    if texts[scan.start]:
        return [AxisCut(scan.axis, float(scan.values[scan.start]), np.nan, True, str(texts[scan.start]))]
    found = []
    for way in (range(scan.start, len(scan.values)), range(scan.start, -1, -1)):
        for last, place in pairwise(way):
            if texts[place]:
                value, before = float(scan.values[place]), float(scan.values[last])
                found.append(AxisCut(scan.axis, value, before, place > scan.start, str(texts[place])))
                break
    return found

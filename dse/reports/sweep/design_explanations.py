"""What explains the time and power of the baseline and the chosen designs: watts, rooflines, elasticities, steps.

The models run again for these few designs, by the programs of ``dse explain``.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from dse.base.compilation import pool_of, threads
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.evaluation import Evaluation, WorkloadResult
from dse.evaluate.limit_ends import limit_ends
from dse.explanation.attribute_words import METRIC_WORDS, words
from dse.explanation.explain import covered
from dse.explanation.roofline_points import TOTAL, bandwidth_gbs, roofline_points
from dse.explanation.sensitivity_steps import Step, quantities, steps
from dse.explanation.sensitivity_table import Trial, step_table
from dse.grid.result import SweepResult
from dse.hardware.presets import GpuSheet, changed
from dse.reports.sweep.data import chosen_designs
from dse.space.designs import of_table, variant_of
from dse.space.space import Space
from dse.workload.workload import Workload

LIMIT_COLUMNS = ("throttles", "clock_low", "clock_high", "faster", "slower")
"""Columns of :attr:`DesignExplanations.limits` beside the design and the workload."""


@dataclass(frozen=True)
class DesignExplanations:
    """The baseline and the chosen designs, explained; every table has columns ``letter`` and ``name`` of a design."""

    watts: pd.DataFrame  # a row a phase and component: workload, component, mean watts under the power limit [W]
    # A row a kernel with a place on the roofline: workload, phase, kernel, share of its phase's time [1], and the
    # columns of :func:`~dse.explanation.roofline_points.roofline_points`.
    roofline: pd.DataFrame
    roofs: pd.DataFrame  # a row a design, workload and unit: peak_tflops, slope_gbs
    # A row a metric and attribute: workload, metric, attribute, text, elasticity = d ln(result) / d ln(attribute) [1],
    # step = the same over a step of about 10 %, evaluated with its own fastest kernels [1], agrees, why.
    slopes: pd.DataFrame
    # A row a workload: throttles (yes, no, open), clock_low, clock_high: the share of the clock that the power limit
    # leaves at the ends of the watts' interval [1]; faster, slower: the time there over the predicted one [1].
    limits: pd.DataFrame


class Programs:
    """The programs that explain designs of a space, compiled in a thread of their own from :meth:`begin` on.

    XLA compiles without Python's lock: begun during a sweep, they are ready when its designs are.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._thread = pool_of(1)
        self._made: Future[list[Evaluation]] | None = None

    def begin(self) -> None:
        """Begin, unless that was done."""
        if self._made is None:
            self._made = self._thread.submit(self._make)

    def evaluations(self) -> list[Evaluation]:
        """Return one of each workload, when their programs are compiled."""
        self.begin()
        assert self._made is not None
        return self._made.result()

    def _make(self) -> list[Evaluation]:
        space = self._space
        evaluations = [evaluation_of(workload, space.model, space.power) for workload in space.workloads]
        evaluations[0].prepare(space.base.numbers())  # generated kernels of all workloads then have their programs
        return evaluations


def explain_designs(result: SweepResult, programs: Programs | None = None) -> DesignExplanations | None:
    """Return the explanation of the baseline and the chosen designs; None where there is no design at all.

    ``programs``: those of the result's space, if they were begun before.
    """
    chosen = chosen_designs(result)
    if chosen.empty:
        return None
    sheets = [design_sheet(result.space, row) for _, row in chosen.iterrows()]
    looks = [
        (_Workload(space, evaluation, [sheets[place] for place in places]), np.asarray(places))
        for space, places in _by_variant(result.space, chosen)
        for evaluation in _evaluations(result.space, space, programs or Programs(result.space))
    ]
    with threads(os.cpu_count() or 1) as pool:
        parts = list(pool.map(lambda look: look[0].look(look[1]), looks))
    named = {f.name: _named(chosen, [getattr(part, f.name) for part in parts]) for f in fields(DesignExplanations)}
    return DesignExplanations(**named)


def _by_variant(space: Space, chosen: pd.DataFrame) -> list[tuple[Space, list[int]]]:
    """Return the plain spaces that designs are of, each with the places of its designs."""
    found: dict[int, tuple[Space, list[int]]] = {}
    for place, (_, row) in enumerate(chosen.iterrows()):
        plain = variant_of(space, row)
        found.setdefault(id(plain), (plain, []))[1].append(place)
    return list(found.values())


def _evaluations(space: Space, plain: Space, programs: "Programs") -> list[Evaluation]:
    """Return the evaluations of a plain space's workloads: those of the ``programs``, unless it is another variant."""
    mine = programs.evaluations()  # also compiles what all variants share
    if plain is space or (space.variants and plain is space.variants.home_space):
        return mine
    return [evaluation_of(workload, plain.model, plain.power) for workload in plain.workloads]


def _named(chosen: pd.DataFrame, parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of all workloads as one, the number of the design replaced by its letter and name."""
    table = pd.concat(parts, ignore_index=True)
    place = table.pop("design").to_numpy(dtype=int)
    table.insert(0, "name", [design_name(chosen.iloc[p]) for p in place])
    table.insert(0, "letter", chosen["letter"].to_numpy()[place])
    return table


def design_name(row: pd.Series) -> str:
    """Return a chosen design's name with its letter; the baseline has none."""
    return f"{row['letter']}  {row['design']}" if row["letter"] else str(row["design"])


def design_numbers(space: Space, row: Mapping[str, Any]) -> dict[str, float]:
    """Return attribute -> number of everything that a design sets: its axes, and what is linked to them."""
    columns = of_table(space, {axis.name: [row[axis.name]] for axis in space.axes})
    return {name: float(values[0]) for name, values in columns.items() if name in space.base.entries}


def design_sheet(space: Space, row: pd.Series) -> GpuSheet:
    """Return the sheet of a chosen design: the base GPU where ``position`` is -1, else with its axes and links."""
    if row["position"] < 0:
        return space.base
    base = variant_of(space, row).base
    entries = {name: entry.attribute for name, entry in base.entries.items()}
    content = {name: entries[name].decode(number) for name, number in design_numbers(space, row).items()}
    return changed(base, content, str(row["design"]))


@dataclass(frozen=True)
class _Workload:
    """One workload on some GPUs."""

    space: Space
    evaluation: Evaluation
    sheets: Sequence[GpuSheet]

    @property
    def workload(self) -> Workload:
        return self.evaluation.workload

    def look(self, places: np.ndarray) -> DesignExplanations:
        """Return the tables of this workload, designs by their ``places`` in ``design``."""
        tried = [covered(self.workload, sheet, steps(sheet.numbers()))[0] for sheet in self.sheets]
        results = [self.evaluation.on_designs(_neighbours(s, t)) for s, t in zip(self.sheets, tried, strict=True)]
        tables = [
            (self._watts(i, j), self._roofline(i, j), self._roofs(i, j), self._slopes(i, t, j), self._limits(i, j))
            for i, (j, t) in enumerate(zip(results, tried, strict=True))
        ]
        every = [pd.concat(t, ignore_index=True) for t in zip(*tables, strict=True)]
        return DesignExplanations(*(t.assign(design=places[t["design"].to_numpy(dtype=int)]) for t in every))

    def _roofline(self, design: int, result: WorkloadResult) -> pd.DataFrame:
        points = roofline_points(self.sheets[design], result)
        points = points[points["intensity"].notna() & (points["kernel"] != TOTAL)]
        number = points["operator"].to_numpy(dtype=int)
        repeats = np.array([o.repeats for o in self.workload.operators], float)
        times = repeats * np.asarray(result.microseconds[0], float)
        phase = np.array([o.phase for o in self.workload.operators])
        share = times / np.array([times[phase == name].sum() for name in phase])
        return points.assign(design=design, workload=self.workload.name, share=share[number])

    def _roofs(self, design: int, result: WorkloadResult) -> pd.DataFrame:
        points = self._roofline(design, result)
        peaks = points.groupby("unit", sort=False)["peak_tflops"].first()
        slope = bandwidth_gbs(self.sheets[design])
        rows = [(design, self.workload.name, unit, float(peak), slope) for unit, peak in peaks.items()]
        return pd.DataFrame(rows, columns=["design", "workload", "unit", "peak_tflops", "slope_gbs"])

    def _slopes(self, design: int, tried: list[Step], result: WorkloadResult) -> pd.DataFrame:
        numbers = self.sheets[design].numbers()
        names = list(quantities(numbers)[0])
        slopes = self.evaluation.elasticities(numbers, names, np.asarray(result.chosen[0]))
        trial = Trial(numbers, tried, result, names, slopes)
        rows = step_table(trial)[0]
        ratio = rows["after"].astype(float) / rows["before"].astype(float)
        step = np.log1p(rows["change"].astype(float)) / np.log(ratio)
        elasticity = [
            float(slopes.metrics[m][names.index(a)]) for m, a in zip(rows["metric"], rows["attribute"], strict=True)
        ]
        text = [words(self.sheets[design].entries[name].attribute) for name in rows["attribute"]]
        return rows.assign(
            design=design,
            workload=self.workload.name,
            text=text,
            move=rows["text"],
            step=step,
            elasticity=elasticity,
            metric=rows["metric"].map(METRIC_WORDS),
        )

    def _watts(self, design: int, result: WorkloadResult) -> pd.DataFrame:
        """Mean watts of every phase by component."""
        rows = [
            (design, self._bar(phase), component, float(watts[0]))
            for phase, settled in result.phases.items()
            for component, watts in settled.power.breakdown().items()
        ]
        return pd.DataFrame(rows, columns=["design", "workload", "component", "watts"])

    def _limits(self, design: int, result: WorkloadResult) -> pd.DataFrame:
        """What the error of the watts makes of the power limit; no row without one."""
        ends = limit_ends(self.evaluation, result, self.space.power)
        if ends is None:
            return pd.DataFrame(columns=["design", "workload", *LIMIT_COLUMNS])
        row = (str(ends.throttles[0]), *ends.clocks, *ends.factors("time_ms"))
        return pd.DataFrame([row], columns=[*LIMIT_COLUMNS]).assign(design=design, workload=self.workload.name)

    def _bar(self, phase: str) -> str:
        return self.workload.name if len(self.workload.phases) == 1 else f"{self.workload.name}: {phase}"


def _neighbours(sheet: GpuSheet, tried: Sequence[Step]) -> list[dict[str, float]]:
    numbers = sheet.numbers()
    return [numbers, *(numbers | {step.attribute.name: step.after} for step in tried)]

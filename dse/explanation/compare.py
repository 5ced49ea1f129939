"""Two designs side by side on one workload, and what accounts for the difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.brief import block, some_of, with_table
from dse.base.error_interval import SHARE
from dse.base.errors import InputError
from dse.comparison.run_ratios import run_ratio_errors
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.evaluation import WorkloadResult
from dse.evaluate.run import NOT_USED, model_of, run
from dse.explanation.attribute_words import METRIC_WORDS, after_number, explained_metrics, percent, words
from dse.explanation.explain import Explanation, explained, load_for, records
from dse.explanation.refusal import why_refused
from dse.explanation.sensitivity_table import SMALLEST, by_effect
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
from dse.power.models import PowerChoice, power_of
from dse.timing.timing import PHASE_CAUSES, TimingModel
from dse.workload.workload import Workload

SWAPS = "One attribute of the other GPU at a time, re-evaluated; effects do not add up: some show only together."

RATIO = (
    f"{100 * SHARE:.0f} % of measured differences lie there: learnt from pairs of real GPUs, both left out of a fit, "
    "by the attributes in which they differ (docs/what_numbers_mean.md)."
)
"""What the interval of a difference stands for."""


TELLING = 0.01
"""Least change of a metric by one attribute that is told in the open [1]."""


@dataclass(frozen=True)
class Comparison:
    """Two designs on one workload, and what differs between them."""

    first: Explanation
    second: Explanation
    # A row a metric: metric, unit, first, second, ratio = second / first [1]; ratio_80, where 80 % of measured ratios
    # lie (None of what is exact, and where no calibration says so), ratio_interval_80, the same with what is exact;
    # probability_better, that the second one is better; unknown, why there is no interval ("" where there is).
    metrics: pd.DataFrame
    # A row a phase and cause: phase, cause, first_ms, second_ms, difference_ms [ms], which add up to the phase's time.
    stack: pd.DataFrame
    kernels: pd.DataFrame  # the same by kernel, with the implementations
    # A row an attribute that differs and metric, largest change of a time first: attribute, name, unit, first, second,
    # metric, change [1] of the first GPU with that one value of the second (NaN where that GPU cannot run).
    swaps: pd.DataFrame

    def __repr__(self) -> str:
        return block(self, *some_of(self.sentences()))

    def _repr_html_(self) -> str:
        return with_table(self, self.metrics)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of metrics, a row a metric."""
        return self.metrics

    def sentences(self) -> list[str]:
        """Return what differs in the metrics, then what each attribute of the other GPU would change alone."""
        metrics = self.metrics[self.metrics["metric"].isin(METRIC_WORDS)]
        changes = ", ".join(f"{percent(r['ratio'] - 1)} {METRIC_WORDS[r['metric']]}" for _, r in metrics.iterrows())
        return [
            f"{self.second.run.gpu.title} instead of {self.first.run.gpu.title}: {changes}",
            *(_sentence(rows) for rows in self._changing(SMALLEST)),
        ]

    def told_apart(self) -> tuple[list[str], list[str]]:
        """Return the sentences of attributes that change a metric by a hundredth or more, or cannot stand alone, and
        those of the others that change anything."""
        telling = [_sentence(rows) for rows in self._changing(TELLING)]
        every = [_sentence(rows) for rows in self._changing(SMALLEST)]
        return telling, [sentence for sentence in every if sentence not in telling]

    def _changing(self, least: float) -> list[pd.DataFrame]:
        """Rows of each attribute that changes a metric by a part ``least``, or cannot stand alone."""
        groups = [rows for _, rows in self.swaps.groupby("attribute", sort=False)]
        return [rows for rows in groups if not (rows["change"].abs() < least).all()]

    def host_notes(self) -> list[str]:
        """Return what the engine's host costs in each phase of both, whose errors are the same ones."""
        one, two = self.first.run, self.second.run
        engine = one.workload.engine
        if engine is None:
            return []
        return [
            f"{phase}: the GPU waits for the host of {engine.title} for {wait:.4g} ms of "
            f"{sum(one.stack(phase).values()):.4g} ms on {one.gpu.title}, {two.waits[phase]:.4g} ms of "
            f"{sum(two.stack(phase).values()):.4g} ms on {two.gpu.title}; an error of the host's costs is in both"
            for phase, wait in one.waits.items()
        ]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse explain --against``."""
        tables = {name: records(getattr(self, name)) for name in ("metrics", "stack", "kernels", "swaps")}
        return {
            "sentences": self.sentences(),
            **tables,
            "method": SWAPS,
            "ratio_80_of": RATIO,
            "host": self.host_notes(),
            "first": self.first.document(),
            "second": self.second.document(),
        }


def compare(
    gpu: str | Path | Gpu | GpuSheet,
    against: str | Path | Gpu | GpuSheet,
    workload: str | Workload,
    model: str | TimingModel | None = None,
    power: str | PowerChoice | None = None,
) -> Comparison:
    """Return a design and another one side by side (names, paths or records); InputError where one cannot run.

    ``model`` and ``power`` as for :func:`dse.evaluate.run.run`, one model for both.
    """
    if isinstance(gpu, list | tuple):
        raise InputError(
            "gpu is a list; give one GPU, another and the workload, or use dse.compare_gpus(gpus, workload) for several"
        )
    sheets = [sheet_of(sheet) for sheet in (gpu, against)]
    numbers = [sheet.numbers() for sheet in sheets]
    differ = [name for name, value in numbers[0].items() if value != numbers[1][name]]
    swapped = {name: numbers[0] | {name: numbers[1][name]} for name in differ}
    model = model_of(model, workload, *sheets)
    power = power_of(power)
    loaded = workload if isinstance(workload, Workload) else load_for(sheets, workload, swapped.values(), model.library)
    runs = [run(sheet, loaded, model, power) for sheet in sheets]  # whether both can, before anything takes long
    evaluation = evaluation_of(loaded, model, power)
    first, second = (
        explained(sheet, loaded, model, power, evaluation, ran) for sheet, ran in zip(sheets, runs, strict=True)
    )
    result = evaluation.on_designs([numbers[0], *swapped.values()])
    return Comparison(
        first,
        second,
        _metrics(first, second),
        _stack(first, second),
        _kernels(first, second),
        _swaps(sheets, swapped, result),
    )


def _metrics(first: Explanation, second: Explanation) -> pd.DataFrame:
    leading = explained_metrics(first.run.workload)
    names = [*leading, *(name for name in first.run.metrics if name not in (*leading, "time_ms"))]
    rows = [
        (name, first.run.metrics[name][1], first.run.metrics[name][0], second.run.metrics[name][0]) for name in names
    ]
    frame = pd.DataFrame(rows, columns=["metric", "unit", "first", "second"])
    frame = frame.assign(ratio=frame["second"] / frame["first"])
    errors = [run_ratio_errors(name, first.run, second.run) for name in names]
    exact = [first.run.metric_error(name).exact for name in names]
    spans = [one.ratio_interval(0, 1) for one in errors]
    probabilities = [one.probability_better(0, 1) for one in errors]
    columns = {
        "ratio_80": [None if known else span for known, span in zip(exact, spans, strict=True)],
        "ratio_interval_80": spans,
        "probability_better": [None if p is None else float(p) for p in probabilities],
        "unknown": [one.reason for one in errors],
    }
    return frame.assign(**{name: pd.Series(values, dtype=object) for name, values in columns.items()})


def _stack(first: Explanation, second: Explanation) -> pd.DataFrame:
    rows = []
    for phase in first.run.workload.phases:
        stacks = [side.run.stack(phase.name) for side in (first, second)]
        rows += [
            {"phase": phase.name, "cause": cause, "first_ms": a, "second_ms": b, "difference_ms": b - a}
            for cause in PHASE_CAUSES
            if (a := stacks[0].get(cause, 0.0)) + (b := stacks[1].get(cause, 0.0)) > 0
        ]
    return pd.DataFrame(rows)


def _kernels(first: Explanation, second: Explanation) -> pd.DataFrame:
    columns = {"time_ms": "ms", "bound_by": "bound_by", "implementation": "implementation"}
    frame = first.run.kernels[["phase", "kernel"]].copy()
    for side, name in ((first, "first"), (second, "second")):
        for column, short in columns.items():
            frame[f"{name}_{short}"] = side.run.kernels[column].to_numpy()
    unused = (frame["first_bound_by"] == NOT_USED) & (frame["second_bound_by"] == NOT_USED)
    return frame.assign(difference_ms=frame["second_ms"] - frame["first_ms"])[~unused].reset_index(drop=True)


def _swaps(
    sheets: Sequence[GpuSheet], swapped: Mapping[str, Mapping[str, float]], result: WorkloadResult
) -> pd.DataFrame:
    rows = []
    for design, (name, gpu) in enumerate(swapped.items(), start=1):
        entry = sheets[0].entries[name]
        place = {
            "attribute": name,
            "name": words(entry.attribute),
            "unit": entry.attribute.unit,
            "first": entry.value,
            "second": sheets[1].entries[name].value,
        }
        runs = not why_refused(gpu, result, design)
        for metric in explained_metrics(result.workload):
            base, value = (float(result.metrics[metric][d]) for d in (0, design))
            rows.append(place | {"metric": metric, "change": value / base - 1 if runs else float("nan")})
    columns = ["attribute", "name", "unit", "first", "second", "metric", "change"]
    return by_effect(pd.DataFrame(rows, columns=columns), explained_metrics(result.workload))


def _sentence(rows: pd.DataFrame) -> str:
    one = rows.iloc[0]
    values = [
        f"{v:g}" if isinstance(v, int | float) and not isinstance(v, bool) else str(v)
        for v in (one["first"], one["second"])
    ]
    text = f"only {one['attribute']} {values[0]} to {values[1]}{after_number(one['unit'])}"
    if rows["change"].isna().any():
        return f"{text}: cannot run the workload alone"
    changes = [f"{percent(row['change'])} {METRIC_WORDS[row['metric']]}" for _, row in rows.iterrows()]
    return f"{text}: {', '.join(changes)}"

"""Why a design takes the time and energy that it takes, and what would change them.

A step raises one attribute by 10 %, leaves the others, and evaluates the changed GPU with its own fastest kernels. An
elasticity is the derivative d ln(result) / d ln(attribute) at the design itself. Where the two disagree, something
happens within the step (a wave edge, for instance), and the explanation names it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.base.brief import block, some_of
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.derivatives import Elasticities
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.run import RunResult, model_of, run
from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.assumed_of_design import assumed_of_design
from dse.explanation.attribute_words import explained_metrics, words
from dse.explanation.next_step import next_steps
from dse.explanation.roofline_points import roofline_points
from dse.explanation.sensitivity_steps import Step, quantities, steps
from dse.explanation.sensitivity_table import SMALLEST, Trial, sentence, step_table
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
from dse.hardware.tensor_area import tensor_area_note
from dse.power.models import PowerChoice, power_of
from dse.timing.timing import TimingModel
from dse.timing.traced.reading import read_workload, why_not_simulated
from dse.timing.traced.trace_profile import KEYS
from dse.workload.operators.gemm_library import REPRESENTATIVE, Library
from dse.workload.target import Target
from dse.workload.workload import Workload

ALONE = (
    "Attributes move alone: what a real design would move with them (other data types' rates, slices with capacity, "
    "voltage or area budgets) stays."
)
METHOD = (
    "Changes are re-evaluations with the fastest kernels chosen anew; elasticities are derivatives at the design. "
    f"{ALONE} Changes carry no interval: what is wrong with the design is wrong with its neighbour, too, and cancels "
    "in part."
)

MOST_ASSUMED = 5
"""Assumed numbers that are told with all that they change; of the others the elasticities."""

NOTHING = 1e-6
"""An elasticity below this is the rounding of 32 bits."""


@dataclass(frozen=True)
class Explanation:
    """What explains the time and energy of one workload on one design."""

    run: RunResult  # time and power, kernel by kernel, with the stack
    # A row an attribute and metric: attribute, name, unit, value, metric, elasticity [1].
    elasticities: pd.DataFrame
    # A row an attribute and kernel: elasticity of its time at the settled clock, and of its energy without a limit [1].
    kernel_elasticities: pd.DataFrame
    # A row an attribute and metric, largest change of a time first: attribute, unit, before, after, text, metric,
    # change [1], promised [1] by the elasticity, agrees, why.
    steps: pd.DataFrame
    roofline: pd.DataFrame  # as of :func:`~dse.explanation.roofline_points.roofline_points`
    left_out: dict[str, str]  # attribute -> why it has no step
    assumed: AssumedEffects  # what assumed numbers make of the metrics, the design being ``base``

    def __repr__(self) -> str:
        what = f"{self.run.workload.description} on {self.run.gpu.title}"
        return block(self, what, *some_of(self.sentences()))

    @cached_property
    def metrics(self) -> list[str]:
        """Metrics that the explanation reports, the leading time first."""
        return explained_metrics(self.run.workload)

    def sentences(self) -> list[str]:
        """Return a sentence for every step that changes something, as "10 % more DRAM bandwidth: -6.1 % TBT"."""
        groups = [rows for _, rows in self.steps.groupby("attribute", sort=False)]
        return [sentence(rows) for rows in groups if (rows["change"].abs() >= SMALLEST).any()]

    def without_effect(self) -> list[str]:
        """Return the attributes whose step changes no reported metric."""
        largest = self.steps.groupby("attribute", sort=False)["change"].agg(lambda change: change.abs().max())
        return [name for name, change in largest.items() if change < SMALLEST]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse explain --json``."""
        return self.run.summary() | {
            "sentences": self.sentences(),
            "next": next_steps(self.steps),
            "moves": records(self.steps),
            "elasticities": records(self.elasticities),
            "kernel_elasticities": records(self.kernel_elasticities),
            "roofline": records(self.roofline),
            "left_out": self.left_out,
            "assumed_numbers": self.assumed.document(MOST_ASSUMED),
            "method": METHOD,
            "tensor_area": tensor_area_note(self.run.gpu),
        }


def explain(
    gpu: str | Path | Gpu | GpuSheet,
    workload: str | Workload,
    model: str | TimingModel | None = None,
    power: str | PowerChoice | None = None,
) -> Explanation:
    """Return the explanation of one workload on one GPU (names, paths or records); InputError where it cannot run.

    ``model`` and ``power`` as for :func:`dse.evaluate.run.run`.
    """
    sheet = sheet_of(gpu)
    model = model_of(model, workload, sheet)
    loaded = workload if isinstance(workload, Workload) else load_for([sheet], workload, library=model.library)
    return explained(sheet, loaded, model, power_of(power))


def load_for(
    sheets: Sequence[GpuSheet],
    text: str,
    changed: Iterable[Mapping[str, float]] = (),
    library: Library = REPRESENTATIVE,
) -> Workload:
    """Return a workload with the kernels of all ``sheets``, its matrix products from ``library``.

    It holds the kernels (or the simulations of a trace) of the sheets' steps and of ``changed`` GPUs (attribute ->
    number) too.
    """
    numbers = [sheet.numbers() for sheet in sheets]
    near = [(step.attribute.name, n | {step.attribute.name: step.after}) for n in numbers for step in steps(n)]
    launched = Target.of([*numbers, *(gpu for _, gpu in near), *changed], library).library
    simulated_for = [*numbers, *(gpu for name, gpu in near if name in KEYS), *changed]
    return read_workload(text, replace(Target.of(numbers), library=launched), lambda: simulated_for, sheets)


def explained(
    sheet: GpuSheet,
    workload: Workload,
    model: TimingModel,
    power: PowerChoice,
    evaluation: Evaluation | None = None,
    run_result: RunResult | None = None,
) -> Explanation:
    """Return the explanation of a loaded workload on a loaded sheet.

    ``evaluation`` holds compiled programs to use again; ``run_result`` is the run, where it was done already.
    """
    run_result = run_result or run(sheet, workload, model, power)
    evaluation, numbers = evaluation or evaluation_of(workload, model, power), sheet.numbers()
    attributes, left_out = quantities(numbers)
    tried, refused = covered(workload, sheet, steps(numbers))
    result = evaluation.on_designs([numbers, *(numbers | {step.attribute.name: step.after} for step in tried)])
    slopes = evaluation.elasticities(numbers, list(attributes), np.asarray(result.chosen[0]))
    table, refused_by_run = step_table(Trial(numbers, tried, result, list(attributes), slopes))
    return Explanation(
        run=run_result,
        elasticities=_elasticity_table(sheet, list(attributes), slopes, explained_metrics(workload)),
        kernel_elasticities=_kernel_table(sheet, workload, list(attributes), slopes),
        steps=table,
        roofline=roofline_points(sheet, result),
        left_out=left_out | refused | refused_by_run,
        assumed=assumed_of_design(sheet, workload, model, power, evaluation),
    )


def covered(workload: Workload, sheet: GpuSheet, tried: list[Step]) -> tuple[list[Step], dict[str, str]]:
    """Return the steps that a workload covers, and attribute -> why not: a trace is simulated for given GPUs."""
    numbers = sheet.numbers()
    reasons = {
        step.attribute.name: why_not_simulated(workload, numbers, step.attribute.name, step.after) for step in tried
    }
    refused = {name: why for name, why in reasons.items() if why}
    return [step for step in tried if step.attribute.name not in refused], refused


def _elasticity_table(sheet: GpuSheet, names: list[str], slopes: Elasticities, metrics: list[str]) -> pd.DataFrame:
    """Return a row an attribute and metric, steepest of the first metric first."""
    order = np.argsort(-np.abs(slopes.metrics[metrics[0]]), kind="stable")
    rows = [
        _place(sheet, names[k]) | {"metric": metric, "elasticity": float(slopes.metrics[metric][k])}
        for metric in metrics
        for k in order
    ]
    return pd.DataFrame(rows)


def _kernel_table(sheet: GpuSheet, workload: Workload, names: list[str], slopes: Elasticities) -> pd.DataFrame:
    """Return a row a kernel and attribute on which its time or energy depends, steepest time first in each kernel."""
    rows = []
    for number, operator in enumerate(workload.operators):
        time, energy = slopes.microseconds[:, number], slopes.joules[:, number]
        for k in np.argsort(-np.abs(time), kind="stable"):
            if max(abs(time[k]), abs(energy[k])) > NOTHING:
                place = {"operator": number, "phase": operator.phase, "kernel": operator.name} | _place(sheet, names[k])
                rows.append(place | {"time": float(time[k]), "energy": float(energy[k])})
    return pd.DataFrame(rows)


def _place(sheet: GpuSheet, name: str) -> dict[str, Any]:
    entry = sheet.entries[name]
    return {"attribute": name, "name": words(entry.attribute), "unit": entry.attribute.unit, "value": entry.number}


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows for JSON: None where there is no number."""
    return [
        {str(key): None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]

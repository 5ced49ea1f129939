"""Why one design takes the time and energy it takes, and what would change them: stack, roofline, elasticities, moves.

A move is re-evaluation: an attribute 10 % up, every other one held, and on the changed GPU the fastest kernels chosen
anew. An elasticity is the derivative d ln(result) / d ln(attribute) at the design itself. Where the two disagree, the
result bends within the step (at a wave edge, for instance), and the explanation says so.
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
from dse.explanation.attribute_words import explained_metrics, words
from dse.explanation.roofline_points import roofline_points
from dse.explanation.sensitivity_steps import Move, moves, quantities
from dse.explanation.sensitivity_table import SMALLEST, Trial, moved_table, sentence
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
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

NOTHING = 1e-6
"""An elasticity below this is the rounding of 32 bits."""


@dataclass(frozen=True)
class Explanation:
    """Why a design takes what it takes.

    ``run``: time and power, kernel by kernel, with the stack. ``elasticities``: a row an attribute and metric
    (attribute, unit, value, metric, elasticity). ``kernel_elasticities``: a row an attribute and kernel with those of
    its time at the clock that its phase holds and of its energy if nothing limited it. ``moves``: a row an attribute
    and metric (attribute, unit, before, after, text, metric, change, promised, agrees, why): relative changes, the
    second by the elasticity; largest change of a time first. ``roofline``: see
    :func:`~dse.explanation.roofline_points.roofline_points`. ``left_out``: attribute -> why it has no move.
    """

    run: RunResult
    elasticities: pd.DataFrame
    kernel_elasticities: pd.DataFrame
    moves: pd.DataFrame
    roofline: pd.DataFrame
    left_out: dict[str, str]

    def __repr__(self) -> str:
        what = f"{self.run.workload.description} on {self.run.gpu.title}"
        return block(self, what, *some_of(self.sentences()))

    @cached_property
    def metrics(self) -> list[str]:
        """Metrics that are told, the time that leads first."""
        return explained_metrics(self.run.workload)

    def sentences(self) -> list[str]:
        """Return a sentence for every move that changes something, as "10 % more DRAM bandwidth: -6.1 % TBT"."""
        groups = [rows for _, rows in self.moves.groupby("attribute", sort=False)]
        return [sentence(rows) for rows in groups if (rows["change"].abs() >= SMALLEST).any()]

    def without_effect(self) -> list[str]:
        """Return the attributes whose move changes nothing that is told."""
        largest = self.moves.groupby("attribute", sort=False)["change"].agg(lambda change: change.abs().max())
        return [name for name, change in largest.items() if change < SMALLEST]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse explain --json``."""
        return self.run.summary() | {
            "sentences": self.sentences(),
            "moves": records(self.moves),
            "elasticities": records(self.elasticities),
            "kernel_elasticities": records(self.kernel_elasticities),
            "roofline": records(self.roofline),
            "left_out": self.left_out,
            "method": METHOD,
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

    A trace is simulated, and products are launched, for their moves and for the ``changed`` GPUs (attribute -> number)
    too.
    """
    numbers = [sheet.numbers() for sheet in sheets]
    near = [(m.attribute.name, n | {m.attribute.name: m.after}) for n in numbers for m in moves(n)]
    launched = Target.of([*numbers, *(gpu for _, gpu in near), *changed], library).library
    simulated_for = [*numbers, *(gpu for name, gpu in near if name in KEYS), *changed]
    return read_workload(text, replace(Target.of(numbers), library=launched), lambda: simulated_for, sheets)


def explained(
    sheet: GpuSheet,
    workload: Workload,
    model: TimingModel,
    power: PowerChoice,
    evaluation: Evaluation | None = None,
    ran: RunResult | None = None,
) -> Explanation:
    """Return the explanation of a loaded workload on a loaded sheet.

    ``evaluation`` holds compiled programs to use again; ``ran``: the run that is explained, where it was done already.
    """
    ran = ran or run(sheet, workload, model, power)
    evaluation, numbers = evaluation or evaluation_of(workload, model, power), sheet.numbers()
    attributes, left_out = quantities(numbers)
    tried, refused = covered(workload, sheet, moves(numbers))
    result = evaluation.on_designs([numbers, *(numbers | {m.attribute.name: m.after} for m in tried)])
    slopes = evaluation.elasticities(numbers, list(attributes), np.asarray(result.chosen[0]))
    moved, stopped = moved_table(Trial(numbers, tried, result, list(attributes), slopes))
    return Explanation(
        run=ran,
        elasticities=_elasticity_table(sheet, list(attributes), slopes, explained_metrics(workload)),
        kernel_elasticities=_kernel_table(sheet, workload, list(attributes), slopes),
        moves=moved,
        roofline=roofline_points(sheet, result),
        left_out=left_out | refused | stopped,
    )


def covered(workload: Workload, sheet: GpuSheet, tried: list[Move]) -> tuple[list[Move], dict[str, str]]:
    """Return the moves that a workload covers, and why it does not cover the others: traces are simulated for GPUs."""
    numbers = sheet.numbers()
    reasons = {m.attribute.name: why_not_simulated(workload, numbers, m.attribute.name, m.after) for m in tried}
    refused = {name: why for name, why in reasons.items() if why}
    return [move for move in tried if move.attribute.name not in refused], refused


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

"""What every step of a GPU changes and what its elasticity promises, as a table and as sentences."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dse.evaluate.derivatives import Elasticities
from dse.evaluate.evaluation import WorkloadResult
from dse.explanation.attribute_words import METRIC_WORDS, explained_metrics, percent, step_words
from dse.explanation.nonlinearities import why
from dse.explanation.refusal import why_refused
from dse.explanation.sensitivity_steps import Step

SMALLEST = 0.0005
"""A change below this in every metric is no effect: it would read as 0.0 %."""

TOLERANCE, TOLERANCE_SHARE = 0.001, 0.2
"""An elasticity disagrees where the change that it promises is off by more than 0.1 % of the result and a fifth of the
larger of the two: the promise is a power law, and a smooth sum of terms departs from it by less in a step of 10 %."""

COLUMNS = ("attribute", "unit", "before", "after", "text", "metric", "change", "promised", "agrees", "why")


class Trial(NamedTuple):
    """A sensitivity study of one GPU: its steps, evaluated, and its elasticities."""

    numbers: dict[str, float]  # attribute -> number of the GPU itself
    tried: list[Step]
    result: WorkloadResult  # design 0 is the GPU, design i the i-th step
    names: list[str]  # attributes of the elasticities
    slopes: Elasticities

    def stopped(self, design: int) -> str:
        """Return why a design cannot run the workload, or nothing."""
        step = self.tried[design - 1]
        return why_refused(self.numbers | {step.attribute.name: step.after}, self.result, design)

    def change(self, metric: str, design: int) -> float:
        """Return the relative change of a metric."""
        base, value = (float(self.result.metrics[metric][d]) for d in (0, design))
        return value / base - 1


def step_table(trial: Trial) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a row a step and metric, and attribute -> why it has none.

    Sorted by the largest change of a time, then of the energy; the rows of a step stay together.
    """
    stopped = {step.attribute.name: trial.stopped(design) for design, step in enumerate(trial.tried, start=1)}
    rows = [
        row
        for design, step in enumerate(trial.tried, start=1)
        if not stopped[step.attribute.name]
        for row in _rows(trial, step, design)
    ]
    table = by_effect(pd.DataFrame(rows, columns=list(COLUMNS)), explained_metrics(trial.result.workload))
    return table, {name: text for name, text in stopped.items() if text}


def _rows(trial: Trial, step: Step, design: int) -> list[dict[str, Any]]:
    k = trial.names.index(step.attribute.name)
    rows = []
    for metric in explained_metrics(trial.result.workload):
        change, promised = trial.change(metric, design), float(step.factor ** trial.slopes.metrics[metric][k] - 1)
        good = agrees(change, promised)
        values = (
            step.attribute.name,
            step.attribute.unit,
            step.before,
            step.after,
            step_words(step),
            metric,
            change,
            promised,
            good,
            "" if good else _why(trial, step, design, metric, k),
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def agrees(change: float, promised: float) -> bool:
    """Whether the change that an elasticity promises is the one that re-evaluation gives, within the tolerance."""
    return abs(change - promised) <= max(TOLERANCE, TOLERANCE_SHARE * max(abs(change), abs(promised)))


def _why(trial: Trial, step: Step, design: int, metric: str, k: int) -> str:
    """Return why a step changes a metric by something else than its elasticity promises."""
    boost = trial.numbers["boost_clock_mhz"]
    if step.attribute.name == "tensor_clock_mhz" and step.after > boost:
        return f"tensor kernels run at most at the boost clock, {boost:g} MHz"
    slopes: np.ndarray = trial.slopes.joules if metric == "energy_j" else trial.slopes.microseconds
    return why(trial.result, design, metric, step.factor ** slopes[k])


def by_effect(rows: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return rows of attributes and metrics, the largest change of a time first, then of the energy."""
    energy = rows["metric"] == "energy_j"
    times = rows[~energy].groupby("attribute")["change"].agg(lambda c: c.abs().max())
    joules = rows[energy].set_index("attribute")["change"].abs()
    order = pd.DataFrame(
        {
            "time": -rows["attribute"].map(times.where(times >= SMALLEST, 0.0)),
            "energy": -rows["attribute"].map(joules),
            "name": rows["attribute"],
            "metric": rows["metric"].map(metrics.index),
        }
    )
    return rows.loc[order.sort_values(list(order), kind="stable").index].reset_index(drop=True)


def changes_text(rows: pd.DataFrame) -> str:
    """Return what a step changes, as "−7.3 % TBT, −3.1 % energy"."""
    return ", ".join(f"{percent(row['change'])} {METRIC_WORDS[row['metric']]}" for _, row in rows.iterrows())


def sentence(rows: pd.DataFrame) -> str:
    """Return the sentence of one step's rows: what it changes, and where its elasticity says something else."""
    text = f"{rows['text'].iloc[0]}: {changes_text(rows)}"
    disagreeing = rows[~rows["agrees"]]
    if disagreeing.empty:
        return text
    worst = disagreeing.loc[(disagreeing["change"] - disagreeing["promised"]).abs().idxmax()]
    promise = f"{percent(worst['promised'])} {METRIC_WORDS[worst['metric']]}"
    return f"{text} (the elasticity promises {promise}: {worst['why']})"

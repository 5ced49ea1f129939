"""The data of every figure of an explanation's page."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dse.evaluate.run import NOT_USED, RunResult
from dse.explanation.attribute_words import METRIC_WORDS, explained_metrics
from dse.explanation.explain import MOST_ASSUMED, Explanation
from dse.explanation.roofline_points import TOTAL, bandwidth_gbs
from dse.explanation.sensitivity_table import SMALLEST
from dse.explanation.shortened import heaviest
from dse.reports.common.words import METRIC_LABELS
from dse.reports.sweep.assumed import lines
from dse.reports.sweep.data import REST, SMALL_SHARE
from dse.timing.timing import CAUSES

MOST_BARS = 20
"""Attributes in a tornado."""


def assumed_lines(explanation: Explanation, most: int | None = None) -> list[str]:
    """Return a line for each of the ``most`` assumed numbers that move the metrics of a design most."""
    return list(lines(explanation.assumed, METRIC_LABELS | METRIC_WORDS, most or MOST_ASSUMED))


def kernel_stacks(run: RunResult, most: int | None = None) -> pd.DataFrame:
    """Return the stack of the phase and of its ``most`` heaviest kernels (all of them where it is None).

    Columns: workload (the phase), name, cause, ms, share of the bar.
    """
    rows = []
    for phase in run.workload.phases:
        rows += _bars(phase.name, TOTAL, run.stack(phase.name))
        part = run.kernels[(run.kernels["phase"] == phase.name) & (run.kernels["bound_by"] != NOT_USED)]
        again = part.groupby("kernel").cumcount()
        heaviest_ones = heaviest(part["time_ms"], most)
        for (_, row), number in zip(part[heaviest_ones].iterrows(), again[heaviest_ones], strict=True):
            name = f"{row['kernel']} ({number + 1})" if number else str(row["kernel"])
            rows += _bars(phase.name, name, {cause: float(row[f"{cause}_ms"]) for cause in CAUSES})
    return pd.DataFrame(rows)


def design_stacks(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return the stack of every phase on several designs, in the columns of :func:`kernel_stacks`."""
    phases = [phase.name for phase in runs[0].workload.phases]
    return pd.DataFrame(
        [row for phase in phases for run in runs for row in _bars(phase, run.gpu.title, run.stack(phase))]
    )


def _bars(workload: str, name: str, stack: dict[str, float]) -> list[dict]:
    """A bar's causes, those too small to be drawn together as the rest."""
    total = sum(stack.values())
    shown = {cause: value for cause, value in stack.items() if value >= SMALL_SHARE * total and value > 0}
    shown |= {REST: total - sum(shown.values())}
    return [
        {"workload": workload, "name": name, "cause": cause, "ms": value, "share": value / total}
        for cause, value in shown.items()
        if value > 0
    ]


def roofline(explanation: Explanation, most: int | None = None) -> tuple[pd.DataFrame, dict[str, float], float]:
    """Return the kernels with a place on the roofline, the peaks [TFLOP/s] of their units, and the slope [GB/s].

    A kernel's ``share`` is that of its phase's time; of a phase the ``most`` heaviest.
    """
    points = explanation.roofline[explanation.roofline["intensity"].notna() & (explanation.roofline["kernel"] != TOTAL)]
    points = points.assign(share=explanation.run.kernels["share"].to_numpy()[points["operator"].to_numpy(dtype=int)])
    points = points[points.groupby("phase")["share"].transform(lambda part: heaviest(part, most)).astype(bool)]
    peaks = points.groupby("unit", sort=False)["peak_tflops"].first()
    return points, {str(unit): float(peak) for unit, peak in peaks.items()}, bandwidth_gbs(explanation.run.gpu)


def tornado(explanation: Explanation, most: int = MOST_BARS) -> pd.DataFrame:
    """Return the steps that change most: a row a step and metric (text, metric, change and promised [%], agrees)."""
    return _percents(explanation.steps, explained_metrics(explanation.run.workload), most).assign(
        promised=lambda frame: 100 * frame["promised"]
    )


def swap_tornado(swaps: pd.DataFrame, metrics: list[str], most: int = MOST_BARS) -> pd.DataFrame:
    """Return the swaps of two designs in the columns of :func:`tornado`."""
    frame = swaps[swaps["change"].notna()]
    frame = frame.assign(text=frame["attribute"], promised=np.nan, agrees=True)
    return _percents(frame, metrics, most)


def _percents(frame: pd.DataFrame, metrics: list[str], most: int) -> pd.DataFrame:
    large = frame.groupby("attribute", sort=False)["change"].agg(lambda change: change.abs().max())
    largest = large[large >= SMALLEST].index[:most]
    frame = frame[frame["attribute"].isin(largest) & frame["metric"].isin(metrics)]
    words = frame["metric"].map(METRIC_WORDS)
    return frame.assign(metric=words, change=100 * frame["change"])[["text", "metric", "change", "promised", "agrees"]]

"""What a comparison of GPUs shows: columns with their names, cells as text, and the sentences of its answer."""

from typing import Any

import pandas as pd

from dse.explanation.gpu_comparison import USD, GpuComparison
from dse.reports.common.words import METRIC_LABELS, MISSING, capital, joined, number, probability_text
from dse.space.metrics import MORE_IS_BETTER, WORKLOAD_METRICS

SHOWN = ("ttft_ms", "tbt_ms", "time_ms", "tokens_per_s", "tokens_per_joule", "power_w", USD)
"""Columns of numbers, in order; the time is left out where one phase is all of it."""

HEADS = {
    "ttft_ms": "TTFT ms",
    "tbt_ms": "TBT ms",
    "time_ms": "time ms",
    "tokens_per_s": "token/s",
    "tokens_per_joule": "token/J",
    "power_w": "W",
    USD: "USD/M",
}
"""Metric -> its head in a table; USD/M: dollars a million tokens."""

BEST_IN = {"ttft_ms": "first token", "tbt_ms": "next token", "tokens_per_joule": "tokens a joule", USD: "dollars"}
"""Metric whose best GPU the answer names -> its words."""


def shown_metrics(comparison: GpuComparison) -> list[str]:
    """Return the columns of numbers that a comparison shows."""
    table = comparison.table
    names = [name for name in SHOWN if name in table and table[name].notna().any()]
    return [name for name in names if name != "time_ms" or len({"ttft_ms", "tbt_ms"} & set(names)) != 1]


def groups(comparison: GpuComparison) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of each value of the axis, with a title ("" where nothing varies)."""
    axis = comparison.axis
    return [(f"{axis} {value}" if axis else "", rows) for value, rows in comparison.table.groupby("value", sort=False)]


def cells(comparison: GpuComparison, row: pd.Series) -> list[str]:
    """Return the numbers of a row as text; empty cells are MISSING."""
    return [MISSING if pd.isna(row[name]) else number(row[name]) for name in shown_metrics(comparison)]


def ratio_text(row: pd.Series) -> str:
    """Return a row's ratio to the first GPU, with where 80 % of measured ratios lie."""
    if pd.isna(row["ratio"]):
        return MISSING
    span = None if pd.isna(row["ratio_low"]) else (float(row["ratio_low"]), float(row["ratio_high"]))
    return f"{row['ratio']:.2f}" + (f" ({span[0]:.2f} to {span[1]:.2f})" if span else "")


def better_text(row: pd.Series) -> str:
    """Return how probably a row is better than the first GPU."""
    probability = row["probability_better"]
    return MISSING if pd.isna(probability) else probability_text(float(probability))


def refusals(rows: pd.DataFrame) -> list[str]:
    """Return a sentence for each reason why GPUs cannot run: those that lack memory for the same need share one."""
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for _, row in rows[rows["reason"] != ""].iterrows():
        need, _, rest = reason_text(row).partition(f", {row['title']} has ")
        capacity, _, advice = rest.partition("; ")
        shared.setdefault((need, advice), []).append((str(row["gpu"]), capacity))
    sentences = []
    for (need, advice), gpus in shared.items():
        has = joined([f"{gpu} has {capacity}" for gpu, capacity in gpus if capacity])
        ends = [f"; {advice}"] if advice else []
        told = "".join([need, *([f"; {has}"] if has else []), *ends])
        sentences.append(f"{joined([gpu for gpu, _ in gpus])} cannot run it: {told}")
    return sentences


def reason_text(row: pd.Series) -> str:
    """Return why a GPU cannot run, without the workload's name before it."""
    return str(row["reason"]).rpartition(": ")[2] if row["reason"] else ""


def answer(comparison: GpuComparison) -> list[str]:
    """Return which GPU is best in each shown metric, for each value of the axis, and which cannot run."""
    sentences = []
    for title, rows in groups(comparison):
        running = rows[(rows["reason"] == "") & (rows["beyond"] == "")]
        parts = [_best(comparison, running, name) for name in BEST_IN if name in shown_metrics(comparison)]
        refused = [str(gpu) for gpu in rows.loc[rows["reason"] != "", "gpu"]]
        who = "none of them can" if len(refused) == len(rows) > 1 else f"{joined(refused)} cannot"
        beyond = [str(gpu) for gpu in rows.loc[rows["beyond"] != "", "gpu"]]
        cannot = [f"{who} run it"] if refused else []
        cannot += [f"{joined(beyond)} {'are' if len(beyond) > 1 else 'is'} beyond the limit"] if beyond else []
        if text := "; ".join(filter(None, [*parts, *cannot])):
            sentences.append(capital(f"{title}: {text}." if title else f"{text}."))
    return [*_overall(comparison), *sentences]


def _overall(comparison: GpuComparison) -> list[str]:
    """Which GPU and value of the axis are best of all that keep to the limits."""
    if not comparison.limits:
        return []
    within = f"Within {joined(list(comparison.limits))}"
    rows = comparison.table[(comparison.table["reason"] == "") & (comparison.table["beyond"] == "")]
    if rows.empty:
        return [f"{within}: none of the GPUs compared."]
    best = [_best(comparison, rows, name, True) for name in BEST_IN if name in shown_metrics(comparison)]
    return [f"{within}: {'; '.join(filter(None, best))}."] if comparison.axis else []


def _best(comparison: GpuComparison, rows: pd.DataFrame, metric: str, everywhere: bool = False) -> str:
    """The best row in a metric; one of a single GPU is no best of a value, and of all it is."""
    known = rows[rows[metric].notna()]
    if len(known) < (1 if everywhere or comparison.limits else 2):
        return ""
    more = metric in MORE_IS_BETTER
    row: Any = known.loc[known[metric].idxmax() if more else known[metric].idxmin()]
    unit = "USD a million" if metric == USD else WORKLOAD_METRICS[metric][0]
    at = f" at {comparison.axis} {row['value']}" if everywhere else ""
    return f"{BEST_IN[metric]}: {row['gpu']}{at} ({number(row[metric])} {unit})"


def own_names(comparison: GpuComparison) -> list[str]:
    """Return what the GPUs of the user's files are called there, beside the names that the tables use."""
    return [f"{gpu.name}: {gpu.title}" for gpu in comparison.gpus if gpu.base and gpu.title != gpu.name]


def compared_text(comparison: GpuComparison) -> str:
    """Return what the ratios are of, and what stands beside them."""
    of, to = METRIC_LABELS.get(comparison.compared, comparison.compared), comparison.gpus[0].name
    return f"ratio of {of} to {to}, and where 80 % of measured ratios lie; better: how probably it is better than {to}"

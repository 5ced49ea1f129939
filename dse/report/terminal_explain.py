"""``dse explain`` in the terminal: what would change the result, in sentences; then the stack and the roofline."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.report.terminal_run import METRIC_NAMES
from dse.report.words import number, power_calibration, signed_percent, timing_calibration
from dse.search.compare import SWAPS, Comparison
from dse.search.explain import METHOD, Explanation
from dse.search.roofline_points import TOTAL, bandwidth_gbs
from dse.timing.timing import CAUSES, PHASE_CAUSES

MOST_SENTENCES = 20
"""Moves told in the terminal; ``--json`` holds all."""

MOST_CAUSES = 3
"""Causes named for a kernel."""


def print_found(found: Explanation | Comparison, console: Console) -> None:
    """Print what ``dse explain`` found, with ``--against`` or without."""
    if isinstance(found, Comparison):
        print_comparison(found, console)
    else:
        print_explanation(found, console)


def print_explanation(found: Explanation, console: Console) -> None:
    """Print the moves as sentences, then a table of kernels for each phase."""
    run = found.run
    _line(console, f"{run.workload.description} on {run.gpu.title}", "bold")
    _calibration(found, console)
    told = [f"{METRIC_NAMES[name]} {number(run.metrics[name][0])} {run.metrics[name][1]}" for name in found.metrics]
    _line(console, "; ".join(told) + "\n")
    _sentences(found.sentences(), console)
    nothing = found.without_effect()
    if nothing:
        _line(console, f"\nNo effect (below 0.05 %): {', '.join(nothing)}", "dim")
    if found.left_out:
        _line(console, f"Not moved: {', '.join(found.left_out)} (--json says why)", "dim")
    _line(console, METHOD, "dim")
    for phase in run.workload.phases:
        console.print()
        console.print(_kernels(found, phase.name, console.width))
    _line(console, f"\nRoof: DRAM at {bandwidth_gbs(run.gpu):,.0f} GB/s sustained, peaks at the sheet's clocks", "dim")
    for cause in PHASE_CAUSES:
        if any(run.stack(phase.name).get(cause, 0) for phase in run.workload.phases):
            _line(console, f"{cause}: {PHASE_CAUSES[cause]}", "dim")


def print_comparison(found: Comparison, console: Console) -> None:
    """Print two designs side by side: metrics, stacks, kernels, and what each differing attribute does alone."""
    first, second = found.first.run, found.second.run
    _line(console, f"{first.workload.description}: {first.gpu.title} and {second.gpu.title}", "bold")
    _calibration(found.first, console)
    _sentences(found.sentences(), console)
    _line(console, SWAPS, "dim")
    console.print()
    names = [first.gpu.name, second.gpu.name]
    rows = [(METRIC_NAMES.get(r["metric"], r["metric"]), r["first"], r["second"]) for _, r in found.metrics.iterrows()]
    console.print(_beside("metrics", names, rows))
    for phase in first.workload.phases:
        for title, table, key in (("ms by cause", found.stack, "cause"), ("ms by kernel", found.kernels, "kernel")):
            part = table[table["phase"] == phase.name]
            rows = [(r[key], r["first_ms"], r["second_ms"]) for _, r in part.iterrows()]
            console.print()
            console.print(_beside(f"{phase.name}: {title}", names, [*rows, _sum(part)]))


def _calibration(found: Explanation, console: Console) -> None:
    _line(console, timing_calibration(found.run.model), "yellow")
    _line(console, f"power model: {power_calibration(found.run.power)}\n", "yellow")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(text, markup=False, highlight=False, style=style)


def _sentences(sentences: list[str], console: Console) -> None:
    for sentence in sentences[:MOST_SENTENCES]:
        _line(console, f"  {sentence}")
    more = len(sentences) - MOST_SENTENCES
    if more > 0:
        _line(console, f"  and {more} more with less effect (--json holds them)", "dim")


def _kernels(found: Explanation, phase: str, width: int) -> Table:
    """The stack of each kernel and its place on the roofline; a narrow terminal gets fewer columns."""
    table = Table(title=f"{phase}: stack and roofline by kernel", title_justify="left", box=None, pad_edge=False)
    columns = {"kernel": 0, "ms": 0, "costs most": 0, "FLOP/B": 110, "TFLOP/s": 110, "of roof": 0, "of DRAM": 80,
               "steepest in": 110}  # fmt: skip
    shown = [name for name, needed in columns.items() if width >= needed]
    for name in shown:
        text = name in ("kernel", "costs most", "steepest in")
        table.add_column(name, justify="left" if text else "right", overflow="fold")
    points = found.roofline[found.roofline["phase"] == phase]
    for _, point in points.iterrows():
        cells = _cells(found, phase, point)
        table.add_row(*(Text(cells[name]) for name in shown))
    return table


def _cells(found: Explanation, phase: str, point: pd.Series) -> dict[str, str]:
    place = int(point["operator"])
    stack = found.run.stack(phase) if place < 0 else _kernel_stack(found, place)
    total = sum(stack.values())
    most = sorted(stack.items(), key=lambda item: -item[1])[:MOST_CAUSES]
    return {
        "kernel": point["kernel"],
        "ms": f"{total:.4g}",
        "costs most": ", ".join(f"{cause} {value / total:.0%}" for cause, value in most if value >= 0.01 * total),
        "FLOP/B": "" if pd.isna(point["intensity"]) else number(point["intensity"]),
        "TFLOP/s": "" if pd.isna(point["tflops"]) else number(point["tflops"]),
        "of roof": "" if pd.isna(point["of_roof"]) else f"{point['of_roof']:.0%}",
        "of DRAM": f"{point['of_bandwidth']:.0%}",
        "steepest in": _steepest(found, place),
    }


def _kernel_stack(found: Explanation, place: int) -> dict[str, float]:
    row = found.run.kernels.iloc[place]
    return {cause: float(row[f"{cause}_ms"]) for cause in CAUSES}


def _steepest(found: Explanation, place: int) -> str:
    """The attribute on which a kernel's time depends most, with its elasticity."""
    rows = found.kernel_elasticities
    rows = rows[rows["operator"] == place]
    return "" if rows.empty else f"{rows['name'].iloc[0]} {rows['time'].iloc[0]:+.2f}"


def _sum(part: pd.DataFrame) -> tuple[str, float, float]:
    return TOTAL, float(part["first_ms"].sum()), float(part["second_ms"].sum())


def _beside(title: str, names: list[str], rows: Sequence[tuple[Any, float, float]]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in (*names, "difference"):
        table.add_column(Text(name), justify="right")
    for name, first, second in rows:
        table.add_row(name, f"{first:,.4g}", f"{second:,.4g}", signed_percent(second, first))
    return table

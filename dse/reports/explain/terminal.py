"""``dse explain`` in the terminal: what would change the result, in sentences; then the stack and the roofline."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.base.units import signed
from dse.explanation.compare import RATIO, SWAPS, Comparison
from dse.explanation.explain import METHOD, Explanation
from dse.explanation.roofline_points import TOTAL, bandwidth_gbs
from dse.explanation.shortened import heaviest
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.common.words import (
    RUN_LABELS,
    bracketed,
    number,
    power_calibration,
    signed_percent,
    span_text,
    timing_calibration,
)
from dse.reports.run.notes import extrapolation, interval_notes
from dse.timing.timing import CAUSES, PHASE_CAUSES

MOST_SENTENCES = 20
"""Moves told in the terminal where nobody says how many; ``--json`` holds all."""

MOST_CAUSES = 3
"""Causes named for a kernel where nobody says how many."""


def print_found(found: Explanation | Comparison, console: Console, most: int | None = None) -> None:
    """Print what ``dse explain`` found, with ``--against`` or without; of each list the ``most`` that matter most."""
    if isinstance(found, Comparison):
        print_comparison(found, console, most)
    else:
        print_explanation(found, console, most)


def print_explanation(found: Explanation, console: Console, most: int | None = None) -> None:
    """Print the moves as sentences, then a table of kernels for each phase."""
    run = found.run
    say(console, f"{run.workload.description} on {run.gpu.title}", "bold")
    _calibration(found, console)
    say(console, "; ".join(_told(found, name) for name in found.metrics))
    for line in interval_notes(run):
        say(console, line, "dim")
    console.print()
    _sentences(found.sentences(), console, most or MOST_SENTENCES)
    nothing = found.without_effect()
    if nothing:
        say(console, f"\nNo effect (below 0.05 %): {', '.join(nothing)}", "dim")
    if found.left_out:
        say(console, f"Not moved: {', '.join(found.left_out)} (--json says why)", "dim")
    say(console, METHOD, "dim")
    for phase in run.workload.phases:
        console.print()
        console.print(_kernels(found, phase.name, console.width, most))
    say(console, f"\nRoof: DRAM at {bandwidth_gbs(run.gpu):,.0f} GB/s sustained, peaks at the sheet's clocks", "dim")
    for cause in PHASE_CAUSES:
        if any(run.stack(phase.name).get(cause, 0) for phase in run.workload.phases):
            say(console, f"{cause}: {PHASE_CAUSES[cause]}", "dim")


def _told(found: Explanation, name: str) -> str:
    """A metric with its unit and how sure it is."""
    value, unit = found.run.metrics[name]
    word = found.run.metric_error(name).word
    return f"{RUN_LABELS[name]} {number(value)} {unit}" + (f" ({word})" if word else "")


def print_comparison(found: Comparison, console: Console, most: int | None = None) -> None:
    """Print two designs side by side: metrics, stacks, kernels, and what each differing attribute does alone."""
    first, second = found.first.run, found.second.run
    say(console, f"{first.workload.description}: {first.gpu.title} and {second.gpu.title}", "bold")
    _calibration(found.first, console)
    own, *swaps = found.sentences()
    say(console, f"  {own}")
    _sentences(swaps, console, most or MOST_SENTENCES)
    say(console, SWAPS, "dim")
    console.print()
    names = [run.gpu.name if first.gpu.name != second.gpu.name else run.gpu.title for run in (first, second)]
    console.print(_metrics(found, names))
    if found.metrics["ratio_80"].notna().any():
        say(console, RATIO, "dim")
    for side in (first, second):
        if beyond := extrapolation(side):
            say(console, f"{side.gpu.title}: {beyond}", "dim")
    for note in found.host_notes():
        say(console, note, "dim")
    for phase in first.workload.phases:
        for title, table, key in (("ms by cause", found.stack, "cause"), ("ms by kernel", found.kernels, "kernel")):
            part = table[table["phase"] == phase.name]
            console.print()
            console.print(_beside(f"{phase.name}: {title}", names, [*_heaviest(part, key, most), _sum(part)]))


def _metrics(found: Comparison, names: list[str]) -> Table:
    """Each metric of two designs with its unit, and how far apart they are."""
    title = "metrics" + (", and where 80 % of differences lie" if found.metrics["ratio_80"].notna().any() else "")
    table = _empty(title, [*names, "difference", ""])
    for _, row in found.metrics.iterrows():
        cells = (f"{row[side]:,.4g}" for side in ("first", "second"))
        name = bracketed(RUN_LABELS.get(row["metric"], str(row["metric"])), row["unit"])
        table.add_row(Text(name), *cells, signed_percent(row["second"], row["first"]), span_text(row["ratio_80"]))
    return table


def _heaviest(part: pd.DataFrame, key: str, most: int | None) -> list[tuple[str, float, float]]:
    """The causes or kernels of a phase that take longest on either design, then the others together."""
    kept = heaviest(part[["first_ms", "second_ms"]].max(axis=1), most)
    rows = [(str(row[key]), row["first_ms"], row["second_ms"]) for _, row in part[kept].iterrows()]
    rest = part[~kept]
    return rows + ([(f"{len(rest)} others", rest["first_ms"].sum(), rest["second_ms"].sum())] if len(rest) else [])


def _calibration(found: Explanation, console: Console) -> None:
    say(console, timing_calibration(found.run.model), "yellow")
    say(console, f"power model: {power_calibration(found.run.power)}\n", "yellow")


def _sentences(sentences: list[str], console: Console, most: int) -> None:
    for sentence in sentences[:most]:
        say(console, f"  {sentence}")
    more = len(sentences) - most
    if more > 0:
        say(console, f"  and {more} more with less effect (--top {len(sentences)} tells them)", "dim")


def _kernels(found: Explanation, phase: str, width: int, most: int | None) -> Table:
    """The stack of each kernel and its place on the roofline; a narrow terminal gets fewer columns."""
    table = plain_table(f"{phase}: stack and roofline by kernel")
    columns = {
        "kernel": 0,
        "ms": 0,
        "costs most": 0,
        "FLOP/B": 110,
        "TFLOP/s": 110,
        "of roof": 0,
        "of DRAM": 80,
        "steepest in": 110,
    }
    shown = [name for name, needed in columns.items() if width >= needed]
    table.caption, table.caption_justify = "of DRAM: of the bandwidth that a stream sustains", "left"
    for name in shown:
        text = name in ("kernel", "costs most", "steepest in")
        table.add_column(name, justify="left" if text else "right", overflow="fold")
    points = found.roofline[found.roofline["phase"] == phase]
    times = found.run.kernels.loc[found.run.kernels["phase"] == phase, "time_ms"]
    kept = heaviest(times, most)
    for _, point in points.iterrows():
        if point["operator"] < 0 and not kept.all():
            rest = {"kernel": f"{(~kept).sum()} others", "ms": f"{times[~kept].sum():.4g}"}
            table.add_row(*(Text(rest.get(name, "")) for name in shown))
        elif point["operator"] >= 0 and not kept[point["operator"]]:
            continue
        cells = _cells(found, phase, point, most or MOST_CAUSES)
        table.add_row(*(Text(cells[name]) for name in shown))
    return table


def _cells(found: Explanation, phase: str, point: pd.Series, causes: int) -> dict[str, str]:
    place = int(point["operator"])
    stack = found.run.stack(phase) if place < 0 else _kernel_stack(found, place)
    total = sum(stack.values())
    most = sorted(stack.items(), key=lambda item: -item[1])[:causes]
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
    return "" if rows.empty else f"{rows['name'].iloc[0]} {signed(rows['time'].iloc[0], 2)}"


def _sum(part: pd.DataFrame) -> tuple[str, float, float]:
    return TOTAL, float(part["first_ms"].sum()), float(part["second_ms"].sum())


def _empty(title: str, columns: Sequence[str]) -> Table:
    table = plain_table(title)
    table.add_column("")
    for name in columns:
        table.add_column(Text(name), justify="right")
    return table


def _beside(title: str, names: list[str], rows: Sequence[tuple[str, float, float]]) -> Table:
    table = _empty(title, [*names, "difference"])
    for name, first, second in rows:
        table.add_row(Text(name), f"{first:,.4g}", f"{second:,.4g}", signed_percent(second, first))
    return table

"""The answer of ``dse explain`` in the terminal: what holds it, what helps, the kernels, and what it rests on."""

from collections.abc import Sequence

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.base.units import signed
from dse.evaluate.run import NOT_USED
from dse.explanation.cause_words import CAUSE_WORDS, cause_text
from dse.explanation.compare import RATIO, SWAPS, Comparison
from dse.explanation.explain import METHOD, Explanation
from dse.explanation.next_step import next_sentence, sides
from dse.explanation.roofline_points import TOTAL, bandwidth_gbs
from dse.explanation.shortened import heaviest
from dse.hardware.tensor_area import tensor_area_note
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.common.words import (
    RUN_LABELS,
    bracketed,
    number,
    power_calibration,
    probability_text,
    signed_percent,
    span_text,
    timing_calibration,
)
from dse.reports.explain.data import assumed_lines
from dse.reports.run.data import held_sentences
from dse.reports.run.notes import extrapolation, interval_notes
from dse.timing.timing import CAUSES, PHASE_CAUSES

MOST_STEPS = 8
"""Steps that help, and others, that the terminal names without ``--top``; ``--json`` holds all."""

MOST_CAUSES = 3
"""Causes that it names for a kernel without ``--top``."""


def print_answer(answer: Explanation | Comparison, console: Console, most: int | None = None) -> None:
    """Print the answer of ``dse explain``, with ``--against`` or without, of each list the ``most`` largest entries."""
    if isinstance(answer, Comparison):
        print_comparison(answer, console, most)
    else:
        print_explanation(answer, console, most)


def print_explanation(explanation: Explanation, console: Console, most: int | None = None) -> None:
    """Print what holds each phase and what helps most, all steps, the kernels of each phase, then the notes."""
    run = explanation.run
    say(console, f"{run.workload.description} on {run.gpu.title}", "bold")
    say(console, "; ".join(_metric_text(explanation, name) for name in explanation.metrics))
    for sentence in (*held_sentences(run), next_sentence(explanation.steps)):
        say(console, sentence)
    _steps(explanation, console, most)
    for phase in run.workload.phases:
        console.print()
        console.print(_kernels(explanation, phase.name, console.width, most))
    _assumed(explanation, console, most)
    console.print()
    _notes(explanation, console)


def _steps(explanation: Explanation, console: Console, most: int | None) -> None:
    """Print what each attribute changes, those first that make it faster."""
    faster, others = sides(explanation.steps)
    for title, texts in (("Faster with", faster), ("Not faster with", others)):
        if texts:
            say(console, f"\n{title}", "bold")
            _sentences(texts, console, most or MOST_STEPS)


def _notes(explanation: Explanation, console: Console) -> None:
    """Print what the answer rests on: calibrations, intervals, what was not moved, and what the words mean."""
    run = explanation.run
    _calibration(explanation, console)
    for line in interval_notes(run):
        say(console, line, "dim")
    nothing = explanation.without_effect()
    if nothing:
        say(console, f"No effect (below 0.05 %): {', '.join(nothing)}", "dim")
    if explanation.left_out:
        say(console, f"Not moved: {', '.join(explanation.left_out)} (--json says why)", "dim")
    say(console, METHOD, "dim")
    if known := tensor_area_note(run.gpu):
        say(console, f"{known}.", "dim")
    say(console, f"Roof: DRAM at {bandwidth_gbs(run.gpu):,.0f} GB/s sustained, peaks at the sheet's clocks", "dim")
    for cause in PHASE_CAUSES:
        if any(run.stack(phase.name).get(cause, 0) for phase in run.workload.phases):
            say(console, f"{cause_text(cause)}: {PHASE_CAUSES[cause]}", "dim")


def _assumed(explanation: Explanation, console: Console, most: int | None) -> None:
    """Print what the assumed numbers that matter most would make of the metrics."""
    texts = assumed_lines(explanation, most)
    if texts:
        say(console, f"\nOf {len(explanation.assumed.numbers)} assumed numbers, these move the metrics most:")
    for text in texts:
        say(console, f"  {text}")


def _metric_text(explanation: Explanation, name: str) -> str:
    """Return a metric with its name, its unit and its interval."""
    value, unit = explanation.run.metrics[name]
    word = explanation.run.metric_error(name).word
    return f"{RUN_LABELS[name]} {number(value)} {unit}" + (f" ({word})" if word else "")


def print_comparison(comparison: Comparison, console: Console, most: int | None = None) -> None:
    """Print two designs side by side: metrics, stacks, kernels, and what each differing attribute does alone."""
    first, second = comparison.first.run, comparison.second.run
    say(console, f"{first.workload.description}: {first.gpu.title} and {second.gpu.title}", "bold")
    own, (telling, others) = comparison.sentences()[0], comparison.told_apart()
    say(console, f"{own}\n")
    names = [run.gpu.name if first.gpu.name != second.gpu.name else run.gpu.title for run in (first, second)]
    console.print(_metrics(comparison, names))
    if comparison.metrics["ratio_80"].notna().any():
        say(console, f"better: how probably {names[1]} is. {RATIO}", "dim")
    say(console, f"\n{first.gpu.title} with one attribute of {second.gpu.title}", "bold")
    _sentences([*telling, *others], console, most or len(telling))
    say(console, SWAPS, "dim")
    _calibration(comparison.first, console)
    for side in (first, second):
        if beyond := extrapolation(side):
            say(console, f"{side.gpu.title}: {beyond}", "dim")
    for note in comparison.host_notes():
        say(console, note, "dim")
    for phase in first.workload.phases:
        for title, table, key in (
            ("ms by cause", comparison.stack, "cause"),
            ("ms by kernel", comparison.kernels, "kernel"),
        ):
            part = table[table["phase"] == phase.name]
            console.print()
            console.print(_side_by_side(f"{phase.name}: {title}", names, [*_heaviest(part, key, most), _sum(part)]))


def _metrics(comparison: Comparison, names: list[str]) -> Table:
    """Each metric of two designs with its unit, and how far apart they are."""
    title = "metrics" + (", and where 80 % of differences lie" if comparison.metrics["ratio_80"].notna().any() else "")
    table = _empty(title, [*names, "difference", "", "better"])
    for _, row in comparison.metrics.iterrows():
        cells = (f"{row[side]:,.4g}" for side in ("first", "second"))
        name = bracketed(RUN_LABELS.get(row["metric"], str(row["metric"])), row["unit"])
        sure = (span_text(row["ratio_80"]), probability_text(row["probability_better"]) if row["ratio_80"] else "")
        table.add_row(Text(name), *cells, signed_percent(row["second"], row["first"]), *sure)
    return table


def _heaviest(part: pd.DataFrame, key: str, most: int | None) -> list[tuple[str, float, float]]:
    """The causes or kernels of a phase that take longest on either design, then the others together."""
    longest = heaviest(part[["first_ms", "second_ms"]].max(axis=1), most)
    shown = part[longest].assign(name=part[key].replace(CAUSE_WORDS) if key == "cause" else part[key])
    rows = [(str(row["name"]), row["first_ms"], row["second_ms"]) for _, row in shown.iterrows()]
    rest = part[~longest]
    return rows + ([(f"{len(rest)} others", rest["first_ms"].sum(), rest["second_ms"].sum())] if len(rest) else [])


def _calibration(explanation: Explanation, console: Console) -> None:
    say(console, timing_calibration(explanation.run.model), "yellow")
    say(console, f"power model: {power_calibration(explanation.run.power)}", "yellow")


def _sentences(sentences: list[str], console: Console, most: int) -> None:
    for sentence in sentences[:most]:
        say(console, f"  {sentence}")
    more = len(sentences) - most
    if more > 0:
        say(console, f"  and {more} more with less effect (--top {len(sentences)} tells them)", "dim")


def _kernels(explanation: Explanation, phase: str, width: int, most: int | None) -> Table:
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
    ran = explanation.run.kernels[explanation.run.kernels["bound_by"] != NOT_USED]
    points = explanation.roofline[explanation.roofline["phase"] == phase]
    points = points[points["operator"].isin([*ran.index, -1])]
    times = ran.loc[ran["phase"] == phase, "time_ms"]
    longest = heaviest(times, most)
    for _, point in points.iterrows():
        if point["operator"] < 0 and not longest.all():
            rest = {"kernel": f"{(~longest).sum()} others", "ms": f"{times[~longest].sum():.4g}"}
            table.add_row(*(Text(rest.get(name, "")) for name in shown))
        elif point["operator"] >= 0 and not longest[point["operator"]]:
            continue
        cells = _cells(explanation, phase, point, most or MOST_CAUSES)
        table.add_row(*(Text(cells[name]) for name in shown))
    return table


def _cells(explanation: Explanation, phase: str, point: pd.Series, causes: int) -> dict[str, str]:
    place = int(point["operator"])
    stack = explanation.run.stack(phase) if place < 0 else _kernel_stack(explanation, place)
    total = sum(stack.values())
    most = [item for item in sorted(stack.items(), key=lambda item: -item[1])[:causes] if item[1] >= 0.01 * total]
    return {
        "kernel": point["kernel"],
        "ms": f"{total:.4g}",
        "costs most": ", ".join(f"{CAUSE_WORDS[cause]} {value / total:.0%}" for cause, value in most),
        "FLOP/B": "" if pd.isna(point["intensity"]) else number(point["intensity"]),
        "TFLOP/s": "" if pd.isna(point["tflops"]) else number(point["tflops"]),
        "of roof": "" if pd.isna(point["of_roof"]) else f"{point['of_roof']:.0%}",
        "of DRAM": f"{point['of_bandwidth']:.0%}",
        "steepest in": _steepest(explanation, place),
    }


def _kernel_stack(explanation: Explanation, place: int) -> dict[str, float]:
    row = explanation.run.kernels.iloc[place]
    return {cause: float(row[f"{cause}_ms"]) for cause in CAUSES}


def _steepest(explanation: Explanation, place: int) -> str:
    """The attribute on which a kernel's time depends most, with its elasticity."""
    rows = explanation.kernel_elasticities
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


def _side_by_side(title: str, names: list[str], rows: Sequence[tuple[str, float, float]]) -> Table:
    table = _empty(title, [*names, "difference"])
    for name, first, second in rows:
        table.add_row(Text(name), f"{first:,.4g}", f"{second:,.4g}", signed_percent(second, first))
    return table

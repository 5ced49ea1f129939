"""``dse run`` in the terminal: what holds the workload back, its metrics, the stack, the watts, and the kernels."""

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.evaluate.run import NOT_USED, RunResult
from dse.explanation.cause_words import CAUSE_WORDS, meaning
from dse.power.power import COMPONENTS
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.common.words import RUN_LABELS, power_calibration, timing_calibration
from dse.reports.run.data import four_digits, held_sentences
from dse.reports.run.notes import run_notes
from dse.timing.timing import HOST


def print_run(result: RunResult, console: Console) -> None:
    """Print what holds each phase, the metrics, stack by phase, and a table of kernels."""
    say(console, f"{result.workload.description} on {result.gpu.title}", "bold")
    for sentence in held_sentences(result):
        say(console, sentence)
    console.print()
    for name, (value, unit) in result.metrics.items():
        error = result.metric_error(name)
        interval = ", ".join(filter(None, (error.word, error.scope.partition(";")[0])))
        unit = "" if unit == "1" else unit
        console.print(
            f"  {RUN_LABELS.get(name, name):30s} {four_digits(value):>10s} {unit:10s} [dim]{interval}[/]".rstrip()
        )
    console.print()
    say(console, timing_calibration(result.model), "yellow")
    say(console, f"power model: {power_calibration(result.power)}", "yellow")
    for line in run_notes(result):
        say(console, line, "dim")
    for phase in result.workload.phases:
        rows = result.rows_of(phase.name)
        console.print()
        console.print(_stack(phase.name, result.stack(phase.name)))
        console.print()
        console.print(_watts(phase.name, result.watts[phase.name]))
        console.print()
        console.print(_kernels(phase.name, rows, console.width, result.waits.get(phase.name, 0.0)))


def _stack(phase: str, stack: dict[str, float]) -> Table:
    named = {CAUSE_WORDS[cause]: value for cause, value in stack.items()}
    meanings = {CAUSE_WORDS[cause]: meaning(cause) for cause in stack}
    return _shares(f"{phase}: where the time goes", "cause", "ms", named, meanings)


def _watts(phase: str, watts: dict[str, float]) -> Table:
    return _shares(f"{phase}: where the power goes, mean of a board", "component", "W", watts, COMPONENTS)


def _shares(title: str, what: str, unit: str, values: dict[str, float], meanings: dict[str, str]) -> Table:
    """A row a part, the largest first, with its share; parts below 0.1 % are left out."""
    total = sum(values.values())
    table = plain_table(title)
    table.add_column(what, overflow="fold")
    table.add_column(unit, justify="right")
    table.add_column("%", justify="right")
    table.add_column("")
    table.add_column("meaning", style="dim", overflow="fold")
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        share = value / total
        if share >= 0.001:
            table.add_row(name, f"{value:.4g}", f"{100 * share:.1f}", "█" * round(20 * share), meanings[name])
    table.add_row("total", f"{total:.4g}", "100.0", "", "")
    return table


def _kernels(phase: str, rows: Sequence[Mapping[str, Any]], width: int, waits: float) -> Table:
    """The kernels of a phase, and how long the GPU ``waits`` beside [ms]; a narrow terminal gets the columns that
    matter most, never cut ones."""
    columns: dict[str, tuple[Callable[[Mapping[str, Any]], str], int]] = {
        "kernel": (lambda row: row["kernel"], 0),
        "shape": (lambda row: row["shape"], 196),
        "implementation": (lambda row: row["implementation"], 144),
        "runs": (lambda row: f"{row['repeats']:g}", 0),
        "us each": (lambda row: f"{row['time_us']:.2f}", 0),
        "share %": (lambda row: f"{100 * row['share']:.1f}", 0),
        "TFLOP/s": (lambda row: f"{row['tflops']:.1f}" if row["tflops"] else "", 106),
        "DRAM GB/s": (lambda row: f"{row['dram_gbs']:.0f}", 106),
        "W, no limit": (lambda row: f"{row['power_w']:.0f}", 106),
        "bound by": (lambda row: CAUSE_WORDS.get(str(row["bound_by"]), str(row["bound_by"])), 0),
    }
    shown = {name: cell for name, (cell, needed) in columns.items() if width >= needed}
    table = plain_table(f"{phase}: kernels")
    for name in shown:
        text = name in ("kernel", "shape", "implementation", "bound by")
        table.add_column(name, justify="left" if text else "right", no_wrap=True)
    for row in rows:
        if row["bound_by"] == NOT_USED:
            continue
        table.add_row(*(Text(cell(row)) for cell in shown.values()))
    if waits > 0:
        share = waits / (waits + fsum(row["time_ms"] for row in rows))
        last = {
            "kernel": "none: the GPU waits",
            "runs": "1",
            "us each": f"{1e3 * waits:.2f}",
            "share %": f"{100 * share:.1f}",
            "bound by": CAUSE_WORDS[HOST],
        }
        table.add_row(*(Text(last.get(name, "")) for name in shown))
    return table

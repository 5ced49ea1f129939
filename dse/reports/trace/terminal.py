"""``dse trace`` in the terminal: the stack of each kernel and the total."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.evaluate.trace_watts import TracedPower, mean_watts, power_notes
from dse.power.power import COMPONENTS, PowerModel
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.common.words import timing_calibration
from dse.scaling.from_trace import CurvePoint
from dse.timing.timing import CAUSES
from dse.timing.traced.gcom import GcomResult, Stack
from dse.timing.traced.trace_answer import TracedTiming, TraceQuestion

GCOM_CAUSES = {
    "base": "instructions issue",
    "com_data": "a dependent compute or shared-memory instruction is not ready",
    "com_struct": "a compute unit is busy",
    "mem_data": "L1, L2 or DRAM has not answered, and queueing in network and DRAM",
    "mem_struct": "L1 banks and MSHRs are busy",
    "idle": "sub-cores and SMs without warps wait for the longest",
}
"""The causes of GCoM's stack."""


def print_gcom(results: Sequence[GcomResult], console: Console) -> None:
    """Print the stack of each kernel and of all [cycle], and cycles per thread instruction."""
    names = [result.kernel for result in results]
    stacks = [{cause: getattr(result.stack, cause) for cause in GCOM_CAUSES} for result in results]
    total = sum((result.stack for result in results), Stack())
    _print_stacks(names, stacks, GCOM_CAUSES, console)
    threads = sum(result.thread_instructions for result in results)
    console.print(f"\n{total.cycles:,.1f} cycles, {total.cycles / max(threads, 1):.3g} per thread instruction")


def print_trace(question: TraceQuestion, results: Sequence[TracedTiming], console: Console) -> None:
    """Print the stack of each kernel and of all [cycle], and the time."""
    model = question.model
    console.print(f"{question.directory.path.name} on {question.sheet.title}", markup=False, style="bold")
    console.print(f"{timing_calibration(model)}\n", markup=False, style="yellow")
    _print_stacks([result.kernel for result in results], [result.stack for result in results], CAUSES, console)
    cycles, us = sum(r.cycles for r in results), sum(r.microseconds for r in results)
    instructions = sum(r.warp_instructions for r in results)
    console.print(
        f"\n{cycles:,.1f} cycles, {us:,.2f} us at {results[0].clock_ghz:.3g} GHz, "
        f"{cycles / max(instructions, 1):.3g} cycles per warp instruction of the grid"
    )


def print_watts(question: TraceQuestion, model: PowerModel, results: Sequence[TracedPower], console: Console) -> None:
    """Print what :func:`print_trace` does, then the watts of each kernel by component and of all [W]."""
    print_trace(question, [result.timing for result in results], console)
    console.print(f"\npower model: {model.calibration}; no power limit is held", markup=False, style="yellow")
    for note in power_notes(question, model):
        say(console, note, "dim")
    names, watts = [result.timing.kernel for result in results], [result.watts for result in results]
    _print_stacks(names, watts, COMPONENTS, console, "watts by component, and %", mean_watts(results))
    beside = [f"{result.board_w:,.1f}" for result in results if result.board_w is not None]
    if beside:
        say(console, f"the board model's watts, kernel by kernel: {', '.join(beside)}", "dim")


def print_curves(curves: Sequence[tuple[str, Sequence[CurvePoint]]], console: Console) -> None:
    """Print what an L2 of each size misses of each kernel's loads."""
    for name, curve in curves:
        table = plain_table(f"{name}: misses of an L2, fully associative and LRU")
        for column in ("L2 MiB", "sectors", "% of loads", "MPKI"):
            table.add_column(column, justify="right")
        for point in curve:
            rate = f"{100 * point.miss_rate:.2f}"
            table.add_row(f"{point.l2_mib:.3g}", f"{point.misses:,.0f}", rate, f"{point.mpki:.4g}")
        console.print(table)
    say(console, "MPKI: misses (sectors of 32 bytes) per thousand thread instructions", "dim")


MOST_COLUMNS = 5
"""Kernels that one table holds beside each other: so it fits 80 columns."""


def _print_stacks(
    names: Sequence[str],
    stacks: Sequence[dict[str, float]],
    causes: dict[str, str],
    console: Console,
    title: str = "cycles by cause, and %",
    together: dict[str, float] | None = None,
) -> None:
    """Print a row a cause and a column a kernel, the largest first; causes that cost nothing are left out.

    ``together``: the column of all kernels, None for their sums.
    """
    sums = together or {cause: sum(stack[cause] for stack in stacks) for cause in causes}
    shown = sorted((cause for cause, cycles in sums.items() if cycles > 0), key=lambda cause: -sums[cause])
    columns = [(f"{number} {name}", stack) for number, (name, stack) in enumerate(zip(names, stacks, strict=True), 1)]
    for start in range(0, len(columns), MOST_COLUMNS):
        part = columns[start : start + MOST_COLUMNS]
        last = start + MOST_COLUMNS >= len(columns)
        if last and len(columns) > 1:
            part = [*part, ("all", sums)]
        console.print(_table(part, shown, title))
    console.print()
    for cause in shown:
        console.print(Text(f"{cause}: {causes[cause]}", style="dim"))


def _table(columns: Sequence[tuple[str, dict[str, float]]], shown: Sequence[str], title: str) -> Table:
    table = plain_table(title)
    table.add_column(title.split()[2].rstrip(","), no_wrap=True)
    for name, _ in columns:
        table.add_column(Text(name), justify="right", overflow="fold", min_width=9)
    totals = [sum(stack.values()) for _, stack in columns]
    for cause in shown:
        cells = [_cell(stack[cause], total) for (_, stack), total in zip(columns, totals, strict=True)]
        table.add_row(cause, *cells)
    table.add_row("total", *(_cell(total, total) for total in totals))
    return table


def _cell(cycles: float, total: float) -> str:
    digits = 0 if total >= 1000 else 1
    return f"{cycles:,.{digits}f} {100 * cycles / total:3.0f}%" if cycles else ""

"""``dse scale`` in the terminal: predictions and errors by sheet, method and size."""

import pandas as pd
from rich.console import Console
from rich.table import Table

from dse.base.units import signed
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.common.words import number
from dse.reports.scale.data import compared_text, coverage_text, error_table, scaling_notes, speed_ups, unequal
from dse.scaling.scale import ScaleAnswer, SheetAnswer
from dse.scaling.scale_model import METHODS


def print_scaling(answer: ScaleAnswer, console: Console) -> None:
    """Print each sheet's predictions by the recursion with the truth, every method's errors, and what was skipped."""
    for sheet in answer.sheets:
        if not sheet.points:
            continue
        unit = sheet.sheet.unit
        head = f"{sheet.sheet.name}: predicted from {sheet.small:g} and {sheet.large:g} {unit}s"
        say(console, head, "bold")
        console.print(_predictions(sheet))
        if sheet.errors():
            console.print(_errors(sheet))
            say(console, f"{compared_text(sheet)} {coverage_text(sheet)}".strip(), "dim")
        console.print()
    frame = speed_ups(answer)
    for _, row in frame[frame["benchmark"] == "mean"].iterrows():
        line = f"{row['sheet']}: the scale models simulate {row['factor']:.1f} times faster than {row['size']:g}"
        say(console, f"{line} {row['unit']}s, in the mean")
    for note in scaling_notes(answer):
        say(console, note, "yellow")


def _predictions(answer: SheetAnswer) -> Table:
    table = plain_table("IPC by the recursion")
    for name in ("benchmark", f"{answer.sheet.unit}s", "IPC", "interval", "error"):
        table.add_column(name, justify="left" if name == "benchmark" else "right", no_wrap=True)
    last = ""
    for point in (p for p in answer.points if p.method == "recursion" and p.interval):
        low, high = point.interval or (0.0, 0.0)
        off = "" if point.off is None else f"{signed(point.off, 1)} %"
        name = point.benchmark + (" (cliff)" if answer.cliffs[point.benchmark] else "")
        cells = [f"{point.size:g}", number(point.ipc), f"{number(low)} to {number(high)}", off]
        table.add_row("" if name == last else name, *cells)
        last = name
    return table


def _errors(answer: SheetAnswer) -> Table:
    """Errors on the benchmarks that every method predicts, and how many each predicts where they are not as many."""
    frame = error_table(answer).set_index(["method", "size"])
    sizes = sorted(set(frame.index.get_level_values("size")))
    table = plain_table("error, %: mean / largest")
    table.add_column("method", no_wrap=True)
    counted = unequal(frame)
    for size in sizes:
        table.add_column(f"{size:g} {answer.sheet.unit}s", justify="right", no_wrap=True)
    for method in METHODS:
        predicted = [(method, size) in frame.index for size in sizes]
        cells = [
            _error(frame.loc[(method, size)], counted) if is_predicted else "–"
            for size, is_predicted in zip(sizes, predicted, strict=True)
        ]
        table.add_row(method, *cells)
    return table


def _error(row: pd.Series, counted: bool) -> str:
    shared = f"{row['shared_mean']:.2f} / {row['shared_max']:.1f}" if row["shared_n"] else "–"
    return shared + (f" ({row['n']:.0f})" if counted else "")

"""``dse sweep`` in the terminal: question, numbers, plot, a table that fits the window, and the number of notes."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.base.brief import count_of
from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.axis_verdicts import AxisVerdicts
from dse.grid.constraint_check import without_designs
from dse.grid.result import SweepResult
from dse.reports.common.price_note import price_headline
from dse.reports.common.terminal_parts import say
from dse.reports.common.words import capital, gpu_name, label, number, probability_text, short_values, signed_percent
from dse.reports.sweep.answer import all_notes, good_to, question
from dse.reports.sweep.assumed import lines, sentences
from dse.reports.sweep.data import chosen_designs, infeasible, lettered_front, measured_baseline, varied_axes
from dse.reports.sweep.data_ratios import BASELINE, chosen_ratios, on_front
from dse.reports.sweep.page_head import numbers
from dse.reports.sweep.terminal_scatter import print_scatter
from dse.reports.sweep.verdicts import headline, setting_headline, setting_sentences, verdict_sentences
from dse.space.unlinked import unlinked_headline

GAP = 2
"""Blank columns between two columns of a table."""

MOST_REASONS = 5
"""Reasons printed before the rest is summed."""


@dataclass
class _Column:
    """A column: header and unit, its cells as styled text, and whether it may be left out where space is short."""

    name: str
    unit: str
    cells: list[Text]
    optional: bool = False

    @property
    def content(self) -> int:
        """Width of the widest cell."""
        return max((cell.cell_len for cell in self.cells), default=0)

    @property
    def narrowest(self) -> int:
        """The least width: no number is cut, and no part of the header's name."""
        return max(
            [self.content, *(len(part) for part in _parts(self.name)), *(len(part) for part in _parts(self.unit))]
        )


def print_front(
    result: SweepResult,
    console: Console,
    rows: int = 12,
    assumed: AssumedEffects | None = None,
    verdicts: AxisVerdicts | None = None,
    notes: bool = False,
) -> None:
    """Print the answer: in brief, in words, and a table of the baseline and ``rows`` spread front designs beside it.

    ``assumed``: the assumed numbers that decide the answer; ``verdicts``: what each axis is worth; where they were
    looked for. ``notes``: print every note on how sure it is, not only how many there are.
    """
    _print_brief(result, verdicts, console)
    feasible = "" if result.n_feasible == result.n else f", {result.n_feasible:,} feasible"
    between = f", {result.n_off_grid:,} between the grid's values" if result.n_off_grid else ""
    console.print(
        f"Pareto set: {len(result.front):,} of {result.n:,} designs{feasible}{between} ({result.calibration})\n"
        f"base: {gpu_name(result.space)}; differences are to it\n",
        markup=False,
        highlight=False,
        style="bold",
    )
    front, letters = lettered_front(result, rows)
    left_out = _print_table(_columns(result, front, letters), console)
    if left_out:
        say(console, f"left out to fit: {', '.join(left_out)}", "dim")
    if any(letters):
        say(console, _legend(result), "dim")
        for line in _sureness(result):
            say(console, line, "dim")
    if len(front) < len(result.front):
        console.print(
            f"{len(front):,} of {len(result.front):,} shown, spread over the front", highlight=False, style="dim"
        )
    _print_reasons(result, console)
    for sentence in (*setting_sentences(result), *verdict_sentences(verdicts)):
        say(console, sentence)
    _print_assumed(result, assumed, console)
    _print_notes(result, notes, console)


def _print_brief(result: SweepResult, verdicts: AxisVerdicts | None, console: Console) -> None:
    """The question, up to four numbers, what pays, what should be linked, and a plot where the output is a terminal."""
    say(console, question(result), "bold")
    for what, value, where in numbers(result):
        say(console, f"  {what}: {value}{f' ({where})' if where else ''}")
    for sentence in filter(None, (*setting_headline(result), headline(verdicts))):
        say(console, sentence)
    for sentence in (*unlinked_headline(result.space), *price_headline(result.space)):
        say(console, sentence, "yellow")
    print_scatter(result, console)
    console.print()


def _print_notes(result: SweepResult, every: bool, console: Console) -> None:
    """How good the answer is, and its notes or how many there are."""
    found = all_notes(result)
    more = "" if every else f"; {count_of(len(found), 'note')}, which --notes prints"
    say(console, f"{capital(good_to(result))}{more}.", "dim")
    for note in found if every else ():
        say(console, note, "dim")


def _print_assumed(result: SweepResult, assumed: AssumedEffects | None, console: Console) -> None:
    for sentence in sentences(result, assumed):
        say(console, sentence, "yellow")
    if assumed and (texts := list(lines(assumed, {o.name: label(o) for o in result.space.objectives}))):
        say(console, f"Of {len(assumed.numbers)} assumed numbers, these move the answer most:")
        for text in texts:
            say(console, f"  {text}")


def _legend(result: SweepResult) -> str:
    """What each lettered design was chosen for."""
    chosen = chosen_designs(result).query("position >= 0")
    named = "; ".join(f"{row['letter']}: {row['design']}" for _, row in chosen.iterrows())
    return f"{named}. Of a metric: the best of those that are no worse than the base in the others"


def _sureness(result: SweepResult) -> list[str]:
    """How probably each lettered design is better than the base in each objective, and belongs on the front."""
    ratios, members = chosen_ratios(result, among=False), on_front(result)
    ratios = ratios[(ratios["against"] == BASELINE) & (ratios["unknown"] == "")]
    lines = []
    for letter, part in ratios.groupby("design", sort=False):
        better = [f"{row['objective']} {probability_text(row['probability_better'])}" for _, row in part.iterrows()]
        member = probability_text(members.get(str(letter)))
        lines.append(
            f"{letter} is better than the base: {', '.join(better)}" + (f"; on the front {member}" * bool(member))
        )
    return lines


def _columns(result: SweepResult, front: pd.DataFrame, letters: list[str]) -> list[_Column]:
    whole = pd.concat([result.baseline, front], ignore_index=True)
    columns = [_Column("", "", [Text("base"), *map(Text, letters)])]
    for axis in varied_axes(result):
        cells = [Text(text) for text in short_values(list(whole[axis.name]))]
        columns.append(_Column(axis.name, "" if axis.unit == "1" else axis.unit, cells, optional=True))
    base = measured_baseline(result)
    for o in result.space.objectives:
        before = float(base[o.name].iloc[0]) if len(base) else np.nan
        values = [float(value) for value in whole[o.name]]
        cells = [_cell(value, before if i else np.nan, o.sign) for i, value in enumerate(values)]
        columns.append(_Column(o.name, o.unit, _aligned(cells)))
    return columns


def _cell(value: float, before: float, sign: float) -> tuple[str, Text]:
    """A number, and its difference to the baseline coloured by whether that is better."""
    percent = signed_percent(value, before).replace(" %", "%")
    better = sign * (value - before) < 0
    return number(value), Text(percent, style="" if percent == "0.0%" else "green" if better else "red")


def _aligned(cells: list[tuple[str, Text]]) -> list[Text]:
    values, percents = max(len(v) for v, _ in cells), max(len(p) for _, p in cells)
    gap = " " if percents else ""
    return [Text(f"{v:>{values}}{gap}{' ' * (percents - len(p))}").append_text(p) for v, p in cells]


def _print_table(columns: list[_Column], console: Console) -> list[str]:
    """Print columns within the console's width and return the names of those that had to be left out."""
    left_out: list[str] = []
    while _width([c.narrowest for c in columns]) > console.width and any(c.optional for c in columns):
        last = max(i for i, c in enumerate(columns) if c.optional)
        left_out.insert(0, columns.pop(last).name)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False)
    for column, width in zip(columns, _widths(columns, console.width), strict=True):
        header = Text("\n".join(wrapped(column.name, width)))
        if column.unit:
            header.append("\n" + "\n".join(wrapped(column.unit, width)), style="not bold dim")
        table.add_column(
            header,
            justify="right" if column.name else "left",
            no_wrap=not column.name,
            min_width=width,
            vertical="bottom",
        )
    for row in zip(*(c.cells for c in columns), strict=True):
        table.add_row(*row)
    console.print(table)
    return left_out


def _width(widths: list[int]) -> int:
    return sum(widths) + GAP * len(widths)


def _widths(columns: list[_Column], total: int) -> list[int]:
    """Widths that fit ``total``: room beyond the narrowest goes to the header with the most lines."""
    widths = [c.narrowest for c in columns]
    while _width(widths) < total:
        lines = [len(wrapped(c.name, w)) + len(wrapped(c.unit, w)) for c, w in zip(columns, widths, strict=True)]
        tallest = int(np.argmax(lines))
        if lines[tallest] <= 3:
            break
        widths[tallest] += 1
    return widths


def _parts(name: str) -> list[str]:
    return re.findall(r"[^_./ ]+[_./ ]?|[_./ ]", name)


def wrapped(name: str, width: int) -> list[str]:
    """Return a name in lines of at most ``width`` where its parts allow, broken after "_", ".", "/" and blanks."""
    lines: list[str] = []
    for part in _parts(name):
        if lines and len(lines[-1]) + len(part.rstrip()) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return [line.rstrip() for line in lines]


def _print_reasons(result: SweepResult, console: Console) -> None:
    if not result.infeasible:
        return
    items = infeasible(result)[["reason", "designs"]].to_numpy().tolist()
    lines = [f"{count:,} {reason}" for reason, count in items[:MOST_REASONS]]
    if rest := sum(count for _, count in items[MOST_REASONS:]):
        lines.append(f"{rest:,} for other reasons")
    lines = [f"infeasible: {'; '.join(lines)}", *(without_designs(result.space) if result.front.empty else [])]
    say(console, "\n".join(lines), "yellow")

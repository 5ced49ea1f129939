"""``dse sweep`` in the terminal: question, numbers, plot, a table that fits the window, and the number of notes."""

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from dse.base.brief import count_of
from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.axis_verdicts import AxisVerdicts
from dse.grid.result import SweepResult
from dse.reports.common.price_note import price_headline
from dse.reports.common.terminal_columns import Column, print_table
from dse.reports.common.terminal_parts import say
from dse.reports.common.words import capital, gpu_name, label, number, probability_text, short_values, signed_percent
from dse.reports.sweep.answer import all_notes, good_to, question
from dse.reports.sweep.assumed import lines, sentences
from dse.reports.sweep.data import chosen_designs, infeasible, lettered_front, measured_baseline, varied_axes
from dse.reports.sweep.data_ratios import BASELINE, chosen_ratios, on_front
from dse.reports.sweep.page_head import brief, numbers
from dse.reports.sweep.terminal_scatter import print_scatter
from dse.reports.sweep.verdicts import setting_sentences, verdict_sentences
from dse.space.unlinked import unlinked_headline

MOST_REASONS = 5
"""Reasons printed before the rest is summed."""


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
    print_table(_columns(result, front, letters), console)
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
    for sentence in brief(result, verdicts):
        say(console, sentence, "yellow" if result.front.empty else "")
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


def _columns(result: SweepResult, front: pd.DataFrame, letters: list[str]) -> list[Column]:
    whole = pd.concat([result.baseline, front], ignore_index=True)
    columns = [Column("", "", [Text("base"), *map(Text, letters)])]
    for axis in varied_axes(result):
        cells = [Text(text) for text in short_values(list(whole[axis.name]))]
        columns.append(Column(axis.name, "" if axis.unit == "1" else axis.unit, cells, optional=True))
    base = measured_baseline(result)
    for o in result.space.objectives:
        before = float(base[o.name].iloc[0]) if len(base) else np.nan
        values = [float(value) for value in whole[o.name]]
        cells = [_cell(value, before if i else np.nan, o.sign) for i, value in enumerate(values)]
        columns.append(Column(o.name, o.unit, _aligned(cells)))
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


def _print_reasons(result: SweepResult, console: Console) -> None:
    if not result.infeasible:
        return
    items = infeasible(result)[["reason", "designs"]].to_numpy().tolist()
    lines = [f"{count:,} {reason}" for reason, count in items[:MOST_REASONS]]
    if rest := sum(count for _, count in items[MOST_REASONS:]):
        lines.append(f"{rest:,} for other reasons")
    say(console, f"infeasible: {'; '.join(lines)}", "yellow")

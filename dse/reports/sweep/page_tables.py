"""The tables of a page: designs worth a look, the front, and what cannot be had."""

from html import escape

import numpy as np
import pandas as pd

from dse.evaluate.metric_error import objective_error
from dse.grid.result import SweepResult
from dse.reports.common.page_parts import row, section, table
from dse.reports.common.words import MISSING, changes_text, label, number, short_values, signed_percent, unit_text
from dse.reports.sweep import data as findings
from dse.space.axis import Axis
from dse.space.space import Objective, Space

TABLE_ROWS = 60
"""Most front designs in the table."""


def chosen_section(result: SweepResult) -> str:
    """Return the baseline and the chosen designs: what they change and what that gives."""
    chosen = findings.chosen_designs(result)
    if chosen.empty:
        return ""
    axes, base = findings.varied_axes(result), result.baseline.iloc[0]
    header = ['<th scope="col"></th><th scope="col">design</th><th scope="col">changed against the baseline</th>']
    rows = []
    for _, design in chosen.iterrows():
        is_base = design["position"] < 0
        changed = "baseline" if is_base else changes_text(axes, design, base).replace(" → ", "\u00a0→\u00a0")
        wrap = "" if "," in design["design"] else "w"
        cells = f'<th scope="row">{design["letter"]}</th><td class="{wrap}">{escape(design["design"])}</td>'
        cells += f'<td class="changes">{escape(changed)}</td>'
        cells += _objective_cells(result, design, None if is_base else base) + _copy_cell(design["position"], result)
        rows.append(row(cells, is_base))
    several = len(result.space.objectives) > 1 and len(chosen) > 1
    caption = (
        "Fastest, smallest ...: best in that objective while no worse than the baseline in the others (best of all "
        "where no design is). Compromise: nearest to the best values of all objectives at once."
    )
    head = "".join(
        [*header, *(_objective_header(result.space, o) for o in result.space.objectives), _copy_header(result)]
    )
    title = "Designs worth a look" if len(chosen) > 1 else "The baseline"
    return section("designs", title, table(head, rows, caption if several else ""))


def _copy_header(result: SweepResult) -> str:
    return '<th scope="col" class="w">GPU file<small>TOML</small></th>' if explored(result) else ""


def _copy_cell(position: int, result: SweepResult) -> str:
    """A button that copies the GPU file of a front design; the explorer's script serves it."""
    if not explored(result):
        return ""
    button = f'<button type="button" data-front="{position}">copy</button>' if position >= 0 else ""
    return f'<td class="c">{button}</td>'


def explored(result: SweepResult) -> bool:
    """Whether the page has an explorer, whose script copies GPU files."""
    return len(result.front) > 0 and len(result.space.objectives) > 1


def _objective_header(space: Space, objective: Objective) -> str:
    """Name, unit, and how sure it is."""
    error = objective_error(space, objective)
    lines = [unit_text(objective.unit), error.word, error.scope.partition(";")[0]]
    small = "".join(f"<small>{escape(line)}</small>" for line in lines if line)
    return f'<th scope="col" colspan="2" class="n">{escape(label(objective))}{small}</th>'


def _objective_cells(result: SweepResult, design: pd.Series, base: pd.Series | None) -> str:
    """Each objective and its difference to the baseline, coloured by whether that is better."""
    cells = []
    for o in result.space.objectives:
        value, before = float(design[o.name]), float(base[o.name]) if base is not None else np.nan
        percent = signed_percent(value, before)
        side = "" if percent in ("", "0.0 %") else "better" if o.sign * (value - before) < 0 else "worse"
        cells.append(f'<td class="n">{number(value)}</td><td class="n d {side}">{percent}</td>')
    return "".join(cells)


def front_section(result: SweepResult) -> str:
    """Return the front as a table, thinned visibly."""
    if result.front.empty:
        return ""
    designs, base = findings.front_table(result, TABLE_ROWS), result.baseline.iloc[0]
    axes = findings.varied_axes(result)
    head = '<th scope="col"></th>' + "".join(_axis_header(axis) for axis in axes)
    head += "".join(_objective_header(result.space, o) for o in result.space.objectives)
    names = [escape(workload.name) for workload in result.space.workloads]
    head += "".join(f'<th scope="col" class="w">{name}<small>costs most</small></th>' for name in names)
    head += _copy_header(result)
    for axis in axes:
        designs[axis.name] = pd.Series(short_values(list(designs[axis.name])), designs.index, dtype=object)
    rows = [_front_row(result, axes, design, base) for _, design in designs.iterrows()]
    shown = len(designs) - 1
    few = (
        f"{shown:,} of {len(result.front):,} shown, spread over the front" if shown < len(result.front) else "all shown"
    )
    caption = f"Pareto designs: {few}. Percentages are against the baseline (first row)."
    if explored(result):
        caption += " A copied GPU file runs by itself: dse run FILE.toml WORKLOAD; it can be the base of a space."
    return section("front", "Table of the Pareto set", table(head, rows, caption))


def _axis_header(axis: Axis) -> str:
    name, unit = axis.name.replace("_", "_<wbr>"), escape(unit_text(axis.unit)).replace("/", "/<wbr>")
    return f'<th scope="col" class="{_side(axis)}">{name}<small>{unit}</small></th>'


def _side(axis: Axis) -> str:
    return "" if axis.attribute.choices else "n"


def _front_row(result: SweepResult, axes: list[Axis], design: pd.Series, base: pd.Series) -> str:
    is_base = design["letter"] == "base"
    cells = f'<th scope="row">{design["letter"]}</th>'
    cells += "".join(f'<td class="{_side(axis)}">{escape(design[axis.name])}</td>' for axis in axes)
    cells += _objective_cells(result, design, None if is_base else base)
    cells += "".join(
        f'<td class="w">{escape(design[f"{w.name}.bound_by"]) or MISSING}</td>' for w in result.space.workloads
    )
    return row(cells + _copy_cell(design["position"], result), is_base)


def infeasible_section(result: SweepResult) -> str:
    """Return why designs cannot be had."""
    frame = findings.infeasible(result)
    if frame.empty:
        return ""
    whole = "the grid" if result.n == result.space.size else "those evaluated"
    head = '<th scope="col">reason</th><th scope="col" class="n">designs</th>'
    head += f'<th scope="col" class="n">of {whole}</th>'
    rows = [
        row(f'<td>{escape(reason)}</td><td class="n">{count:,}</td><td class="n">{100 * share:.1f} %</td>')
        for reason, count, share in frame.itertuples(index=False)
    ]
    total = (
        f"{int(frame['designs'].sum()):,} of {result.n:,} designs are infeasible; each counts under its first reason."
    )
    return section("infeasible", "Infeasible designs", table(head, rows, total))

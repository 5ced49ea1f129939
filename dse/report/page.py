"""One self-contained HTML page of a sweep: question, answer, figures, tables and where everything comes from."""

import json
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from dse.report import figures, findings
from dse.report.answer import answer, caveats, question
from dse.report.words import (
    MISSING,
    axis_value,
    gpu_name,
    label,
    moves,
    number,
    signed_percent,
    unit_text,
)
from dse.space.axis import Axis
from dse.space.space import Objective
from dse.sweep.result import SweepResult
from dse.timing.timing import CAUSES

TABLE_ROWS = 60
"""Most front designs in the table."""

STYLE = """
:root { --ink: #222; --grey: #5c5c5c; --line: #d9d9d9; --accent: #D55E00; --link: #0072B2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1720px; padding: 28px 40px 60px; background: #fff; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 25px; line-height: 1.25; margin: 2px 0 6px; max-width: 62em; font-weight: 650; }
h2 { font-size: 18px; margin: 44px 0 6px; padding-top: 10px; border-top: 1px solid var(--line); font-weight: 650; }
p { margin: 6px 0; max-width: 62em; } p.note, caption { max-width: 84em; }
p.lead, p.note, caption { color: var(--grey); }
p.note, caption { font-size: 13px; }
caption { text-align: left; padding: 0 0 6px; }
.answer p { font-size: 16px; margin: 10px 0; }
.caveats { border-left: 4px solid var(--accent); padding: 2px 0 2px 14px; margin: 16px 0; }
.badge { display: inline-block; font-size: 12px; font-weight: 650; letter-spacing: .02em; color: #fff;
  background: #A84300; border-radius: 3px; padding: 1px 8px; margin-left: 8px; vertical-align: 2px; }
.scroll { overflow-x: auto; margin: 10px 0; }
table { border-collapse: collapse; font-size: 13px; line-height: 1.35; }
th, td { padding: 4px 10px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid #ececec; }
thead th { vertical-align: bottom; border-bottom: 1.5px solid var(--grey); font-weight: 600; }
thead small { display: block; font-weight: 400; color: var(--grey); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n, td.w { white-space: nowrap; } th.n { max-width: 11em; }
td.d { padding-left: 0; color: var(--grey); min-width: 4.6em; }
th[colspan] { min-width: 9em; padding-right: 10px; } #front table { font-size: 12.5px; }
#front .w { padding-left: 8px; }
td.better { color: #00694E; } td.worse { color: #A84300; }
tr.base td, tr.base th { background: #FDF1E8; font-weight: 600; }
th[scope=row] { font-weight: 600; white-space: nowrap; }
.swatch { display: inline-block; width: 13px; height: 13px; border-radius: 2px; margin-right: 8px;
  vertical-align: -2px; }
.causes { columns: 2; column-gap: 40px; font-size: 13px; padding: 0; list-style: none; margin: 8px 0;
  max-width: 1300px; }
.causes li { break-inside: avoid; padding: 2px 0 2px 21px; text-indent: -21px; } .causes .swatch { text-indent: 0; }
.changes { max-width: 44em; }
details summary { cursor: pointer; color: var(--link); margin: 10px 0; }
pre { font-size: 12px; line-height: 1.4; background: #f6f6f6; padding: 12px; overflow-x: auto; }
@media print { body { padding: 0; max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
  .plotly-graph-div, table, figure { break-inside: avoid; } .modebar { display: none; } details { display: none; } }
"""


def write_page(result: SweepResult, path: str | Path) -> None:
    """Write the page of a sweep; it gets its name only when it is whole. Same result, same bytes."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(page_html(result), encoding="utf-8", newline="\n")
    partial.replace(path)


def page_html(result: SweepResult) -> str:
    """Return the page of a sweep as one HTML document that loads nothing."""
    sections = [_head(result), _chosen(result), _pareto(result), _stacks(result), _axes(result), _front(result),
                _infeasible(result), _provenance(result)]  # fmt: skip
    body = "\n".join(section for section in sections if section)
    title = escape(f"{result.space.name}: design-space exploration")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
        f"<script>{figures.plotly_script()}</script>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(name: str, title: str, *parts: str) -> str:
    return (
        f'<section id="{name}">\n<h2>{escape(title)}</h2>\n'
        + "\n".join(part for part in parts if part)
        + "\n</section>"
    )


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _drawn(figure: figures.go.Figure, name: str) -> str:
    return f"<figure style='margin:0'>{figures.figure_html(figure, name)}</figure>"


def _head(result: SweepResult) -> str:
    badge = f'<span class="badge">{escape(result.calibration)}</span>'
    lead = f"{result.space.name}: {result.n:,} designs around the {gpu_name(result.space)}"
    sentences = [sentence.replace(" %", "\u00a0%").replace(" → ", "\u00a0→\u00a0") for sentence in answer(result)]
    said = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    beware = "\n".join(f"<p>{escape(text)}</p>" for text in caveats(result))
    return (
        f'<header>\n<p class="lead">{escape(lead)}{badge}</p>\n<h1>{escape(question(result))}</h1>\n</header>\n'
        f'<section id="answer" class="answer">\n{said}\n</section>\n<aside class="caveats">\n{beware}\n</aside>'
    )


def _chosen(result: SweepResult) -> str:
    """The baseline and the chosen designs: what they change and what that gives."""
    chosen = findings.chosen_designs(result)
    if chosen.empty:
        return ""
    axes, base = findings.varied_axes(result), result.baseline.iloc[0]
    header = ['<th scope="col"></th><th scope="col">design</th><th scope="col">changed against the baseline</th>']
    rows = []
    for _, row in chosen.iterrows():
        is_base = row["position"] < 0
        changed = "baseline" if is_base else moves(axes, row, base).replace(" → ", "\u00a0→\u00a0")
        wrap = "" if "," in row["design"] else "w"
        cells = f'<th scope="row">{row["letter"]}</th><td class="{wrap}">{escape(row["design"])}</td>'
        cells += f'<td class="changes">{escape(changed)}</td>'
        rows.append(_row(cells + _objective_cells(result, row, None if is_base else base), is_base))
    several = len(result.space.objectives) > 1 and len(chosen) > 1
    caption = (
        "Fastest, smallest ...: best in that objective while no worse than the baseline in the others (best of all "
        "where no design is). Knee: nearest to the best values of all objectives at once."
    )
    head = "".join([*header, *(_objective_header(o) for o in result.space.objectives)])
    title = "Designs worth a look" if len(chosen) > 1 else "The baseline"
    return _section("designs", title, _table(head, rows, caption if several else ""))


def _objective_header(objective: Objective) -> str:
    unit = unit_text(objective.unit)
    return f'<th scope="col" colspan="2" class="n">{escape(label(objective))}<small>{escape(unit)}</small></th>'


def _objective_cells(result: SweepResult, row: pd.Series, base: pd.Series | None) -> str:
    """Each objective and its difference to the baseline, coloured by whether that is better."""
    cells = []
    for o in result.space.objectives:
        value, before = float(row[o.name]), float(base[o.name]) if base is not None else np.nan
        percent = signed_percent(value, before)
        side = "" if percent in ("", "0.0 %") else "better" if o.sign * (value - before) < 0 else "worse"
        cells.append(f'<td class="n">{number(value)}</td><td class="n d {side}">{percent}</td>')
    return "".join(cells)


def _row(cells: str, is_base: bool = False) -> str:
    return f'<tr class="base">{cells}</tr>' if is_base else f"<tr>{cells}</tr>"


def _table(head: str, rows: list[str], caption: str = "") -> str:
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(rows)
    header = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{said}{header}<tbody>\n{body}\n</tbody></table></div>'


def _pareto(result: SweepResult) -> str:
    """The Pareto panels, or with a single objective how designs spread over it."""
    if result.front.empty:
        return ""
    objectives = result.space.objectives
    if len(objectives) == 1:
        marks = [(gpu_name(result.space), float(v)) for v in findings.measured_baseline(result)[objectives[0].name]]
        marks.append(("best", float(result.front[objectives[0].name].iloc[0])))
        shown = findings.shown_text(len(result.sample), result.n_feasible)
        figure = figures.histogram_figure(result.sample, objectives[0], marks)
        return _section("pareto", "All designs", _note(f"Feasible designs: {shown}."), _drawn(figure, "figure-pareto"))
    chosen = findings.chosen_designs(result)
    figure = figures.pareto_figure(findings.scatters(result), chosen, gpu_name(result.space))
    wanted = ", ".join(f"{label(o)} {'lower' if o.sign > 0 else 'higher'}" for o in objectives)
    note = f"Better is: {wanted}. Hover a point for its design; drag to zoom, double-click to go back."
    if len(objectives) > findings.MOST_OBJECTIVES:
        note += f" The first {findings.MOST_OBJECTIVES} of {len(objectives)} objectives are drawn."
    return _section("pareto", "Pareto set", _note(note), _drawn(figure, "figure-pareto"))


def _stacks(result: SweepResult) -> str:
    frame = findings.stacks(result)
    if frame.empty:
        return ""
    items = []
    for cause in [c for c in (*CAUSES, findings.REST) if c in set(frame["cause"])]:
        meaning = CAUSES.get(cause, f"causes below {100 * findings.SMALL_SHARE:.0f} % in every design shown, together")
        swatch = f'<span class="swatch" style="background:{figures.CAUSE_COLOURS[cause]}"></span>'
        items.append(f"<li>{swatch}<b>{cause}</b>: {escape(meaning)}</li>")
    note = _note("; ".join(f"{w.name}: {w.description}" for w in result.space.workloads) + ".")
    legend = f'<ul class="causes">{"".join(items)}</ul>'
    return _section(
        "stacks", "Where the time goes", note, _drawn(figures.stacks_figure(frame), "figure-stacks"), legend
    )


def _axes(result: SweepResult) -> str:
    axes = findings.varied_axes(result)
    frame = findings.axis_effect(result)
    if not axes or frame[["at_baseline", "best", "median"]].isna().all(axis=None):
        return ""
    base = findings.measured_baseline(result)
    drawn = figures.axis_figures(frame, list(result.space.objectives), axes, base)
    note = "A panel's y axis is shared by its row. Best and median are taken over the feasible designs with that value."
    links = ", ".join(name for name, _ in result.space.links)
    linked = f" Linked attributes move with their axes (formulas at the end): {links}." if links else ""
    parts = [_drawn(figure, f"figure-axes-{i}") for i, figure in enumerate(drawn)]
    return _section("axes", "Effect of each axis", _note(note + linked), *parts)


def _front(result: SweepResult) -> str:
    """The front as a table, thinned visibly."""
    if result.front.empty:
        return ""
    table, base = findings.front_table(result, TABLE_ROWS), result.baseline.iloc[0]
    axes = findings.varied_axes(result)
    head = '<th scope="col"></th>' + "".join(_axis_header(axis) for axis in axes)
    head += "".join(_objective_header(o) for o in result.space.objectives)
    names = [escape(workload.name) for workload in result.space.workloads]
    head += "".join(f'<th scope="col" class="w">{name}<small>costs most</small></th>' for name in names)
    rows = [_front_row(result, axes, row, base) for _, row in table.iterrows()]
    shown = len(table) - 1
    few = (
        f"{shown:,} of {len(result.front):,} shown, spread over the front" if shown < len(result.front) else "all shown"
    )
    caption = f"Pareto designs: {few}. Percentages are against the baseline (first row)."
    return _section("front", "Table of the Pareto set", _table(head, rows, caption))


def _axis_header(axis: Axis) -> str:
    name, unit = axis.name.replace("_", "_<wbr>"), escape(unit_text(axis.unit)).replace("/", "/<wbr>")
    return f'<th scope="col" class="{_side(axis)}">{name}<small>{unit}</small></th>'


def _side(axis: Axis) -> str:
    return "" if axis.attribute.choices else "n"


def _front_row(result: SweepResult, axes: list[Axis], row: pd.Series, base: pd.Series) -> str:
    is_base = row["letter"] == "base"
    cells = f'<th scope="row">{row["letter"]}</th>'
    cells += "".join(f'<td class="{_side(axis)}">{escape(axis_value(row[axis.name]))}</td>' for axis in axes)
    cells += _objective_cells(result, row, None if is_base else base)
    cells += "".join(
        f'<td class="w">{escape(row[f"{w.name}.bound_by"]) or MISSING}</td>' for w in result.space.workloads
    )
    return _row(cells, is_base)


def _infeasible(result: SweepResult) -> str:
    frame = findings.infeasible(result)
    if frame.empty:
        return ""
    head = '<th scope="col">reason</th><th scope="col" class="n">designs</th><th scope="col" class="n">of the grid</th>'
    rows = [
        _row(f'<td>{escape(reason)}</td><td class="n">{count:,}</td><td class="n">{100 * share:.1f} %</td>')
        for reason, count, share in frame.itertuples(index=False)
    ]
    total = (
        f"{int(frame['designs'].sum()):,} of {result.n:,} designs cannot be had; each counts under its first reason."
    )
    return _section("infeasible", "Designs that cannot be had", _table(head, rows, total))


def _provenance(result: SweepResult) -> str:
    rows = [_row(f'<th scope="row">{escape(k)}</th><td>{escape(v)}</td>') for k, v in findings.provenance(result)]
    table = _table("", rows)
    content = escape(json.dumps(result.space.content, indent=1, ensure_ascii=False))
    source = f"<details><summary>The space file's content</summary><pre>{content}</pre></details>"
    return _section("provenance", "Where this comes from", table, source)

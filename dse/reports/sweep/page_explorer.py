"""The explorer of a page: plots of any two objectives or axes, parallel coordinates, GPU files of Pareto designs."""

import json
from html import escape
from pathlib import Path

from dse.grid.result import SweepResult
from dse.reports.common.figures import BASELINE, CLOUD_GREY, EFFECT, INK, REFUSED_GREY
from dse.reports.common.page_parts import note, section
from dse.reports.common.words import gpu_name, label
from dse.reports.sweep import data as findings
from dse.reports.sweep.data_explorer import explorer
from dse.reports.sweep.page_tables import TABLE_ROWS

SCRIPTS = Path(__file__).parent / "explorer"
PARTS = ("columns", "quantities", "words", "state", "colour", "plots", "parallel", "files", "controls")
"""Parts of the explorer's script, in the order in which they run: one scope of all of them."""

KEYS = {
    "cloud": f'<circle cx="8" cy="8" r="3" fill="{CLOUD_GREY}"/>',
    "infeasible": f'<path d="M5 5L11 11M11 5L5 11" stroke="{REFUSED_GREY}" stroke-width="1.6"/>',
    "front": "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{EFFECT}"/>' for x, y in ((4, 5), (8, 11), (13, 6))),
    "edge": f'<path d="M0 3H8V13H16" fill="none" stroke="{INK}" stroke-width="1.3"/>',
    "chosen": f'<circle cx="8" cy="8" r="6.5" fill="white" stroke="{INK}" stroke-width="1.5"/>'
    '<text x="8" y="11.5" font-size="9" text-anchor="middle">A</text>',
    "baseline": f'<path d="M8 1L15 8L8 15L1 8Z" fill="{BASELINE}"/>',
}
"""What the marks of the plots look like."""


def explorer_section(result: SweepResult) -> str:
    """Return the section that lets a reader look at the Pareto set from every side."""
    table = [p for p in findings.front_table(result, TABLE_ROWS)["position"] if p >= 0]
    data = explorer(result, table)
    better = ", ".join(f"{label(o)} {'lower' if o.sign > 0 else 'higher'}" for o in result.space.objectives)
    small_print = note(
        f"Better is: {better}. Hover a point for its design, click it for its GPU file; drag to zoom, double-click to "
        "go back. Boxes and lassos (top right of a plot) and ranges dragged on the axes below pick designs everywhere."
    )
    several = len(data["plots"]) > 1
    plots = "".join(_plot(k) for k in range(len(data["plots"])))
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return section(
        "pareto",
        "Pareto set",
        _controls(),
        f'<div class="plots{"" if several else " single"}">{plots}</div>',
        _keys(result, data),
        small_print,
        _parallel(result, data),
        _file(),
        f'<script type="application/json" id="explorer-data">{text}</script>',
        f"<script>{_script()}</script>",
    )


def _script() -> str:
    """Plots linked to parallel coordinates: reads the JSON of findings_explorer.py, loads nothing.

    Text from the data enters HTML through textContent or escaped().
    """
    parts = [(SCRIPTS / f"{part}.js").read_text(encoding="utf-8") for part in PARTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def _plot(number: int) -> str:
    chooser = (
        f'<div class="choose"><label>up <select id="explorer-{number}-y"></select></label>'
        f'<label>across <select id="explorer-{number}-x"></select></label></div>'
    )
    plot = f'<div id="explorer-plot-{number}" class="plotly-graph-div" role="group" style="height:420px"></div>'
    return f"<div>{chooser}{plot}</div>"


def _controls() -> str:
    bar = '<span id="colour-bar"><span class="low"></span><span class="ramp"></span><span class="high"></span></span>'
    return f'<div class="choose"><label>colour <select id="explorer-colour"></select></label>{bar}</div>'


def _keys(result: SweepResult, data: dict) -> str:
    words = {
        "cloud": f"other feasible designs ({data['cloud_text']})",
        "front": f"Pareto set ({data['front_text']})",
        "infeasible": f"designs that cannot be had ({data['infeasible_text']})",
        "edge": "best of these two objectives alone",
        "chosen": "designs of the table below",
        "baseline": f"baseline: {gpu_name(result.space)}",
    }
    left_out = {
        "infeasible": not data["infeasible_text"],
        "chosen": not data["chosen"],
        "baseline": data["baseline"] is None,
    }
    marks = [
        f'<span><svg id="key-{key}" width="16" height="16" aria-hidden="true">{KEYS[key]}</svg>{escape(text)}</span>'
        for key, text in words.items()
        if not left_out.get(key)
    ]
    return f'<p class="keys">{"".join(marks)}</p>'


def _parallel(result: SweepResult, data: dict) -> str:
    small_print = note(
        "A line a Pareto design. Drag along an axis to keep a range, click the axis to let it go; several ranges hold "
        "at once. By keyboard: up and down narrow the range of the axis in focus, escape lets it go."
    )
    lines = (
        '<div class="scroll"><div id="parallel"><div id="parallel-names"></div><canvas id="parallel-lines" '
        'role="img" aria-label="a line a Pareto design; the table of the Pareto set has the numbers"></canvas>'
        '<svg id="parallel-axes" role="group" aria-label="axes of the parallel coordinates"></svg></div></div>'
    )
    stroke = f'<path d="M0 8H16" stroke="{BASELINE}" stroke-width="3"/>'
    mark = f'<svg width="16" height="16" aria-hidden="true">{stroke}</svg>baseline: {escape(gpu_name(result.space))}'
    key = "" if data["baseline"] is None else f'<span class="keys"><span>{mark}</span></span>'
    count = f'<div class="choose">{key}<span id="kept" aria-live="polite"></span>'
    clear = '<button type="button" id="clear" hidden>keep all again</button></div>'
    return f"{small_print}{count}{clear}{lines}"


def _file() -> str:
    return (
        '<dialog id="file"><b id="file-name"></b><pre id="file-text"></pre>'
        '<button type="button" id="file-copy">copy</button> <button type="button" id="file-close">close</button> '
        '<span id="file-said" aria-live="polite"></span></dialog>'
    )

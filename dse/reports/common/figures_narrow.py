"""What changes of a figure's layout on a screen as narrow as a phone's: its panels stand below each other.

The page holds the changes beside the figure, whose data it has once; ``figures_narrow.js`` makes and undoes them.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import plotly.graph_objects as go

from dse.reports.common.figures_tornado import BETWEEN

NAME, LINE = 26, 12
"""Characters of a line of a bar's name, and height of such a line [px]."""

TICKS, TICKS_OF_BARS = 5, 3
"""Most ticks of an axis; of one below bars, beside their names."""

BESIDE, BAR = 0.16, 180
"""What more of an axis the numbers beside bars take, as a part of it, and room for bars [px]."""

SMALL, CHARACTER = 10, 5.6
"""Size of what is written behind a bar or has no room else, and width of a character of it [px]."""

REMARK, AXIS = 18, 27
"""Characters of a line of what is written behind a bar, and of an axis' title below bars."""

ENTRY, ABOVE = 19, 26
"""Height of a legend's entry, and room between the legend and the first panel for its title [px]."""

SCREEN, SYMBOL, LETTER = 360, 42, 6.5
"""Width that a legend has, that of an entry's symbol, and of a character of its name [px]."""

SCRIPT = (Path(__file__).parent / "figures_narrow.js").read_text(encoding="utf-8")

Changes = dict[str, Any]
"""Values of a layout's attributes by their paths, as plotly's ``relayout`` takes them."""


class _Panel(NamedTuple):
    """The axes of a panel in a layout, and the height that it takes on a narrow screen [px]."""

    x: str
    y: str
    names: list[str]  # of its bars; none where its axis has numbers
    height: float


def narrow_script(figure: go.Figure, div_id: str) -> str:
    """Return what a page holds of a figure's changes; "" where all stays."""
    if not (changes := narrow_layout(figure)):
        return ""
    text = json.dumps(changes).replace("<", "\\u003c")
    return f'<script type="application/json" class="narrow" data-of="{div_id}">{text}</script>'


def narrow_layout(figure: go.Figure) -> Changes:
    """Return the attributes of a layout that differ on a narrow screen; none where all stay.

    Panels beside each other are put below each other, a legend above them; names of bars are wrapped, and ticks are
    fewer.
    """
    layout = figure.to_plotly_json()["layout"]
    area = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    panels = _panels(figure, layout, area)
    new_area = sum(p.height for p in panels) + BETWEEN * (len(panels) - 1)
    changes = _legend(figure, layout, new_area)
    columns = {tuple(layout[p.x]["domain"]) for p in panels}
    if len(columns) < 2 and not any(p.names for p in panels) and not changes:
        return {}
    changes.setdefault("margin.t", layout["margin"]["t"])
    changes["height"] = round(new_area + changes["margin.t"] + layout["margin"]["b"])
    top = new_area
    for panel in panels:
        ends = [max(top - panel.height, 0.0) / new_area, top / new_area]
        changes |= {f"{panel.x}.domain": [0, 1], f"{panel.y}.domain": ends} | _title(layout, panel, ends[1])
        changes |= _of_bars(layout, panel) | _few_ticks(layout, panel) | _axis_titles(layout, panel)
        top -= panel.height + BETWEEN
    shown = {axis for panel in panels for axis in (panel.x, panel.y)}
    rest = (key for key in layout if re.fullmatch(r"[xy]axis\d*", key) and key not in shown)
    return changes | {f"{axis}.visible": False for axis in rest}


def _panels(figure: go.Figure, layout: dict[str, Any], area: float) -> list[_Panel]:
    """The panels of a layout that show something, row by row."""
    found, used = [], {(trace.xaxis or "x").replace("x", "xaxis") for trace in figure.data}
    for x in (key for key in layout if key in used):
        y = f"yaxis{layout[x].get('anchor', 'y')[1:]}"
        layout[x].setdefault("domain", [0, 1])
        layout[y].setdefault("domain", [0, 1])
        low, high = layout[y]["domain"]
        names = _names(figure, layout, y)
        lines = max((len(_lines(name, NAME)) for name in names), default=0)
        found.append(_Panel(x, y, names, max((high - low) * area, len(names) * (LINE * lines + 6))))
    return sorted(found, key=lambda p: (-layout[p.y]["domain"][1], layout[p.x]["domain"][0]))


def _names(figure: go.Figure, layout: dict[str, Any], y: str) -> list[str]:
    """The names along an axis of bars, in order."""
    if given := layout[y].get("categoryarray"):
        return [name for name in given if isinstance(name, str)]
    of = y.replace("axis", "")
    bars = [t for t in figure.data if t.type == "bar" and t.orientation == "h" and (t.yaxis or "y") == of]
    return list(dict.fromkeys(name for bar in bars for name in bar.y if isinstance(name, str)))


def _lines(text: str, most: int) -> list[str]:
    """Lines of a text of at most so many characters, its tags not counted; a longer word has its own."""
    lines: list[str] = []
    for word in text.replace("<br>", " ").split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        fits = lines and len(unescape(re.sub(r"<[^>]+>", "", longer))) <= most
        lines = [*lines[:-1], longer] if fits else [*lines, word]
    return lines


def _legend(figure: go.Figure, layout: dict[str, Any], area: float) -> Changes:
    """The place of a legend: above the panels, in as many lines as its entries need."""
    names = [t.name for t in figure.data if t.showlegend is not False and t.name]
    shown = layout.get("showlegend", len(figure.data) > 1)
    if not names or not shown:
        return {}
    width = SYMBOL + LETTER * max(len(unescape(name)) for name in names)
    in_line = max(int(SCREEN // width), 1)
    style = {"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "bottom", "y": 1 + ABOVE / area}
    style |= {"font.size": SMALL} if width > SCREEN else {}
    return {f"legend.{key}": v for key, v in style.items()} | {"margin.t": -(-len(names) // in_line) * ENTRY + ABOVE}


def _of_bars(layout: dict[str, Any], panel: _Panel) -> Changes:
    """The names of a panel's bars, wrapped, and an axis with room for what stands beside them; none of numbers."""
    if not panel.names:
        return {}
    texts = ["<br>".join(_lines(name, NAME)) for name in panel.names]
    names = {"tickmode": "array", "tickvals": panel.names, "ticktext": texts, "tickfont.size": 11}
    changes = {f"{panel.y}.{key}": value for key, value in names.items()}
    changes |= {f"{panel.x}.nticks": TICKS, f"{panel.x}.tickangle": 0}
    remarks, end = _remarks(layout, panel)
    if given := layout[panel.x].get("range"):
        low, high = given
        room = BESIDE * (high - low)
        end = end or (high + room if high > 0 else high)
        changes[f"{panel.x}.range"] = [low - room if low < 0 else low, end]
    return changes | remarks


def _remarks(layout: dict[str, Any], panel: _Panel) -> tuple[Changes, float | None]:
    """What is written behind a panel's bars, in short lines, and the end of an axis with room for it (None: nothing
    is)."""
    changes, ends = {}, []
    of = panel.x.replace("axis", "")
    for number, one in enumerate(layout.get("annotations", ())):
        if one.get("xref", "x") == of and one.get("xanchor") == "left":
            lines = _lines(one["text"], REMARK)
            told = {"text": "<br>".join(lines), "align": "left", "font.size": SMALL}
            changes |= {f"annotations[{number}].{key}": value for key, value in told.items()}
            room = min(CHARACTER * max(map(len, lines)) + 4, 0.7 * BAR)
            ends.append(one["x"] * BAR / (BAR - room))
    return changes, max(ends, default=None)


def _few_ticks(layout: dict[str, Any], panel: _Panel) -> Changes:
    """Ticks of an axis of numbers, of those that are given some."""
    given, most = layout[panel.x].get("tickvals"), TICKS_OF_BARS if panel.names else TICKS
    if given is None or len(given) <= most:
        return {}
    some = slice(None, None, -(-len(given) // most))
    texts = layout[panel.x].get("ticktext")
    changes = {f"{panel.x}.tickvals": list(given[some])}
    return changes | ({} if texts is None else {f"{panel.x}.ticktext": list(texts[some])})


def _title(layout: dict[str, Any], panel: _Panel, top: float) -> Changes:
    """The place of a panel's title, which stands above its middle."""
    middle, end = sum(layout[panel.x]["domain"]) / 2, layout[panel.y]["domain"][1]
    for number, one in enumerate(layout.get("annotations", ())):
        on_paper = one.get("xref") == one.get("yref") == "paper"
        if on_paper and abs(one["x"] - middle) < 1e-6 and abs(one["y"] - end) < 1e-6:
            return {f"annotations[{number}].x": 0.5, f"annotations[{number}].y": top}
    return {}


def _axis_titles(layout: dict[str, Any], panel: _Panel) -> Changes:
    """The titles of a panel's axes, elsewhere those of its row or its column, which stand at one panel of them."""
    changes: Changes = {}
    for axis in (panel.x, panel.y):
        same = [a for key, a in layout.items() if key[:5] == axis[:5] and a.get("domain") == layout[axis]["domain"]]
        told = [title for a in (layout[axis], *same) if (title := a.get("title", {})).get("text")]
        changes[f"{axis}.showticklabels"] = True
        if told:
            wraps = panel.names and axis == panel.x
            text = "<br>".join(_lines(told[0]["text"], AXIS)) if wraps else told[0]["text"]
            changes |= {f"{axis}.title.text": text, f"{axis}.title.font.size": told[0].get("font", {}).get("size")}
    return changes

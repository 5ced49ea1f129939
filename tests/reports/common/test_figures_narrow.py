"""Figures on a narrow screen: panels below each other, wrapped names, a legend above, and all of it back."""

import json
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from dse.reports.common.figures import layout
from dse.reports.common.figures_narrow import NAME, TICKS, narrow_layout, narrow_script
from dse.reports.common.figures_tornado import Tornado
from dse.reports.common.page_parts import document, figure_section
from dse.reports.common.stacks import stacks_figure
from tests.reports.browser import OVERLAPS

NAMES = ["100 % more sub-cores an SM (4 to 8 sub-core/SM)", "10 % more &lt;L2&gt;", "one"]


def tornado() -> go.Figure:
    """Three panels in two rows, with bars of two designs."""
    frame = Tornado(["time", "energy", "area"], 2, 100, 90)
    figure = frame.figure()
    for panel in range(3):
        for design in ("base", "A"):
            bar = go.Bar(x=[1, -2, 3], y=NAMES, orientation="h", name=design, showlegend=panel == 0)
            figure.add_trace(bar, **frame.place(panel))
        frame.scaled(figure, panel, "change [%]", 4.0)
    return frame.finished(figure, NAMES)


def stacks() -> go.Figure:
    rows = [
        {"workload": w, "name": n, "cause": c, "ms": 1.5, "share": 0.5}
        for w in ("prefill", "decode")
        for n in ("H100 SXM5 80GB of a long name", "A")
        for c in ("wait", "launch")
    ]
    return stacks_figure(pd.DataFrame(rows))


def dots(**style: Any) -> go.Figure:
    figure = go.Figure([go.Scatter(x=[1, 2], y=[3, 4], name=name) for name in ("one", "another")])
    layout(figure, 300)
    return figure.update_layout(**style)


def test_panels_stand_below_each_other_in_their_order() -> None:
    changes = narrow_layout(tornado())
    ends = [changes[f"yaxis{number}.domain"] for number in ("", "2", "3")]
    assert ends[0][1] == 1.0 and ends[2][0] == pytest.approx(0.0)
    assert ends[0][0] > ends[1][1] > ends[1][0] > ends[2][1]
    assert [changes[f"xaxis{number}.domain"] for number in ("", "2", "3")] == [[0, 1]] * 3
    assert [changes[f"annotations[{n}].y"] for n in range(3)] == [end[1] for end in ends]
    assert {changes[f"xaxis{number}.title.text"] for number in ("", "2", "3")} == {"change [%]"}


def test_names_of_bars_are_wrapped_and_have_the_height_of_their_lines() -> None:
    changes = narrow_layout(tornado())
    assert changes["yaxis.tickvals"] == changes["yaxis2.tickvals"] == NAMES
    first, second, third = changes["yaxis.ticktext"]
    assert first.replace("<br>", " ") == NAMES[0]
    assert all(len(line) <= NAME for line in first.split("<br>"))
    assert (second, third) == (NAMES[1], NAMES[2])  # an entity is one character
    low, high = changes["xaxis.range"]
    assert low < -4 and high > 4


def test_what_stands_behind_bars_has_room() -> None:
    changes = narrow_layout(stacks())
    assert changes["xaxis.range"][1] > 3.0 * 1.14  # the end that a wide screen has
    texts = [value for path, value in changes.items() if re.fullmatch(r"annotations\[\d+\]\.text", path)]
    assert texts == ["3.00 ms"] * 4


def test_a_legend_goes_above_and_its_lines_have_room() -> None:
    beside, inside = narrow_layout(dots()), narrow_layout(dots(legend={"x": 0.99, "xanchor": "right", "y": 0.1}))
    for changes in (beside, inside):
        assert changes["legend.y"] > 1 and changes["legend.x"] == 0
        assert changes["margin.t"] > 40
        assert changes["height"] == 300 + changes["margin.t"] - 20  # the panel keeps its height
    assert "legend.y" not in narrow_layout(tornado().update_layout(showlegend=False))


def test_ticks_that_are_given_are_fewer() -> None:
    figure = dots().update_xaxes(tickvals=list(range(9)), ticktext=[f"{n} SMs" for n in range(9)])
    changes = narrow_layout(figure)
    assert changes["xaxis.tickvals"] == [0, 2, 4, 6, 8]
    assert changes["xaxis.ticktext"] == [f"{n} SMs" for n in (0, 2, 4, 6, 8)]
    assert len(changes["xaxis.tickvals"]) <= TICKS


def test_one_panel_of_numbers_stays() -> None:
    assert narrow_layout(dots(showlegend=False)) == {}
    assert narrow_script(dots(showlegend=False), "figure-one") == ""


def test_the_page_holds_the_changes() -> None:
    text = narrow_script(tornado(), "figure-one")
    assert text.count("<") == 2  # its own tags alone
    assert json.loads(re.sub(r"</?script[^>]*>", "", text)) == json.loads(json.dumps(narrow_layout(tornado())))


STATE = """
const figure = document.getElementById("figure-" + arguments[0]), size = figure.getBoundingClientRect();
const texts = [...figure.querySelectorAll("text")].map((e) => e.getBoundingClientRect()).filter((b) => b.width > 0);
const above = (e) => e.closest("figure").getBoundingClientRect();
return {
  outside: texts.filter((b) => b.left < size.left - 1 || b.right > size.right + 1).length,
  cut: size.bottom > above(figure).bottom + 1, height: Math.round(size.height),
};
"""


def test_a_browser_draws_both_and_goes_back(
    opened: Callable[[str, int], Any], sized: Callable[[int, int], None]
) -> None:
    sections = [figure_section(name, "", draw(), f"figure-{name}") for name, draw in (("t", tornado), ("s", stacks))]
    sized(390, 900)
    browser = opened(document("figures", "\n".join(sections)), 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    for name, draw in (("t", tornado), ("s", stacks)):
        found = browser.execute_script(STATE, name)
        assert (found["outside"], found["cut"]) == (0, False)
        assert found["height"] == narrow_layout(draw())["height"]
    assert browser.execute_script(OVERLAPS, "#figure-t text, #figure-s text") == []
    sized(1280, 900)
    for name, draw in (("t", tornado), ("s", stacks)):
        found = browser.execute_script(STATE, name)
        assert (found["outside"], found["cut"], found["height"]) == (0, False, draw().layout.height)
    assert browser.execute_script(OVERLAPS, "#figure-t text, #figure-s text") == []

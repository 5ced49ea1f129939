"""What every drawing shares; nothing else imports plotly."""

import re
from pathlib import Path

import plotly.graph_objects as go

import dse
from dse.reports.common.figures import CAUSE_COLOURS, LIGHT, axis_title, figure_html, layout, plotly_script
from dse.space.expression import parse_expression
from dse.space.space import Objective
from dse.timing.timing import PHASE_CAUSES


def test_only_figures_import_plotly():
    package = Path(dse.__file__).parent
    users = {
        p.relative_to(package)
        for p in package.rglob("*.py")
        if re.search(r"^\s*(import|from) plotly", p.read_text(), re.M)
    }
    assert len(users) > 1
    drawings = [p for p in users if p.parts[0] == "reports" and (p.name.startswith("figure") or p.stem == "stacks")]
    assert set(drawings) == users


def test_every_cause_has_a_colour_of_its_own_and_light_ones_are_light():
    assert CAUSE_COLOURS.keys() >= PHASE_CAUSES.keys()
    assert len(set(CAUSE_COLOURS.values())) == len(CAUSE_COLOURS)
    for cause, colour in CAUSE_COLOURS.items():
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert (luminance > 0.6) == (cause in LIGHT), cause


def test_a_drawing_stands_in_its_page_without_the_library():
    figure = go.Figure(go.Bar(x=["a"], y=[3.0]))
    layout(figure, 240, l=10)
    html = figure_html(figure, "bars")
    assert 'id="bars"' in html and "240px" in html and "<html" not in html
    assert len(html) < 20_000 < len(plotly_script())
    assert (figure.layout.margin.l, figure.layout.margin.r) == (10, 20)


def test_the_words_of_an_axis_are_escaped():
    objective = Objective("a<b", "mm2", "minimize", parse_expression("die_mm2", "here"))
    assert "<" not in axis_title(objective)

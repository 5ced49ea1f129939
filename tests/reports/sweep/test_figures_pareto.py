"""Drawings of designs over one objective or two, and of those that cannot be had."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.grid.result import SweepResult
from dse.reports.sweep.page import page_html


def _without_plotly(page: str) -> str:
    """The page without the text of plotly.js, which is one script of its own in the head."""
    head, rest = page.split("<script>", 1)
    return head + rest.split("</head>", 1)[1]


def test_single_objective_has_a_histogram(single: SweepResult) -> None:
    page = _without_plotly(page_html(single))
    assert '"type":"histogram"' in page
    assert "H100 SXM5 80GB" in page


def test_where_no_design_can_be_had_those_that_break_a_constraint_are_drawn(impossible: SweepResult) -> None:
    figure = impossible.figure("pareto")
    assert [trace.name for trace in figure.data] == ["designs that cannot be had", "baseline"]
    assert len(figure.data[0].x) == impossible.n
    space = replace(impossible.space, objectives=impossible.space.objectives[:1])
    for result, name in ((replace(impossible, space=space), "pareto"), (impossible, "stacks")):
        with pytest.raises(InputError, match="there is nothing to draw"):
            result.figure(name)

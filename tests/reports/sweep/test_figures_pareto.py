"""Drawings of designs over a single objective."""

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

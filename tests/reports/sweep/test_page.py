"""The page: self-contained, the same bytes twice, and escaped."""

import re
from pathlib import Path

import pytest

from dse import sweep
from dse.base.errors import InputError
from dse.grid.result import SweepResult
from dse.reports.common.page_parts import write_document
from dse.reports.search.data import SearchReport
from dse.reports.sweep.design_explanations import DesignExplanations
from dse.reports.sweep.page import page_html, write_page


def _without_plotly(page: str) -> str:
    """The page without the text of plotly.js, which is one script of its own in the head."""
    head, rest = page.split("<script>", 1)
    return head + rest.split("</head>", 1)[1]


def _attributes(page: str) -> list[str]:
    return re.findall(r"\b(?:src|href|action)\s*=\s*[\"']([^\"']*)", _without_plotly(page))


def test_same_inputs_same_bytes(single: SweepResult, tmp_path: Path) -> None:
    write_page(single, tmp_path / "a.html")
    again = sweep(single.space)
    write_page(again, tmp_path / "b.html")
    assert again.seconds != single.seconds
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_page_loads_nothing_and_holds_plotly_once(result: SweepResult) -> None:
    page = page_html(result)
    assert not [value for value in _attributes(page) if "http" in value or value.startswith("//")]
    assert "@import" not in _without_plotly(page)
    assert page.count("plotly.js (basic - minified) v") == 1
    assert len(page.encode()) < 2.5e6
    assert len(page) < 7e6


def test_sections_stand_in_order(result: SweepResult) -> None:
    sections = re.findall(r'<section id="(\w+)"', page_html(result))
    assert sections == [
        "answer",
        "pareto",
        "words",
        "designs",
        "ratios",
        "stacks",
        "places",
        "axes",
        "front",
        "provenance",
    ]


def test_what_was_looked_into_has_its_sections(pair: SweepResult, explanations: DesignExplanations) -> None:
    page = page_html(pair, explanations)
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections[5:9] == ["stacks", "power", "roofline", "elasticities"]
    assert page == page_html(pair, explanations)


def test_a_search_has_its_section(evaluated: SearchReport) -> None:
    sections = re.findall(r'<section id="(\w+)"', page_html(evaluated))
    assert sections[-2:] == ["search", "provenance"]


def test_baseline_and_calibration_are_named(result: SweepResult) -> None:
    page = _without_plotly(page_html(result))
    assert 'class="badge">uncalibrated<' in page
    assert "baseline: H100 SXM5 80GB" in page
    assert page.count('<tr class="base">') == 2


def test_user_text_is_escaped(maximised: SweepResult) -> None:
    page = page_html(maximised)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; co" in page


def test_nothing_feasible_says_why(impossible: SweepResult) -> None:
    page = _without_plotly(page_html(impossible))
    assert "None of the 2 designs can be had" in page
    assert "constraint: die_mm2 &lt;= 5" in page
    assert "No design is within die_mm2 &lt;= 5: die_mm2 is" in page
    assert page.index('id="figure-pareto"') < page.index('id="infeasible"')  # they are drawn
    assert 'id="front"' not in page


def test_a_page_makes_its_folder_or_says_why_not(tmp_path: Path) -> None:
    write_document(tmp_path / "new" / "page.html", "<p>")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["page.html"]
    with pytest.raises(InputError, match="cannot be written"):
        write_document(tmp_path / "new" / "page.html" / "page.html", "<p>")

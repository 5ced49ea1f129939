"""The page: self-contained, the same bytes twice, escaped, and quiet in a browser."""

import re
import shutil
from pathlib import Path

import pytest

from dse import sweep
from dse.report.page import page_html, write_page
from dse.sweep.result import SweepResult

BROWSER = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


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
    assert page.count("plotly.js v") == 1
    assert len(page) < 7e6


def test_sections_stand_in_order(result: SweepResult) -> None:
    sections = re.findall(r'<section id="(\w+)"', page_html(result))
    assert sections == ["answer", "designs", "pareto", "stacks", "axes", "front", "provenance"]


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
    assert 'id="pareto"' not in page
    assert 'id="front"' not in page


def test_single_objective_has_a_histogram(single: SweepResult) -> None:
    page = _without_plotly(page_html(single))
    assert '"type":"histogram"' in page
    assert "H100 SXM5 80GB" in page


@pytest.mark.parametrize("name", ["result", "single", "maximised"])
def test_browser_is_quiet(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not installed")
    path = tmp_path / "page.html"
    write_page(request.getfixturevalue(name), path)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*BROWSER, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        for width in (1280, 1920):
            browser.set_window_size(width, 1000)
            browser.get(path.as_uri())
            drawn = browser.execute_script("return document.querySelectorAll('.plotly-graph-div .main-svg').length")
            over = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert drawn > 0
            assert over <= 0
            assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    finally:
        browser.quit()

"""The page in a browser: it hovers, brushes, picks, copies and fits, and the console stays quiet."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.explanation.assumed_effects import AssumedEffects
from dse.grid.result import SweepResult
from dse.hardware.area import DieArea
from dse.hardware.presets import load_sheet
from dse.reports.sweep.assumed import assumed_numbers
from dse.reports.sweep.design_explanations import DesignExplanations, design_numbers
from dse.reports.sweep.design_toml import design_files
from dse.reports.sweep.page import page_html
from tests.reports.browser import OVERLAPS
from tests.reports.conftest import QUICK, SMALL, swept

pytestmark = pytest.mark.usefixtures("browser")
"""First of all: without a browser no page is made."""

FRONT = 2
"""The front's trace in a plot of the explorer."""

TEXTS = {
    "ticks": ".xtick text, .ytick text, .xtitle, .ytitle, .annotation-text, .legendtext, .modebar-btn",
    "names": "#parallel-names div",
    "parallel": "#parallel-axes text",
}
"""What -> the texts that must not lie over each other."""

PERMISSIONS = ["clipboardReadWrite", "clipboardSanitizedWrite"]


Pages = dict[tuple[int, ...], tuple[tuple[Any, ...], str]]


@pytest.fixture(scope="module")
def pages() -> Pages:
    """Pages that were made: by the identities of what they show, which is kept with them."""
    return {}


@pytest.fixture
def shown(opened: Callable[[str, int], Any], pages: Pages) -> Callable[..., Any]:
    """Open the page of a result at a width."""

    def show(
        result_or_search: Any,
        width: int,
        explanations: DesignExplanations | None = None,
        assumed: AssumedEffects | None = None,
    ) -> Any:
        asked = result_or_search, explanations, assumed
        made = tuple(map(id, asked))
        if made not in pages:
            pages[made] = asked, page_html(*asked)
        return opened(pages[made][1], width)

    return show


def scrolled_to(browser: Any, selector: str) -> Any:
    """The element, in the middle of the window."""
    element = browser.find_element("css selector", selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    return element


def brushed(browser: Any, dimension: int, low: float, high: float) -> None:
    """Drag along an axis of the parallel coordinates from one place (0 to 1 of its height) to another."""
    from selenium.webdriver import ActionChains

    strip = scrolled_to(browser, f'.strip[data-dimension="{dimension}"]')
    height = strip.size["height"]
    start, length = round((0.5 - low) * (height - 24)), round((low - high) * (height - 24))
    actions = ActionChains(browser, duration=50).move_to_element_with_offset(strip, 0, start).click_and_hold()
    actions.move_by_offset(0, length // 2).move_by_offset(0, length - length // 2).release().perform()


def selected(browser: Any) -> list[int] | None:
    """The designs that a plot shows as picked."""
    script = f"return document.getElementById('explorer-plot-0').data[{FRONT}].selectedpoints"
    return browser.execute_script(script)


@pytest.mark.parametrize("name", ["result", "single", "maximised", "pair", "without_baseline", "evaluated"])
def test_everything_is_drawn_and_fits(name: str, shown: Any, request: pytest.FixtureRequest) -> None:
    explanations = request.getfixturevalue("explanations") if name == "pair" else None
    answer = request.getfixturevalue(name)
    assumed = assumed_numbers(answer) if name in ("pair", "maximised") else None
    counts = (
        "return ['.plotly-graph-div', '.plotly-graph-div .main-svg'].map((s) => document.querySelectorAll(s).length)"
    )
    for width in (1280, 1920):
        browser = shown(answer, width, explanations, assumed)
        plots, drawn = browser.execute_script(counts)
        assert drawn >= plots > 0
        assert browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth") <= 0
        for what, selector in TEXTS.items():
            assert browser.execute_script(OVERLAPS, selector) == [], (width, what)


FIRST_SCREEN = """
const bottom = (selector) => document.querySelector(selector).getBoundingClientRect().bottom;
return ["h1", ".numbers", ".answer", ".caveats", "#pareto .plotly-graph-div"].map(bottom);
"""

CUT = """
const within = (t, p) => t.top >= p.top - 1 && t.bottom <= p.bottom + 1 && t.left >= p.left - 1;
return [...document.querySelectorAll(".js-plotly-plot")].flatMap((plot) =>
  [...plot.querySelectorAll(".xtitle, .ytitle")].map((e) => [e.textContent, e.getBoundingClientRect()])
    .filter(([, b]) => b.width > 0 && !within(b, plot.getBoundingClientRect())).map(([text]) => text));
"""
"""Titles of axes that reach beyond their plot."""


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800), (1920, 1080)])
def test_question_answer_numbers_and_plot_are_on_the_first_screen(
    width: int, height: int, shown: Any, sized: Any, result: SweepResult
) -> None:
    sized(width, height)
    browser = shown(result, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert max(browser.execute_script(FIRST_SCREEN)) <= height
    texts = ".lead, h1, .numbers div > *, .answer p, .choose label, .caveats summary"
    assert browser.execute_script(OVERLAPS, texts) == []
    assert browser.execute_script(CUT) == []


def test_a_long_title_of_a_low_plot_has_several_lines(shown: Any, sized: Any, result: SweepResult) -> None:
    first, *others = result.space.objectives
    long = replace(first, name=f"{first.name} + 0 * ({' + '.join([first.name] * 4)})")
    front, base, sample = (
        frame.assign(**{long.name: frame[first.name]}) for frame in (result.front, result.baseline, result.sample)
    )
    space = replace(result.space, objectives=(long, *others))
    sized(390, 600)
    browser = shown(replace(result, space=space, front=front, baseline=base, sample=sample), 390)
    assert browser.execute_script(CUT) == []


def test_an_axis_of_the_space_lies_across(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    number = len(result.space.objectives)
    choose = """
    const select = document.getElementById("explorer-0-x");
    select.value = arguments[0];
    select.dispatchEvent(new Event("change"));
    const plot = document.getElementById("explorer-plot-0");
    return [plot.layout.xaxis.title.text, Array.from(plot.data[2].x).slice(0, 3), plot.getAttribute("aria-label")];
    """
    title, values, told = browser.execute_script(choose, str(number))
    axis = result.space.axes[0]
    assert axis.name in title and axis.name in told
    assert values == pytest.approx(result.front[axis.name].to_numpy(float)[:3], rel=1e-6)


def test_a_line_where_one_axis_varies_and_grey_where_a_constraint_is_broken(shown: Any) -> None:
    answer = swept(axes={"sm_count": [96, 120, 132, 156]}, links={}, constraints=["die_mm2 <= 860"],
                   objectives=SMALL["objectives"][::2], **QUICK)  # fmt: skip
    browser = shown(answer, 1280)
    drawn = """
    const [line, refused] = [1, -1].map((i) => document.getElementById("explorer-plot-0").data.at(i));
    return [Array.from(line.x), Array.from(refused.x), refused.text];
    """
    line, refused, texts = browser.execute_script(drawn)
    assert line == [96, 120, 132, 132, 156]  # the baseline is one of them
    assert refused == [156] and "die_mm2" in texts[0]


def test_ranges_are_kept_by_keys(shown: Any, result: SweepResult) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = shown(result, 1280)
    strip = scrolled_to(browser, '.strip[data-dimension="0"]')
    browser.execute_script("arguments[0].focus()", strip)
    browser.switch_to.active_element.send_keys(Keys.ARROW_UP * 5)
    assert len(selected(browser)) < len(result.front)
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert selected(browser) is None


def test_baseline_is_labelled(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    for plot in ("explorer-plot-0", "explorer-plot-1"):
        texts = [e.text for e in browser.find_elements("css selector", f"#{plot} .annotation-text")]
        assert texts == ["H100 SXM5 80GB"]
    assert "baseline: H100 SXM5 80GB" in browser.find_element("css selector", ".keys").text
    titles = [e.text for e in browser.find_elements("css selector", ".xtitle, .ytitle")]
    assert "prefill time to first token [ms], uncalibrated" in titles
    assert "die area [mm²], −8 to +8 %" in titles  # the interval of the area model


@pytest.mark.parametrize("design", [0, 1, 10])
def test_hovering_a_point_tells_its_design(shown: Any, result: SweepResult, design: int) -> None:
    from selenium.webdriver import ActionChains

    browser = shown(result, 1280)
    plot = scrolled_to(browser, "#explorer-plot-0")
    place = """
    const plot = document.getElementById("explorer-plot-0"), layout = plot._fullLayout, trace = plot.data[2];
    const at = (axis, v) => axis._offset + axis.d2p(v), i = arguments[0];
    return [at(layout.xaxis, trace.x[i]), at(layout.yaxis, trace.y[i])];
    """
    x, y = browser.execute_script(place, design)
    size = plot.size
    remaining, top = round(x - size["width"] / 2), round(y - size["height"] / 2)
    ActionChains(browser).move_to_element_with_offset(plot, remaining, top).perform()
    text = plot.find_element("css selector", ".hoverlayer").text
    row = result.front.iloc[design]
    assert f"Pareto design {design + 1}" in text
    for axis in result.space.axes:
        assert f"{axis.name} {row[axis.name]:g}" in text
    assert f"die area {row['die_mm2']:,.0f} mm²" in text
    assert re.search(r"prefill time to first token [\d.]+ ms \([+−]?[\d.]+ %\)", text)


def test_brushing_keeps_a_range_everywhere(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    assert selected(browser) is None
    names = [e.text for e in browser.find_elements("css selector", "#parallel-names b")]
    assert names[:3] == ["tensor_fma_bf16", "sm_count", "dram_bandwidth_gbs"]
    brushed(browser, 1, 0.45, 1.05)  # 120, 132 and 144 of 96 to 144 SMs
    expected = np.flatnonzero(result.front["sm_count"] >= 120)
    assert selected(browser) == expected.tolist()
    message = f"{len(expected)} of {len(result.front)} Pareto designs drawn are kept"
    assert browser.find_element("id", "kept").text == message
    brushed(browser, 0, 0.75, 1.05)  # and the highest tensor rate
    both = np.flatnonzero((result.front["sm_count"] >= 120) & (result.front["tensor_fma_bf16"] == 1024))
    assert 0 < len(both) < len(expected)
    assert selected(browser) == both.tolist()
    browser.find_element("id", "clear").click()
    assert selected(browser) is None
    assert browser.find_element("id", "kept").text.startswith("all ")


def test_any_two_objectives_and_a_third_as_colour(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    choose = """
    const select = document.getElementById(arguments[0]);
    select.value = arguments[1];
    select.dispatchEvent(new Event("change"));
    """
    state = """
    const plot = document.getElementById("explorer-plot-0"), colour = plot.data[2].marker.color;
    const colours = typeof colour === "string" ? 1 : new Set(colour).size;
    return [plot.layout.xaxis.title.text, plot.layout.yaxis.title.text, colours,
      Array.from(plot.data[2].x).slice(0, 3)];
    """
    browser.execute_script(choose, "explorer-0-x", "1")
    browser.execute_script(choose, "explorer-colour", "o2")
    x, y, colours, values = browser.execute_script(state)
    prefill, decode = "prefill time to first token [ms], uncalibrated", "decode time between tokens [ms], uncalibrated"
    assert (x, y) == (decode, prefill)
    assert values == pytest.approx(result.front["decode.tbt_ms"].to_numpy()[:3], rel=1e-6)
    assert colours > 3
    browser.execute_script(choose, "explorer-0-x", "0")  # what is on the other axis changes places
    assert browser.execute_script(state)[:2] == [prefill, decode]
    browser.execute_script(choose, "explorer-colour", "")
    assert browser.execute_script(state)[2] == 1


def test_a_box_in_a_plot_picks_designs_everywhere(shown: Any, result: SweepResult) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    browser = shown(result, 1280)
    plot = scrolled_to(browser, "#explorer-plot-0")
    box = """
    const plot = document.getElementById("explorer-plot-0"), layout = plot._fullLayout;
    Plotly.relayout(plot, {dragmode: "select"});
    return [layout.xaxis._offset, layout.yaxis._offset, layout.xaxis._length, layout.yaxis._length];
    """
    remaining, top, across, down = browser.execute_script(box)
    start = round(remaining + 1 - plot.size["width"] / 2), round(top + 1 - plot.size["height"] / 2)
    actions = ActionChains(browser, duration=50).move_to_element_with_offset(plot, *start).click_and_hold()
    actions.move_by_offset(round(across / 4), round(down / 2)).move_by_offset(round(across / 4), round(down / 2) - 2)
    actions.release().perform()
    WebDriverWait(browser, 10).until(lambda b: not b.find_element("id", "kept").text.startswith("all "))
    picked = selected(browser)
    assert picked
    assert len(picked) < len(result.front)
    rest = result.front["die_mm2"].drop(index=picked)
    assert result.front["die_mm2"].iloc[picked].max() < rest.max()
    assert browser.find_element("id", "kept").text.startswith(f"{len(picked)} of {len(result.front)} ")
    other = "return document.getElementById('explorer-plot-1').data[2].selectedpoints"
    assert browser.execute_script(other) == picked


def test_a_click_shows_the_file(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    browser.execute_script(
        "document.getElementById('explorer-plot-0').emit('plotly_click', {points: [{curveNumber: 2, pointIndex: 4}]})"
    )
    text = browser.find_element("id", "file-text").text
    assert browser.find_element("id", "file-name").text.startswith("Pareto design 5")
    assert text.strip() == design_files(result.space, result.front).text(4, 5).strip()
    browser.find_element("id", "file-close").click()
    assert not browser.find_element("id", "file").is_displayed()


def test_a_copied_file_loads_as_the_design(shown: Any, result: SweepResult, tmp_path: Path) -> None:
    browser = shown(result, 1280)
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": PERMISSIONS})
    button = scrolled_to(browser, "#front button[data-front]")
    design = int(button.get_attribute("data-front"))
    button.click()
    read = """
    const done = arguments[0];
    setTimeout(() => navigator.clipboard.readText().then(done, (error) => done(`${error}`)), 200);
    """
    text = browser.execute_async_script(read)
    assert button.text == "copied"
    (tmp_path / "copied.toml").write_text(text, encoding="utf-8")
    sheet = load_sheet(tmp_path / "copied.toml")
    assert sheet.title == f"small: Pareto design {design + 1}"
    expected = result.space.base.numbers() | design_numbers(result.space, result.front.iloc[design])
    assert sheet.numbers() == expected


def test_error_bars_stand_where_an_interval_is_known(shown: Any, result: SweepResult) -> None:
    browser = shown(result, 1280)
    bars = """
    const traces = document.getElementById("explorer-plot-0").data;
    const trace = traces.find((t) => t.marker && t.marker.symbol === "diamond");
    return [trace.error_x.array[0] / trace.x[0], trace.error_x.arrayminus[0] / trace.x[0], trace.error_y.visible];
    """
    above, below, time = browser.execute_script(bars)
    area = DieArea.from_table().error_interval
    assert (above, below) == pytest.approx((area.high - 1, 1 - area.low))
    assert time is False  # uncalibrated

"""The page of a comparison in a browser: its panels stand beside each other where there is room for them."""

from collections.abc import Callable
from typing import Any

import pytest

import dse
from dse.explanation.gpu_comparison import compare_gpus
from dse.reports.compare.page import comparison_page_html
from tests.reports.browser import OVERLAPS

pytestmark = pytest.mark.usefixtures("browser")

LEFTS = """
const left = (e) => Math.round(e.getBoundingClientRect().left);
return [...new Set([...document.querySelectorAll(".panels figure")].map(left))].length;
"""

WIDER = """
return [...document.querySelectorAll(".panels .main-svg")].filter((drawn) =>
  drawn.getBoundingClientRect().right > drawn.closest("figure").getBoundingClientRect().right + 1).length;
"""


@pytest.fixture(scope="module")
def pair() -> dse.GpuComparison:
    workload = "gpt2_xl:phase=decode,context=512,dtype=fp16"
    return compare_gpus(["h100_sxm", "t4"], workload, "batch", ["1", "8"], model="roofline")


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (1280, 3)])
def test_panels_fill_the_width(
    width: int,
    columns: int,
    opened: Callable[[str, int], Any],
    sized: Callable[[int, int], None],
    pair: dse.GpuComparison,
) -> None:
    sized(width, 900)
    browser = opened(comparison_page_html(pair), width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(LEFTS) == columns
    assert browser.execute_script(WIDER) == 0
    assert browser.execute_script(OVERLAPS, ".panels text") == []

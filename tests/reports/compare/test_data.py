"""What a comparison says: the best GPU of each metric, ratios as text, and its page and terminal."""

from io import StringIO

import pytest
from rich.console import Console

import dse
from dse.explanation.gpu_comparison import compare_gpus
from dse.reports.compare.data import answer, groups, ratio_text, shown_metrics
from dse.reports.compare.page import comparison_page_html
from dse.reports.compare.terminal import print_comparison


@pytest.fixture(scope="module")
def pair() -> dse.GpuComparison:
    return compare_gpus(["h100_sxm", "t4"], "gpt2_xl:phase=decode,context=512,dtype=fp16", "batch", ["1", "128"])


def test_the_answer_names_the_best_and_who_cannot(pair: dse.GpuComparison) -> None:
    one, many = answer(pair)
    assert one.startswith("Batch 1: ") and "next token: h100_sxm" in one
    assert "t4 cannot run it" in many


def test_one_phase_is_told_once(pair: dse.GpuComparison) -> None:
    assert "tbt_ms" in shown_metrics(pair) and "time_ms" not in shown_metrics(pair)


def test_a_ratio_has_its_interval(pair: dse.GpuComparison) -> None:
    first, second = (row for _, row in groups(pair)[0][1].iterrows())
    assert ratio_text(first) == "–" and " to " in ratio_text(second)


def test_a_narrow_terminal_shows_every_gpu_and_head(pair: dse.GpuComparison) -> None:
    out = StringIO()
    print_comparison(pair, Console(file=out, width=80))
    text = out.getvalue()
    assert "h100_sxm" in text and "token/J" in text and "cannot run it: needs" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_page_has_the_answer_before_the_plots_and_loads_nothing(pair: dse.GpuComparison) -> None:
    page = comparison_page_html(pair)
    assert page.index('id="answer"') < page.index("figure-compare") < page.index('id="table0"')
    assert page == comparison_page_html(pair) and 'src="http' not in page

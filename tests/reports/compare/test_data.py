"""What a comparison says: the best GPU of each metric, ratios as text, and its page and terminal."""

from dataclasses import replace
from html import escape
from io import StringIO

import pytest
from rich.console import Console

import dse
from dse.explanation.gpu_comparison import compare_gpus
from dse.reports.compare.data import answer, groups, ratio_text, refusals, shown_metrics
from dse.reports.compare.page import comparison_page_html
from dse.reports.compare.terminal import print_comparison


@pytest.fixture(scope="module")
def pair() -> dse.GpuComparison:
    return compare_gpus(["h100_sxm", "t4"], "gpt2_xl:phase=decode,context=512,dtype=fp16", "batch", ["1", "128"])


def test_the_answer_names_the_best_and_who_cannot(pair: dse.GpuComparison) -> None:
    one, many = answer(pair)
    assert one.startswith("Batch 1: ") and "next token: h100_sxm" in one
    assert "t4 cannot run it" in many


def test_gpus_that_lack_memory_share_a_sentence(pair: dse.GpuComparison) -> None:
    none = compare_gpus(["h100_sxm", "l40s", "l4"], "llama3_70b:phase=decode,context=512,dtype=fp8", "tp", ["1", "8"])
    ((_, rows), _) = groups(none)
    (sentence,) = refusals(rows)
    assert sentence.startswith("l40s and l4 cannot run it: needs ") and sentence.count("needs") == 1
    assert "; l40s has 48 GB and l4 has 24 GB; give more GPUs" in sentence
    assert answer(none)[0].endswith("l40s and l4 cannot run it.")
    lost = replace(none, table=none.table.assign(reason=rows["reason"].iloc[-1]))
    assert answer(lost)[0] == "Tp 1: none of them can run it."


def test_the_best_keep_to_the_limit_and_who_does_not_is_told(pair: dse.GpuComparison) -> None:
    times = pair.table.groupby("gpu")["tbt_ms"].max()
    limit = f"tbt_ms <= {(times['h100_sxm'] + times['t4']) / 2}"
    names = [gpu.name for gpu in pair.gpus]
    held = compare_gpus(names, "gpt2_xl:phase=decode,context=512,dtype=fp16", "batch", ["1", "128"], limits=[limit])
    assert list(held.table["beyond"]) == ["", limit, "", ""]
    overall, one, _ = answer(held)
    assert overall.startswith(f"Within {limit}: next token: h100_sxm at batch 1")
    assert "t4 is beyond the limit" in one
    out = StringIO()
    print_comparison(held, Console(file=out, width=80))
    assert f"beyond {limit}: t4" in out.getvalue()
    assert f"<small>beyond {escape(limit)}</small>" in comparison_page_html(held)


def test_where_none_keeps_to_the_limit_it_says_so(pair: dse.GpuComparison) -> None:
    none = replace(pair, table=pair.table.assign(beyond="tbt_ms <= 0"), limits=("tbt_ms <= 0",))
    assert answer(none)[0] == "Within tbt_ms <= 0: none of the GPUs compared."


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

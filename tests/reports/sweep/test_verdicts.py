"""Verdicts of axes in words and as JSON; the first screen of a page."""

import re
from dataclasses import replace

import pytest

import dse
from dse.explanation.axis_verdicts import AxisCut, AxisVerdicts, axis_verdicts
from dse.grid.result import SweepResult
from dse.reports.sweep.page import page_html
from dse.reports.sweep.page_head import numbers
from dse.reports.sweep.verdicts import document, headline, verdict_sentences


@pytest.fixture(scope="module")
def verdicts(pair: SweepResult) -> AxisVerdicts:
    return axis_verdicts(pair.space)


def with_verdict(verdicts: AxisVerdicts, **changes: object) -> str:
    """The paragraph of an axis that has one verdict, changed so."""
    first = verdicts.verdicts[0]
    one = replace(first, **{"of_base": changes.get("before", first.of_base)} | changes)
    only = replace(verdicts, verdicts=(one,), cuts=())
    return next(text for text in verdict_sentences(only) if "no objective gains" not in text)


def test_it_is_public() -> None:
    assert dse.axis_verdicts is axis_verdicts


def test_every_scanned_axis_has_a_paragraph(verdicts: AxisVerdicts) -> None:
    axes = [axis for axis in verdicts.space.axes if len(axis) > 1]
    assert len(verdict_sentences(verdicts)) == len(document(verdicts)) == len(axes)
    assert [entry["axis"] for entry in document(verdicts)] == [axis.name for axis in axes]


def test_a_paragraph_says_how_far_more_pays_and_what_leads_beyond(verdicts: AxisVerdicts) -> None:
    one = verdicts.verdicts[0]
    changes = {"pays": "until", "until": one.base * 1.25, "before": 100.0, "after": 80.0, "area": 30.0}
    text = with_verdict(verdicts, **changes, cause="l2_bandwidth", power_limit=False)
    assert re.search(r"pays up to 1\.25 times the base's \(.*\): .* 100 → 80\.0 .*, for 30\.0 mm² more", text)
    assert text.endswith("Beyond it L2 bandwidth leads.")
    limited = with_verdict(verdicts, **changes, cause="l2_bandwidth", power_limit=True, clock=0.9)
    assert "the power limit leaves 90 % of the clock" in limited


def test_a_paragraph_says_what_links_alone_change(verdicts: AxisVerdicts) -> None:
    changes = {"pays": "until", "before": 80.0, "after": 70.0}
    assert "Its links" not in with_verdict(verdicts, **changes, of_base=80.7).replace("its", "Its")
    text = with_verdict(verdicts, **changes, of_base=100.0)
    assert re.search(r"At the base's value its links alone change .* 100 → 80\.0 ms\.", text)


def test_a_paragraph_says_what_is_enough(verdicts: AxisVerdicts) -> None:
    one = verdicts.verdicts[0]
    same = {"most": one.before, "most_at": one.base}
    less = with_verdict(verdicts, pays="until", until=one.base / 2, cause="dram_bandwidth", power_limit=False, **same)
    assert "nothing is gained by more than the base has" in less and "0.50 times the base's" in less
    assert "is enough: beyond it DRAM bandwidth leads" in less


def test_causes_have_their_names_beside_the_words(verdicts: AxisVerdicts) -> None:
    one = verdicts.verdicts[0]
    text = with_verdict(verdicts, pays="until", until=one.base / 2, cause="math_pipe_throttle", power_limit=False)
    assert "arithmetic on tensor cores and lanes (math_pipe_throttle)" in text


def test_a_constraint_is_named_with_where_it_cuts(verdicts: AxisVerdicts) -> None:
    axis = verdicts.space.axes[0]
    cut = AxisCut(axis, 150.0, 140.0, True, "constraint: die_mm2 <= 814")
    text = " ".join(verdict_sentences(replace(verdicts, cuts=(cut,))))
    assert "The constraint die_mm2 <= 814 cuts from 150" in text
    itself = AxisCut(axis, 132.0, float("nan"), True, "constraint: die_mm2 <= 700")
    assert verdict_sentences(replace(verdicts, cuts=(itself,)))[0] == "The base itself cannot be had (die_mm2 <= 700)."


def test_the_headline_names_axes_that_pay_and_those_that_do_not(verdicts: AxisVerdicts) -> None:
    one = verdicts.verdicts[0]
    more = replace(one, until=1.5 * one.base, pays="until")
    text = headline(replace(verdicts, verdicts=(more,)))
    assert "to 1.50 times" in text
    assert headline(replace(verdicts, verdicts=())).startswith(
        "From the base, more of no axis pays; more gains nothing"
    )


def test_what_gains_less_than_a_step_wants_is_told_in_all(verdicts: AxisVerdicts) -> None:
    one = verdicts.verdicts[0]
    slow = {"pays": "until", "until": one.base, "before": 100.0, "most": 94.0, "most_at": 2 * one.base}
    text = with_verdict(verdicts, **slow)
    assert "gains less than 1 % a step of 5 %, in all" in text and "100 → 94.0" in text and "at 2.00 times" in text
    assert "nothing is gained" not in text
    told = headline(replace(verdicts, verdicts=(replace(one, **slow),)))
    assert "more of no axis pays; more gains little of" in told and "(6 %)" in told


def test_the_most_is_the_best_beyond_the_base(verdicts: AxisVerdicts) -> None:
    for one in verdicts.verdicts:
        assert one.objective.sign * one.most <= one.objective.sign * one.before and one.most_at >= one.base
        if one.until > one.base:
            assert one.objective.sign * one.most <= one.objective.sign * one.after


def test_the_first_screen_has_numbers_and_the_answer_before_the_notes(
    pair: SweepResult, verdicts: AxisVerdicts
) -> None:
    page = page_html(pair, verdicts=verdicts)
    places = [
        page.index(text) for text in ("<h1>", 'class="numbers"', headline(verdicts)[:20], '<details class="caveats">')
    ]
    assert places == sorted(places) and page.index('id="pareto"') < page.index('id="words"')
    assert 1 <= len(numbers(pair)) <= 4


def test_no_verdicts_leave_no_words() -> None:
    assert verdict_sentences(None) == document(None) == [] and headline(None) == ""

"""How sure the order of a sweep's designs is, as its JSON, its page and its terminal tell it."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.data_ratios import BASELINE, chosen_ratios, comparisons, front_note, on_front
from dse.reports.sweep.page_ratios import ratios_section
from dse.reports.sweep.terminal import print_front
from dse.space.expression import parse_expression
from dse.space.space import Objective
from tests.evaluate.test_metric_error import Measured


@pytest.fixture(scope="module")
def calibrated(result):
    return replace(result, space=replace(result.space, model=Measured()))


def test_each_chosen_design_is_held_against_the_baseline_and_the_others(calibrated):
    found = chosen_ratios(calibrated)
    letters = [letter for letter in chosen_designs(calibrated)["letter"] if letter]
    count, objectives = len(letters) + 1, len(calibrated.space.objectives)
    assert len(found) == count * (count - 1) // 2 * objectives
    assert set(found["against"]) <= {BASELINE, *letters} and BASELINE not in set(found["design"])
    position = chosen_designs(calibrated).set_index("letter")["position"]
    for _, row in found[found["against"] == BASELINE].iterrows():
        value = calibrated.front[row["objective"]].iloc[position[row["design"]]]
        assert row["ratio"] == pytest.approx(value / calibrated.baseline[row["objective"]].iloc[0])
        low, high = row["ratio_interval_80"]
        assert low <= row["ratio"] <= high
        assert (low <= 1 <= high) == (0.1 < row["probability_better"] < 0.9)
    assert len(chosen_ratios(calibrated, among=False)) == len(letters) * objectives


def test_the_document_holds_probabilities_and_says_why_there_are_none(result, calibrated):
    known = calibrated.summary()
    assert known["ratios_unknown"] == {}
    assert all(0 <= member["probability_on_front"] <= 1 for member in known["pareto"])
    unknown = result.summary()
    assert all(member["probability_on_front"] is None for member in unknown["pareto"])
    assert unknown["ratios_unknown"] == {
        name: f"{name} is uncalibrated" for name in ("prefill.ttft_ms", "decode.tbt_ms")
    }
    rows = json.loads(json.dumps(comparisons(result)))
    times = [row for row in rows if row["objective"] == "decode.tbt_ms"]
    assert times and all(row["ratio_interval_80"] is row["probability_better"] is None for row in times)
    assert all(row["unknown"] == "decode.tbt_ms is uncalibrated" for row in times)


def test_members_of_the_front_are_as_probable_whenever_they_are_asked(calibrated):
    again = replace(calibrated)
    np.testing.assert_array_equal(calibrated.probability_on_front, again.probability_on_front)
    assert set(on_front(calibrated)) == set(chosen_designs(calibrated)["letter"]) - {""}
    (note,) = front_note(calibrated)
    assert note.startswith(f"Of {len(calibrated.front)} Pareto designs ")


def test_a_sweep_whose_baseline_has_no_result_compares_the_designs_alone(calibrated):
    alone = replace(calibrated, baseline=calibrated.baseline.assign(die_mm2=np.nan))
    assert len(alone.ratio_errors[0].values) == len(alone.front)
    assert BASELINE not in set(chosen_ratios(alone)["against"])
    assert ratios_section(alone) == ""


def test_page_and_terminal_tell_who_is_better_how_probably(result, calibrated):
    page = ratios_section(calibrated)
    assert "How sure the order is" in page and "on the front" in page
    assert ratios_section(result) != ""  # the area alone
    console = Console(file=io.StringIO(), width=200)
    print_front(calibrated, console)
    text = console.file.getvalue()
    assert "A is better than the base: prefill.ttft_ms" in text and "; on the front" in text


def test_costs_follow_the_area_and_results_of_the_base_are_constants(calibrated):
    texts = ("die_usd", "die_usd + memory_usd", "decode.tbt_ms / base.decode.tbt_ms", "total.time_ms", "decode.dram_gb")
    asked = tuple(Objective(text, "", "minimize", parse_expression(text, "test")) for text in texts)
    front = calibrated.front.assign(**{text: 1.0 for text in texts if text not in calibrated.front})
    base = calibrated.baseline.assign(**{text: 1.0 for text in texts if text not in calibrated.baseline})
    space = replace(calibrated.space, objectives=asked)
    dies, prices, times, total, bytes_ = replace(calibrated, space=space, front=front, baseline=base).ratio_errors
    places = np.arange(1, len(front) + 1)
    spread, area = dies.spread(0, places), calibrated.ratio_errors[2].spread(0, places)
    assert (spread >= area).all() and spread.max() > 1.2 * area.max()  # yields fall, too
    assert (prices.spread(0, places) <= spread).all()  # the memory's price is as stated
    np.testing.assert_allclose(times.spread(0, places), calibrated.ratio_errors[1].spread(0, places), rtol=1e-6)
    assert 0 < total.spread(0, places).max() <= 1
    assert bytes_.reason == "decode.dram_gb is uncalibrated"

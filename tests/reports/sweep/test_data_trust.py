"""How sure the answer is, as the page and the terminal say it."""

from dataclasses import replace

import numpy as np

from dse.base.uncertainty import Uncertainty
from dse.evaluate.trust import DENSE_ALONE, Trust
from dse.reports.sweep.data_trust import SHARED_ERRORS, _like, like_baseline, trust_notes, with_interval
from tests.evaluate.test_trust import Measured


def test_only_area_has_an_interval_and_the_rest_says_uncalibrated(result):
    assert [o.name for o, _ in with_interval(result.space)] == ["die_mm2"]
    notes = trust_notes(result)
    assert notes[0].startswith("Die area: 80 % of measured values lie −8 to +6 % from the predicted")
    assert notes[2] == "No interval, since uncalibrated: prefill time to first token and decode time between tokens."
    assert len(notes) == 3  # nothing lies beyond what no interval is said of


def test_a_space_without_any_interval_says_so(result):
    times = replace(result, space=replace(result.space, objectives=result.space.objectives[:2]))
    assert with_interval(times.space) == []
    assert trust_notes(times) == [
        "No interval, since uncalibrated: prefill time to first token and decode time between tokens."
    ]


def test_designs_like_the_baseline_are_those_within_the_interval_of_the_ratio(result):
    ((objective, trust),) = with_interval(result.space)
    base = float(result.baseline[objective.name].iloc[0])
    ratio = result.front[objective.name].to_numpy(float) / base
    width = np.exp(np.hypot(np.log(trust.uncertainty.low), np.log(trust.uncertainty.high)))
    near = (ratio <= width) & (ratio >= 1 / width)
    assert 0 < near.sum() < len(near)
    np.testing.assert_array_equal(like_baseline(result, objective, trust), near)
    assert f"{near.sum()} of {len(near)} Pareto designs" in trust_notes(result)[0]
    assert trust_notes(result)[1] == SHARED_ERRORS


def test_what_designs_share_is_told_only_where_some_cannot_be_told_apart(result):
    far = result.front.assign(die_mm2=result.front["die_mm2"] * 10)
    assert SHARED_ERRORS not in trust_notes(replace(result, front=far))


def test_a_calibrated_model_gives_times_an_interval_and_says_what_it_extrapolates(result):
    calibrated = replace(result, space=replace(result.space, model=Measured()))
    notes = trust_notes(calibrated)
    assert sum("80 % of measured values lie −10 to +20 %" in note for note in notes) == 2
    assert not any("uncalibrated" in note for note in notes)
    assert any(note.startswith("Times were measured on h100_sxm; beyond") for note in notes)


def test_the_document_holds_the_intervals(result):
    intervals = result.summary()["intervals"]
    assert intervals["prefill.ttft_ms"] is None
    assert intervals["die_mm2"]["share"] == 0.8 and intervals["die_mm2"]["low"] < 1 < intervals["die_mm2"]["high"]


def test_an_interval_that_leaves_out_experts_tells_no_designs_apart(result):
    trust = Trust(Uncertainty(0.9, 1.1, "made up", ("h100_sxm",)), scope=DENSE_ALONE)
    assert "tells no designs apart" in _like(result, result.space.objectives[0], trust)

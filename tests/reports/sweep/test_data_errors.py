"""How sure the answer is, as the page and the terminal say it."""

from dataclasses import replace

import numpy as np

from dse.base.error_interval import ErrorInterval
from dse.evaluate.metric_error import DENSE_ALONE, MetricError
from dse.reports.sweep.data_errors import _like, error_notes, like_baseline, with_interval
from dse.reports.sweep.data_ratios import ORDER
from tests.evaluate.test_metric_error import Measured


def test_only_area_has_an_interval_and_the_rest_says_uncalibrated(result):
    assert [o.name for o, _ in with_interval(result.space)] == ["die_mm2"]
    notes = error_notes(result)
    assert notes[0].startswith("Die area: 80 % of measured values lie −8 to +8 % from the predicted")
    assert notes[2] == "No interval, since uncalibrated: prefill time to first token and decode time between tokens."
    assert len(notes) == 3  # no order of fronts, and nothing lies beyond what no interval is said of


def test_a_space_without_any_interval_says_so(result):
    times = replace(result, space=replace(result.space, objectives=result.space.objectives[:2]))
    assert with_interval(times.space) == []
    assert error_notes(times) == [
        "No interval, since uncalibrated: prefill time to first token and decode time between tokens."
    ]


def test_designs_like_the_baseline_are_those_whose_interval_of_the_ratio_holds_one(result):
    ((objective, _),) = with_interval(result.space)
    found, near = like_baseline(result, objective), result.ratio_errors[2]
    spans = [near.ratio_interval(0, place) for place in range(1, len(result.front) + 1)]
    np.testing.assert_array_equal(found, [low <= 1 <= high for low, high in spans])
    assert found.sum() < len(found)
    assert (f"{found.sum()} of {len(found)} Pareto designs" in error_notes(result)[0]) == found.any()
    assert error_notes(result)[1] == ORDER


def test_nothing_is_said_of_the_order_where_no_objective_has_errors(result):
    times = replace(result, space=replace(result.space, objectives=result.space.objectives[:2]))
    assert ORDER not in error_notes(times)


def test_a_calibrated_model_gives_times_an_interval_and_says_what_it_extrapolates(result):
    calibrated = replace(result, space=replace(result.space, model=Measured()))
    notes = error_notes(calibrated)
    assert sum("80 % of measured values lie −10 to +20 %" in note for note in notes) == 2
    assert not any("uncalibrated" in note for note in notes)
    assert any(note.startswith("Times were measured on h100_sxm; beyond") for note in notes)


def test_the_document_holds_the_intervals(result):
    intervals = result.summary()["intervals"]
    assert intervals["prefill.ttft_ms"] is None
    assert intervals["die_mm2"]["share"] == 0.8 and intervals["die_mm2"]["low"] < 1 < intervals["die_mm2"]["high"]


def test_an_interval_that_leaves_out_experts_tells_no_designs_apart(result):
    metric_error = MetricError(ErrorInterval(0.9, 1.1, "made up", ("h100_sxm",)), scope=DENSE_ALONE)
    assert "tells no designs apart" in _like(result, result.space.objectives[0], metric_error)

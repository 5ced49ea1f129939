"""What each axis does, and where on it the front sits."""

from dataclasses import replace

import pytest

from dse.grid.result import SweepResult
from dse.reports.sweep.data_axes import axis_effect, front_places, piled_up


def test_axis_effect_meets_the_baseline(result: SweepResult) -> None:
    frame = axis_effect(result)
    assert set(frame["axis"]) == {"tensor_fma_bf16", "sm_count", "dram_bandwidth_gbs"}
    assert frame["paired"].isna().all()
    for objective in result.space.objectives:
        here = frame[(frame["axis"] == "sm_count") & (frame["number"] == 132) & (frame["objective"] == objective.name)]
        assert here["at_baseline"].iloc[0] == pytest.approx(result.baseline[objective.name].iloc[0], rel=1e-5)


def test_places_count_the_front(result: SweepResult, maximised: SweepResult) -> None:
    for one in (result, maximised):
        frame = front_places(one)
        sums = frame.groupby("axis")["designs"].sum()
        assert (sums == len(one.front)).all()
        assert frame.groupby("axis")["share"].sum().to_numpy() == pytest.approx(1.0)
    part = front_places(result).query("axis == 'sm_count'")
    assert part["number"].tolist() == [96, 108, 120, 132, 144]
    assert part["designs"].tolist() == [(result.front["sm_count"] == n).sum() for n in part["number"]]


def test_a_front_at_an_end_is_reported(result: SweepResult) -> None:
    lowest = result.front[result.front["sm_count"] == 96]
    other = result.front[result.front["sm_count"] == 120].iloc[:1]
    one = replace(result, front=lowest)
    assert "100 % of the Pareto set has the lowest sm_count (96 SM)" in piled_up(one)
    assert not [text for text in piled_up(replace(result, front=other)) if "sm_count" in text]
    assert piled_up(replace(result, front=result.front.iloc[:0])) == []

"""What looking into the chosen designs found, as the data of figures."""

import numpy as np
import pytest

from dse.explanation.explain import explain
from dse.grid.result import SweepResult
from dse.reports.sweep.data import REST, SMALL_SHARE, chosen_designs
from dse.reports.sweep.data_explanations import MOST_BARS, power_stacks, roof_line, slope_bars
from dse.reports.sweep.design_explanations import DesignExplanations, design_name


def test_power_stacks_lose_nothing(explanations: DesignExplanations) -> None:
    frame = power_stacks(explanations)
    assert frame.groupby(["workload", "name"])["share"].sum().to_numpy() == pytest.approx(1.0)
    assert frame["watts"].sum() == pytest.approx(explanations.watts["watts"].sum())
    largest = frame.groupby(["workload", "component"])["share"].max().drop(REST, level=1)
    assert (largest >= SMALL_SHARE).all()


def test_slopes_are_those_of_explain(pair: SweepResult, explanations: DesignExplanations) -> None:
    workload = pair.space.workloads[0]
    explanation = explain(pair.space.base, workload, pair.space.model, pair.space.power)
    elasticities = explanation.elasticities.set_index(["attribute", "metric"])["elasticity"]
    slopes = explanations.slopes.query("letter == '' and metric == 'TTFT'").set_index("attribute")
    for attribute in ("tensor_fma_bf16", "dram_bandwidth_gbs", "l2_clock_mhz"):
        assert slopes["elasticity"][attribute] == pytest.approx(elasticities[attribute, "ttft_ms"], rel=1e-3, abs=1e-6)
    row = explanation.steps.query("attribute == 'tensor_fma_bf16' and metric == 'ttft_ms'").iloc[0]
    step = np.log1p(row["change"]) / np.log(row["after"] / row["before"])
    assert slopes["step"]["tensor_fma_bf16"] == pytest.approx(step, rel=1e-3)
    assert step < -0.1


def test_tornado_is_steepest_first(pair: SweepResult, explanations: DesignExplanations) -> None:
    frame = slope_bars(explanations)
    assert frame["attribute"].nunique() <= MOST_BARS
    assert set(frame["panel"]) == {"prefill: TTFT", "prefill: energy"}
    shown = frame[frame["letter"].isin(["", "A"])]
    steepest = shown.groupby("attribute", sort=False)["step"].agg(lambda step: step.abs().max())
    assert (np.diff(steepest.to_numpy()) <= 0).all()
    names = {design_name(row) for _, row in chosen_designs(pair).iterrows()}
    assert set(frame["name"]) == names


def test_a_roof_turns_at_the_ridge() -> None:
    assert roof_line(1000.0, 2000.0, 1.0, 4000.0) == ([1.0, 500.0, 4000.0], [2.0, 1000.0, 1000.0])
    assert roof_line(1000.0, 2000.0, 1.0, 100.0)[1] == [2.0, 200.0, 200.0]

"""What looking into the chosen designs found, as the data of figures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dse.explanation.explain import explain
from dse.grid.result import SweepResult
from dse.reports.sweep.data import REST, SMALL_SHARE, chosen_designs
from dse.reports.sweep.data_explanations import (
    MOST_BARS,
    limit_sentences,
    limits_document,
    power_stacks,
    roof_line,
    slope_bars,
)
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


def test_a_tornado_of_nothing_has_no_bars(explanations: DesignExplanations) -> None:
    empty = explanations.slopes.iloc[:0].astype({"text": float})  # as pandas makes the column where no design runs
    assert slope_bars(replace(explanations, slopes=empty)).empty


def test_a_roof_turns_at_the_ridge() -> None:
    assert roof_line(1000.0, 2000.0, 1.0, 4000.0) == ([1.0, 500.0, 4000.0], [2.0, 1000.0, 1000.0])
    assert roof_line(1000.0, 2000.0, 1.0, 100.0)[1] == [2.0, 200.0, 200.0]


@pytest.fixture
def limits() -> DesignExplanations:
    """Three designs: one that throttles, one that may, one that does not."""
    empty = pd.DataFrame()
    rows = pd.DataFrame(
        {
            "letter": ["", "A", "B"],
            "name": ["H100", "A  best prefill", "B  best decode"],
            "workload": ["prefill", "prefill", "decode"],
            "throttles": ["open", "yes", "no"],
            "clock_low": [0.84, 0.6, 1.0],
            "clock_high": [1.0, 0.8, 1.0],
            "faster": [0.98, 0.9, 1.0],
            "slower": [1.12, 1.2, 1.0],
        }
    )
    return DesignExplanations(empty, empty, empty, empty, rows)


def test_what_is_open_comes_first_and_what_never_throttles_is_not_named(limits: DesignExplanations) -> None:
    open_, held = limit_sentences(limits)
    assert open_.startswith("It is open whether") and "H100 in prefill (84 to 100 % of the clock" in open_
    assert held == (
        "These throttle at their power limit: A best prefill in prefill (60 to 80 % of the clock by the error of its "
        "watts)."
    )
    assert limit_sentences(replace(limits, limits=limits.limits[limits.limits["throttles"] == "no"])) == []


def test_the_document_has_a_record_of_each_that_throttles_or_may(limits: DesignExplanations) -> None:
    records = limits_document(limits)
    assert [(record["name"], record["throttles"]) for record in records] == [
        ("H100", "open"),
        ("A  best prefill", "yes"),
    ]

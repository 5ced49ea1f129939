"""Power, rooflines and slopes of the chosen designs agree with the sweep and with each other."""

import numpy as np
import pytest

from dse.grid.result import SweepResult
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.design_explanations import DesignExplanations, explain_designs


def test_watts_are_the_sweeps(pair: SweepResult, explanations: DesignExplanations) -> None:
    chosen = chosen_designs(pair)
    sums = explanations.watts.groupby(["workload", "letter"])["watts"].sum()
    for workload in pair.space.workloads:
        for _, design in chosen.iterrows():
            watts = sums[workload.name, design["letter"]]
            assert watts == pytest.approx(design[f"{workload.name}.power_w"], rel=1e-3)


def test_kernels_lie_under_their_own_roofs(pair: SweepResult, explanations: DesignExplanations) -> None:
    points = explanations.roofline
    assert set(points["letter"]) == set(chosen_designs(pair)["letter"])
    assert (points["tflops"] <= 1.001 * points["peak_tflops"]).all()
    assert (points.groupby(["workload", "name"])["share"].sum() <= 1 + 1e-6).all()
    base = explanations.roofs.query("letter == '' and unit == 'tensor bf16'").iloc[0]
    numbers = pair.space.base.numbers()
    assert base["slope_gbs"] == pytest.approx(numbers["dram_bandwidth_gbs"] * numbers["dram_sustained_fraction"])


@pytest.mark.slow
def test_a_baseline_that_cannot_run_is_left_out(without_baseline: SweepResult) -> None:
    explanations = explain_designs(without_baseline)
    assert explanations is not None
    for frame in (explanations.watts, explanations.roofline, explanations.roofs, explanations.slopes):
        assert "" not in set(frame["letter"])
    assert np.isfinite(explanations.slopes[["step", "elasticity"]].to_numpy(float)).all()


def test_limits_hold_the_predicted_time(pair: SweepResult, explanations: DesignExplanations) -> None:
    limits = explanations.limits
    assert len(limits) == len(chosen_designs(pair)) * len(pair.space.workloads)
    assert (limits["faster"] <= 1).all() and (limits["slower"] >= 1).all()
    assert ((limits["clock_low"] < 0.99) == (limits["throttles"] != "no")).all()

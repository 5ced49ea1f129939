"""Costs that runs tell only together are named, and those that they tell apart are not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dse.base.skipped_rows import Skipped
from dse.calibration.engine.calibrate import calibrate_engine
from dse.calibration.engine.fit import fit_costs
from dse.calibration.engine.identifiable import untold
from dse.hardware.presets import load_sheet
from dse.measured.network_runs.rows import Passes, network_rows, predicted_runs
from dse.timing.calibration import load_timing_calibration
from dse.workload.serving_engine import COSTS, engines

KNOWN = dict.fromkeys(COSTS, 0.0) | {"launch_us": 22.2, "step_us": 2650.0, "request_us": 60.0}
FREE = ("launch_us", "step_us", "request_us")
EAGER = engines()["vllm_2023_h100_host"]
SLOW = replace(EAGER, launch_us=29.0, step_us=1200.0)
DEVICE = "H100-SXM5-80GB"


def decodes(launches, gpu_us=5000.0, rows=60):
    """A decode each of ``rows`` runs: steps of so many launches, whose kernels take ``gpu_us``."""
    rng, row = np.random.default_rng(0), np.arange(rows)
    none = np.zeros(rows)
    requests = rng.integers(1, 64, rows).astype(float)
    return Passes(
        row, gpu_us * np.ones(rows), rng.choice(launches, rows), requests, none, none, np.ones(rows), none > 0
    )


def told(passes, costs=KNOWN, free=FREE):
    measured = np.bincount(passes.row, passes.total_us(KNOWN)) * np.exp(np.random.default_rng(1).normal(0, 0.02, 60))
    return untold(passes, measured, passes.row, costs, free)


def test_launches_and_steps_are_told_together_where_all_steps_have_as_many():
    both = told(decodes([451.0]))
    assert both == dict.fromkeys(("launch_us", "step_us"), "the runs tell only 451 launch_us + step_us")
    assert told(decodes([450.0, 452.0])).keys() == both.keys()  # nearly as many
    assert told(decodes([250.0, 450.0, 900.0])) == {}
    assert told(decodes([451.0]), free=("step_us", "request_us")) == {}


def test_launches_that_a_slower_gpu_hides_are_not_told():
    hidden = told(decodes([250.0, 450.0], gpu_us=1e5), KNOWN | {"launch_us": 30.0})
    assert hidden["launch_us"] == "no run takes longer by it than its error is"


def test_what_is_told_is_the_truth_and_what_is_not_stays_near_what_is_known():
    passes = decodes([451.0])
    measured = np.bincount(passes.row, passes.total_us(KNOWN))
    found = fit_costs(passes, measured, FREE)
    assert 451 * found["launch_us"] + found["step_us"] == pytest.approx(451 * 22.2 + 2650, rel=1e-3)
    assert set(untold(passes, measured, passes.row, found, FREE)) == {"launch_us", "step_us"}


@pytest.mark.parametrize(
    ("networks", "both"),
    [(["Llama-2-7b-hf"], True), pytest.param(["Llama-2-7b-hf", "Llama-2-13b-hf"], False, marks=pytest.mark.slow)],
)
def test_an_engine_of_one_network_says_that_launches_and_steps_are_one(tmp_path, networks, both):
    shapes = [(b, q, o, tp) for b in (1, 2, 8, 32) for q, o in ((128, 64), (512, 256)) for tp in (1, 2)]
    frame = pd.DataFrame(shapes * len(networks), columns=["batch", "seq_q", "seq_kv", "tp"]).astype(float)
    frame["group"] = np.repeat([f"x_{network}" for network in networks], len(shapes))
    frame = frame.assign(device=DEVICE, op="llm_e2e", dtype="bf16", latency_us=1.0)
    if both:
        frame = frame[frame["tp"] == 1].reset_index(drop=True)
    rows = network_rows(frame, load_sheet(DEVICE), Skipped(), SLOW)
    assert rows is not None
    times = predicted_runs(load_timing_calibration("h100_sxm").model, rows)[0]["predicted_us"]
    path = tmp_path / "runs.csv"
    frame.assign(latency_us=times).to_csv(path, index=False)
    answer = calibrate_engine("mine", [path], EAGER.name)
    costs = {cost["name"]: cost for cost in answer.document()["costs"]}
    assert costs["launch_us"]["determined"] == costs["step_us"]["determined"] == (not both)
    assert all(costs[name]["determined"] for name in ("request_us", "reduce_us") if networks[1:])
    if not both:
        assert costs["launch_us"]["value"] == pytest.approx(SLOW.launch_us, rel=0.02)
        assert costs["step_us"]["value"] == pytest.approx(SLOW.step_us, rel=0.02)
        return
    launch, step = (costs[name] for name in ("launch_us", "step_us"))
    assert launch["note"] == step["note"]
    assert launch["note"].startswith("the runs tell only sums of launch_us, step_us")
    assert step["low"] == step["value"] == step["high"]
    assert 322 * launch["value"] + step["value"] == pytest.approx(322 * SLOW.launch_us + SLOW.step_us, rel=0.02)

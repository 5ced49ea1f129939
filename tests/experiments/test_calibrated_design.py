"""Experiment 016: its data functions, on designs whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from experiments.common.modules import experiment


@pytest.fixture(scope="module")
def run():
    return experiment("016_calibrated_design")


def designs(prefill, decode, area) -> pd.DataFrame:
    frame = pd.DataFrame({"prefill.ttft_ms": prefill, "decode.tbt_ms": decode, "die_mm2": area}, dtype=float)
    return frame.assign(
        **dict.fromkeys(
            (
                "tensor_fma_bf16",
                "sm_count",
                "l2_mib",
                "dram_bandwidth_gbs",
                "tensor_clock_mhz",
                "l2_slice_bytes_per_cycle",
            ),
            np.arange(len(frame)),
        )
    )


BASELINES = pd.DataFrame(
    {name: {"prefill.ttft_ms": 10.0, "decode.tbt_ms": 10.0, "die_mm2": 100.0} for name in ("published", "calibrated")}
)


def test_equal_answers_lose_nothing(run):
    same = designs([10, 8, 9, 12], [10, 9, 8, 12], [60, 60, 60, 60])
    found = run.fronts(same, same)
    assert found["members of both"] == found["published front"] == 2
    assert found["hypervolume kept [%]"] == pytest.approx(100)
    assert found["published members: beyond the front, most [%]"] == 0
    assert (run.regrets(same, same, BASELINES) == 0).all(axis=None)


def test_a_reversed_answer_is_all_regret(run):
    published = designs([5, 10], [5, 10], [100, 100])
    calibrated = designs([10, 5], [10, 5], [100, 100])
    found = run.fronts(published, calibrated)
    assert found["members of both"] == 0
    assert found["published members: beyond the front, mean [%]"] == pytest.approx(100)
    chosen = run.choices(published, calibrated, BASELINES)
    assert chosen.loc[("both alike", "published"), "regret [%]"] == pytest.approx(100)
    assert chosen.loc[("both alike", "published"), "true rank"] == 2
    assert chosen.loc[("both alike", "calibrated"), "regret [%]"] == 0
    table = run.ranks(published, calibrated, BASELINES)
    assert table["spearman"].tolist() == pytest.approx([-1, -1])


def test_the_area_limit_binds(run):
    frame = designs([5, 9], [5, 9], [120, 90])
    assert run.choices(frame, frame, BASELINES).loc[("both alike", "published"), "sm_count"] == 1
    assert run.choices(frame, frame, BASELINES, 1.3).loc[("both alike", "published"), "sm_count"] == 0


def test_both_answers_are_to_the_same_question(run):
    published, calibrated = (run.question(timing) for timing in run.TIMINGS.values())
    assert published.size == calibrated.size == 20_160
    assert (published.model.calibration, calibrated.model.calibration) == ("uncalibrated", "shared")

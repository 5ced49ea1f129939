"""What follows from time, energy and clock of the phases of a workload, by hand."""

import pytest

from dse.space.metrics import energy_metrics, time_metrics
from dse.workload.workload import MemoryFootprint, Phase, Workload

PAIR = Workload("w", "", (), (Phase("prefill", 1.0), Phase("decode", 9.0)), MemoryFootprint(0.0, 0.0, 0.0), 2, 40.0)
TIMES = {"prefill": 100.0, "decode": 20.0}


def test_time_is_that_of_all_runs():
    found = time_metrics(PAIR, TIMES)
    assert found["time_ms"] == 100 + 9 * 20
    assert (found["ttft_ms"], found["tbt_ms"]) == (100, 20)
    assert found["tokens_per_s"] == pytest.approx(40 / 0.28)


def test_energy_is_that_of_all_boards_and_power_that_of_one():
    found = energy_metrics(PAIR, TIMES, {"prefill": (50.0, 0.8), "decode": (4.0, 0.9)})
    assert found["energy_j"] == 2 * (50 + 9 * 4)
    assert found["power_w"] == pytest.approx((50 + 9 * 4) / 0.28)
    assert found["clock_share"] == pytest.approx(0.8)
    assert found["joules_per_token"] == pytest.approx(172 / 40)
    assert found["tokens_per_joule"] == pytest.approx(40 / 172)

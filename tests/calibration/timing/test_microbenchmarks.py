"""What synthetic readings of microbenchmarks say of a launch and of latencies, and where a fit starts because of it."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.calibration.timing.microbenchmarks import fit_launch, latencies, launch_values, start_of
from dse.hardware.presets import preset_sheet
from dse.timing.launch import LaunchLatency
from dse.workload.microbenchmarks import CHASE, GRID, LINE, hops

TRUTH = LaunchLatency(0.0036, -0.0366, 1.1891, 2200.0)
CLOCK = 1.5
NOTES = f"sm_mhz={1e3 * CLOCK:.0f}"


def grids(noise: float = 0.0, threads: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)) -> pd.DataFrame:
    """Times of empty grids by Eq. 27 and 28."""
    rng, rows = np.random.default_rng(0), []
    for ctas in (1, 132, 1024, 4096, 16384, 65536):
        for count in threads:
            warps = count / 32
            cycles = TRUTH.k + (TRUTH.alpha * warps**2 + TRUTH.beta * warps + TRUTH.gamma) * ctas
            us = cycles / CLOCK / 1e3 * np.exp(noise * rng.standard_normal())
            rows.append({"op": GRID, "rows": ctas, "cols": count, "latency_us": us, "notes": NOTES})
    return pd.DataFrame(rows)


def chases() -> pd.DataFrame:
    """Times of rings on a GPU whose hops take 40 cycles in the L1, 260 in the L2 and 700 beyond."""
    numbers, rows = preset_sheet("h100_sxm").numbers(), []
    for power in range(13, 29):
        lines = 2**power // (4 * LINE)
        cycles = 40 if 2**power <= numbers["l1_kib"] * 2**10 else 260 if 2**power <= numbers["l2_mib"] * 2**20 else 700
        us = cycles * hops(lines) / CLOCK / 1e3
        rows.append({"op": CHASE, "rows": lines, "cols": LINE, "latency_us": us, "notes": NOTES})
    return pd.DataFrame(rows)


def test_the_coefficients_of_a_launch_are_recovered():
    found = fit_launch(grids(), CLOCK)
    for name in ("alpha", "beta", "gamma", "k"):
        assert getattr(found, name) == pytest.approx(getattr(TRUTH, name), rel=1e-6)
    noisy = fit_launch(grids(0.02), CLOCK)
    assert noisy.k == pytest.approx(2200, rel=0.02) and noisy.gamma == pytest.approx(1.19, rel=0.1)
    assert launch_values(found)["launch_gamma"] == pytest.approx(0.0036 * 64 - 0.0366 * 8 + 1.1891)


def test_one_block_size_does_not_tell_them_apart():
    with pytest.raises(InputError, match="do not tell a launch's four coefficients"):
        fit_launch(grids(threads=(256,)), CLOCK)


def test_latencies_are_those_of_the_cache_that_holds_the_ring():
    assert latencies(chases(), preset_sheet("h100_sxm"), CLOCK) == pytest.approx((40, 260, 700))


def test_a_fit_starts_from_what_the_grids_say_at_the_clock_of_their_notes():
    values, (launch, hop) = start_of(pd.concat([grids(), chases()]), preset_sheet("h100_sxm"))
    assert values["launch_k"] == pytest.approx(2200) and set(values) == {"launch_k", "launch_gamma"}
    assert "by 36 empty grids: 2200 cycles" in launch and "L1 40, L2 260, DRAM 700" in hop
    assert start_of(grids().head(0), preset_sheet("h100_sxm")) == ({}, [])

"""The board's power limit in measured times: none in short runs, the steady clock in long ones, and who feels it."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.protocol import protocols
from dse.measured.throttling import GOVERNOR_US, limited_times, slowdowns, watts_ends
from dse.measured.timed_rows import best, blocks
from dse.power.activity import activity
from dse.power.board import BoardPower
from dse.timing.calibration import load_timing_calibration
from tests.measured.large_product import LARGE, chosen
from tests.programs import quick_jit


def slower(
    preset: str, launches: float, run_us: float = 0.0, dtype: str = "fp16", drawn: float = 1.0, **shape: float
) -> float:
    model, one = chosen(preset, dtype, **shape)
    kernels = jax.tree.map(lambda x: np.asarray(x)[:, 0], one.kernels)
    return float(slowdowns(model, kernels, one.gpus, *(np.array([x]) for x in (launches, run_us, drawn)))[0])


def test_a_t4_at_its_70_watts():
    """24 TFLOP/s in a hundred products of 4096 (forums.developer.nvidia.com 264462), of 65 on the sheet."""
    frame = pd.DataFrame([LARGE | dict.fromkeys("mnk", 4096.0) | {"device": "T4", "dtype": "fp16", "source": ""}])
    (rows,) = blocks(frame, {"T4": load_sheet("t4")}, protocols()["unknown"], Skipped())
    time, _ = best(load_timing_calibration("shared").model, rows)
    assert 2e-6 * 4096**3 / time[0] == pytest.approx(24.0, rel=0.15)


def reached_us(preset: str, **shape: float) -> float:
    """When a board's mean watts reach its limit, as a run of four times the governor's time constant tells it."""
    whole, run_us = slower(preset, np.inf, **shape), 4 * GOVERNOR_US
    return run_us * (1 - (slower(preset, 0.0, run_us, **shape) - 1) / (whole - 1))


def test_a_run_that_ends_before_the_mean_reaches_the_limit_is_not_held():
    small = dict.fromkeys("mnk", 2048.0)
    whole, reached = slower("t4", np.inf, **small), reached_us("t4", **small)
    assert whole > 2.0
    assert slower("t4", 0.0, 0.99 * reached, **small) == 1.0
    assert slower("t4", 0.0, 3 * reached, **small) == pytest.approx(1 + (whole - 1) * 2 / 3, rel=1e-4)
    assert 1 < slower("t4", 10.0) < slower("t4", 25.0) < slower("t4", np.inf)


def test_a_reading_that_draws_less_than_its_kernel_is_held_less_and_later():
    settled = [slower("h100_sxm", np.inf, drawn=drawn) for drawn in (1.0, 0.9, 0.5)]
    assert settled[0] > settled[1] > settled[2] == 1.0
    run_us = 2 * reached_us("h100_sxm")
    whole, part = ((slower("h100_sxm", 0.0, run_us, drawn=d) - 1) / (settled[i] - 1) for i, d in enumerate((1.0, 0.9)))
    assert whole > part > 0


def test_a_board_is_held_less_and_more_at_the_ends_of_its_watts():
    low, high = (slower("h100_sxm", np.inf, drawn=drawn) for drawn in watts_ends())
    assert 1.0 <= low < slower("h100_sxm", np.inf) < high


def test_watts_that_are_not_sure_leave_open_whether_a_board_is_held():
    """Three rows: slowed at both ends of the watts, at the high one alone, at none."""
    held = limited_times(np.full(3, 100.0), np.full(3, 130.0), np.array([1.2, 1.0, 1.0]), np.array([1.5, 1.3, 1.0]))
    assert list(held["throttles"]) == ["yes", "open", "no"]
    assert list(held["low_power_us"]) == [100.0] * 3 and list(held["high_power_us"]) == [130.0] * 3


def test_products_of_zeros_are_held_less():
    """DeepBench's half-precision operands are zeros (its issue #104); its fp32 operands are not."""
    values, zeros = (factor("t4", source) for source in ("neusight", "deepbench"))
    assert 1.0 < zeros < 0.7 * values
    assert factor("v100_sxm2_16gb", "neusight") > 1.1
    assert factor("v100_sxm2_16gb", "deepbench") == 1.0


def factor(preset: str, source: str) -> float:
    """How much longer a board takes over a reading without end of a product, by who measured it."""
    model, one = chosen(preset, "fp16", source)
    kernels = jax.tree.map(lambda x: np.asarray(x)[:, 0], one.kernels)
    zeros = one.table["zeros"].to_numpy()
    return float(slowdowns(model, kernels, one.gpus, *(np.array([x]) for x in (np.inf, 0.0, 1.0)), zeros)[0])


def test_the_mean_reaches_the_limit_the_later_the_less_is_too_much():
    """An H100's products draw a fifth too much, a T4's several times what it may."""
    assert 0.1 * GOVERNOR_US < reached_us("t4") < 0.5 * GOVERNOR_US
    assert 1.0 * GOVERNOR_US < reached_us("h100_sxm") < 3 * GOVERNOR_US


@quick_jit
def drawn(model, board, kernel, gpu):
    """Watts of a kernel if nothing limits them, those that a board is held to, and those at rest."""
    timing = model(kernel, gpu)
    watts = board.uncapped(activity(kernel, timing, gpu), gpu).watts
    return watts, board.limit(gpu), board.idle(timing.clock_ghz, gpu).watts


def test_the_mean_climbs_from_what_the_board_draws_at_rest():
    """tau = G ln((P - P0) / (P - limit)): a board that drew nothing before would be held later."""
    small = dict.fromkeys("mnk", 2048.0)
    model, one = chosen("t4", **small)
    record = jax.tree.map(lambda x: jnp.asarray(x, float).reshape(-1)[0], (one.kernels, one.gpus))
    watts, limit, rest = map(float, drawn(model.anonymous(), BoardPower.from_table(), *record))
    assert 0.1 * limit < rest < limit
    expected = GOVERNOR_US * np.log((watts - rest) / (watts - limit))
    assert reached_us("t4", **small) == pytest.approx(expected, rel=0.01)


def test_a_board_with_watts_to_spare_is_not_held():
    """A GeForce's tensor cores work at half the rate with accumulators of 32 bits."""
    assert slower("rtx_3090", np.inf, dtype="bf16") == pytest.approx(1.0, abs=1e-3)
    assert slower("h100_sxm", np.inf, m=16.0) == pytest.approx(1.0, abs=1e-3)  # bytes bind
    assert 1.02 < slower("h100_sxm", np.inf) < 1.2

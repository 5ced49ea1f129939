"""Operation at the power limit: the clock that holds it, what slows down, and gradients through the solution."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.presets import preset_sheet
from dse.power.power import COMPONENTS, Power
from dse.power.power_limit import (
    CLOCKED,
    OFF_RAIL,
    ON_RAIL,
    SLOWEST,
    VoltageLine,
    at_clock,
    limited,
    shadow_of,
    sustain,
)
from dse.timing.calibration import load_timing_calibration
from dse.timing.timing import CAUSES, Timing
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.programs import quick_jit

WATTS = {"constant": 60.0, "static": 50.0, "pipeline": 200.0, "tensor": 600.0, "l2": 40.0, "dram": 100.0}


def power(**watts):
    return Power(**{name: jnp.asarray(watts.get(name, 0.0)) for name in COMPONENTS})


def timing(clock=1.8, **causes):
    fields = {cause: jnp.asarray(float(causes.get(cause, 0.0))) for cause in CAUSES}
    return Timing(**fields, clock_ghz=jnp.asarray(clock), feasible=jnp.asarray(1.0), dram_bytes=jnp.asarray(1e9))


def draw(slope=1.0, floor=0.5, requested=1.0):
    return VoltageLine(*(jnp.asarray(x) for x in (requested, slope, floor)))


jitted = quick_jit(sustain)


def run(limit, watts=WATTS, stack=None, law=None, width=0.01):
    stack = stack or timing(selected=1e6)
    return jitted(law or draw(), power(**watts), stack, jnp.asarray(limit), jnp.asarray(width))


def test_every_component_has_its_rail():
    assert sorted(("constant", "static", *CLOCKED, *ON_RAIL, *OFF_RAIL)) == sorted(COMPONENTS)


def test_far_below_the_limit_nothing_changes():
    with jax.enable_x64(True):
        found = run(5000.0)
        assert float(found.clock) == 1.0
        assert float(found.power.watts) == pytest.approx(sum(WATTS.values()))


def test_far_above_it_the_board_draws_the_limit():
    with jax.enable_x64(True):
        found = run(700.0)
        assert float(found.power.watts) == pytest.approx(700.0, abs=0.01)
        assert 0.7 < float(found.clock) < 0.95


def test_leakage_follows_the_square_of_the_voltage():
    with jax.enable_x64(True):
        found = run(60.0, {"static": 100.0, "constant": 20.0}, law=draw(slope=1.0, floor=0.1), width=1e-4)
        assert float(found.power.static) == pytest.approx(100.0 * float(found.clock) ** 2, rel=1e-6)
        assert float(found.power.watts) == pytest.approx(60.0, rel=1e-3)


def test_watts_within_the_limit_are_those_of_the_operating_point():
    with jax.enable_x64(True):
        for limit in (700.0, 1045.0, 5000.0):
            expected = limited(jnp.asarray(sum(WATTS.values())), jnp.asarray(limit), jnp.asarray(0.01))
            assert float(run(limit).power.watts) == pytest.approx(float(expected), rel=1e-6)


def test_the_clock_follows_the_cube_where_voltage_follows_the_clock():
    with jax.enable_x64(True):
        found = run(500.0, {"tensor": 1000.0}, width=1e-4)
        assert float(found.clock) == pytest.approx(0.5 ** (1 / 3), rel=1e-6)  # P ~ f V^2 with V ~ f
        assert float(found.timing.nanoseconds) == pytest.approx(1e6 / 1.8 / float(found.clock))


def test_below_the_lowest_voltage_power_follows_the_clock():
    with jax.enable_x64(True):
        found = run(400.0, {"tensor": 1000.0}, law=draw(floor=1.0), width=1e-4)
        assert float(found.clock) == pytest.approx(0.4, rel=1e-6)


def test_a_board_that_leaks_more_than_its_limit_runs_at_the_lowest_clock():
    found = run(50.0)
    assert float(found.clock) == pytest.approx(SLOWEST)
    assert float(found.power.watts) > 50


def test_bytes_from_dram_keep_their_pace():
    with jax.enable_x64(True):
        stack = timing(selected=2e5, dram_bandwidth=8e5)
        slower = at_clock(stack, jnp.asarray(0.8), shadow_of(stack))
        assert float(slower.nanoseconds) == pytest.approx(1e6 / 1.8)  # what the SMs do grows in the bytes' shadow
        assert float(slower.selected / slower.clock_ghz) == pytest.approx(2e5 / 0.8 / 1.8)
        assert float(slower.dram_bytes) == float(stack.dram_bytes)
        # The same power held costs a memory-bound launch less time.
        held = [run(500.0, stack=s).timing.nanoseconds / s.nanoseconds for s in (stack, timing(selected=1e6))]
        assert 1 <= float(held[0]) < float(held[1])


def test_work_in_the_shadow_of_dram_shows_where_it_outlasts_the_bytes():
    """No clock computes faster than it can: below its crossing a launch takes as long as the SMs' cycles."""
    with jax.enable_x64(True):
        stack, watts = timing(selected=8e5, launch=5e4, dram_bandwidth=2e5, interconnect=1e5), WATTS | {"tensor": 900.0}
        crossing = 8e5 / 1e6
        clocks = []
        for limit in np.linspace(1400, 180, 60):
            found = run(limit, watts, stack, width=1e-4)
            clock = float(found.clock)
            by_hand = (5e4 / clock + 1e5 + max(8e5 / clock, 1e6)) / 1.8
            assert float(found.timing.nanoseconds) == pytest.approx(by_hand, rel=1e-9)
            assert float(found.power.watts) == pytest.approx(min(limit, sum(watts.values())), rel=1e-3)
            clocks.append(clock)
        assert clocks[0] == 1 > crossing > clocks[-1] > SLOWEST
        assert (np.diff(clocks) <= 1e-9).all()


def test_more_demand_is_never_faster_nor_draws_less():
    with jax.enable_x64(True):
        found = [run(700.0, WATTS | {"tensor": t}) for t in np.linspace(0, 3000, 61)]
        assert (np.diff([float(f.power.watts) for f in found]) >= -1e-7).all()
        assert (np.diff([float(f.clock) for f in found]) <= 1e-9).all()


@pytest.mark.parametrize("limit", [700.0, 1000.0, 1040.0, 1300.0])
def test_gradients_pass_through_the_solution(limit):
    """Clock, watts and time by every watt, the limit and the voltage law, the bend included: finite differences."""

    @jax.jit
    def found(x):
        watts = power(**dict(zip(WATTS, x, strict=False)))
        stack = timing(selected=6e5, dram_bandwidth=4e5)
        answer = sustain(VoltageLine(x[7], x[8], jnp.asarray(0.5)), watts, stack, x[6], jnp.asarray(0.01))
        return jnp.stack([answer.clock, answer.power.watts, answer.timing.nanoseconds])

    with jax.enable_x64(True):
        x = jnp.asarray([*WATTS.values(), limit, 0.95, 0.8])
        ours = np.asarray(quick_jit(jax.jacobian(found))(x))
        for i in range(len(x)):
            step = 1e-5 * x[i]
            theirs = (found(x.at[i].add(step)) - found(x.at[i].add(-step))) / (2 * step)
            np.testing.assert_allclose(ours[:, i], theirs, rtol=1e-4, atol=1e-7 * float(jnp.max(jnp.abs(found(x)))))


PRODUCTS = [(64, 4096, 4096), (128, 4096, 4096), (256, 8192, 8192), (128, 28672, 8192), (1024, 8192, 8192)]
"""From products that DRAM binds to those that the tensor cores bind, and between."""


@pytest.mark.parametrize(("preset", "worst"), [("a100_sxm_80gb", 0.04), ("h100_sxm", 0.05)])
def test_a_launch_at_a_lower_clock_takes_as_long_as_the_model_says_there(preset, worst):
    """AMALI itself, evaluated at 0.85 of all clocks, stands against what the stack at the asked clock foretells."""
    sheet, share = preset_sheet(preset), 0.85
    numbers, model = sheet.numbers(), load_timing_calibration(preset).model
    target = (numbers["compute_capability"],) * 2, numbers["warpgroup_mma"] > 0
    kernels = [[c.kernel for c in gemm_operator("g", Gemm(*shape), *target).candidates] for shape in PRODUCTS]
    kernels = Kernel.stack([kernel for each in kernels for kernel in each[:8]])

    @quick_jit
    def timed(scale):
        clocks = {name: scale * numbers[name] for name in ("boost_clock_mhz", "tensor_clock_mhz", "l2_clock_mhz")}
        gpu = replace(sheet.record(), **clocks)
        return jax.vmap(lambda kernel: model(kernel, gpu))(kernels)

    asked = timed(1.0)
    foretold = at_clock(asked, jnp.full(len(asked.cycles), share), shadow_of(asked)).nanoseconds
    off = np.asarray(foretold / timed(share).nanoseconds)[np.asarray(asked.feasible) > 0] - 1
    assert np.abs(off).max() < worst and np.abs(off).mean() < worst / 3

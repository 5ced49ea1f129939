"""Kernels one after another: mean power, energy, and the limit held by the mean."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dse.base.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.power.activity import activity, recorded_activity
from dse.power.models import PowerChoice, power_choice
from dse.power.power import Power
from dse.power.power_limit import at_clock, at_paces, shadow_between, shadow_of
from dse.power.sequence import LaunchSequence, in_sequence
from dse.timing.amali import Amali
from dse.timing.timing import Timing
from dse.timing.traced.models import on_trace
from dse.timing.traced.operation_counts import operation_counts
from dse.timing.traced.trace_profile import traced_workload
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.serving_engine import Host
from tests.programs import quick_jit
from tests.traces.traces import kernel_text, write_directory

H200 = preset_sheet("h200").numbers()
CHOICE = power_choice("board", "here")


SHAPES = (Gemm(8192, 8192, 8192), Gemm(16, 8192, 8192))
"""A GEMM that the tensor cores bind, and one that DRAM binds."""

KERNELS = Kernel.stack(
    [next(c.kernel for c in gemm_operator("g", g).candidates if "wgmma" in c.label) for g in SHAPES]
).as_arrays()


def record(numbers) -> Gpu:
    return Gpu.from_attributes({name: jnp.asarray(value, float) for name, value in numbers.items()})


@jax.jit
def program(gpu: Gpu) -> tuple[Timing, Power]:
    """One program for every design."""

    def one(kernel: Kernel) -> tuple[Timing, Power]:
        timing = Amali()(kernel, gpu)
        return timing, CHOICE.model.uncapped(activity(kernel, timing, gpu), gpu)

    return jax.vmap(one)(KERNELS)


def judged(numbers=H200) -> tuple[Timing, Power]:
    """Timing and power of KERNELS on a design."""
    return program(record(numbers))


@partial(jax.jit, static_argnames="limit")
def in_turn(timing: Timing, power: Power, repeats: Array, gpu: Gpu, limit: bool) -> LaunchSequence:
    return in_sequence(PowerChoice(CHOICE.model, limit), timing, power, repeats, gpu)


def sequence(repeats, numbers=H200, limit: bool = True) -> LaunchSequence:
    return in_turn(*judged(numbers), jnp.asarray(repeats, float), record(numbers), limit)


def test_without_a_limit_time_and_energy_add_up() -> None:
    timing, power = judged()
    found = sequence([2.0, 5.0], limit=False)
    times = np.array([2.0, 5.0]) * np.asarray(timing.nanoseconds)
    assert float(found.nanoseconds) == pytest.approx(times.sum(), rel=1e-5)
    assert float(found.joules) == pytest.approx(float((times * np.asarray(power.watts)).sum()) * 1e-9, rel=1e-5)
    assert float(found.clock) == 1


def test_the_limit_holds_for_the_mean_and_slows_what_follows_the_clock() -> None:
    low = H200 | {"tdp_w": 400.0}
    found, free = sequence([3.0, 3.0], low), sequence([3.0, 3.0], low, limit=False)
    assert float(free.power.watts) > 400
    assert float(found.power.watts) == pytest.approx(0.99 * 400, rel=0.02)
    share = float(found.clock)
    assert 0.15 < share < 1
    for cause, cycles in found.stack.items():
        if cause != "dram_bandwidth":
            assert float(cycles) == pytest.approx(float(free.stack[cause]) / share, rel=1e-4, abs=1e-3)
    timing, _ = judged(low)  # the bytes keep their pace, each launch's own work grows in their shadow
    longer = [at_clock(t, found.clock, shadow_of(t)) for t in each(timing)]
    hidden = sum(float(t.dram_bandwidth / t.clock_ghz) for t in longer)
    assert float(found.stack["dram_bandwidth"]) == pytest.approx(3 * hidden, rel=0.02)


def each(timing: Timing) -> list[Timing]:
    """The launches one by one."""
    return [jax.tree.map(lambda x, k=k: x[k], timing) for k in range(len(timing.cycles))]


def test_launches_in_the_shadow_of_dram_add_up_one_by_one() -> None:
    """Far below the clock that was asked for, too: the time is each launch's own, and the board draws no more."""
    for watts in (350.0, 250.0, 180.0):
        low = H200 | {"tdp_w": watts}
        found, (timing, _) = sequence([1.0, 200.0], low), judged(low)
        held = [at_clock(t, found.clock, shadow_between(at_paces(t))).nanoseconds for t in each(timing)]
        assert float(found.nanoseconds) == pytest.approx(float(held[0] + 200 * held[1]), rel=1e-4)
        exact = [at_clock(t, found.clock, shadow_of(t)).nanoseconds for t in each(timing)]
        assert 0.9999 < float(found.nanoseconds) / float(exact[0] + 200 * exact[1]) < 1.02
        assert float(found.power.watts) == pytest.approx(0.99 * watts, rel=0.01)


def test_what_one_kernel_leaves_its_neighbours_may_draw() -> None:
    """A compute-bound kernel alone is over the limit; with memory-bound ones around it the mean is not."""
    _, power = judged()
    watts = np.asarray(power.watts)
    between = H200 | {"tdp_w": float(watts.mean())}
    alone, among = sequence([1.0, 0.0], between), sequence([1.0, 1000.0], between)
    assert float(alone.clock) < 0.97 < float(among.clock)


def test_a_batch_equals_single_designs() -> None:
    designs = [H200 | {"tdp_w": w, "sm_count": s} for w in (350.0, 700.0) for s in (96, 132)]
    parts = [judged(d) for d in designs]
    timing, power = (jax.tree.map(lambda *x: jnp.stack(x), *[p[k] for p in parts]) for k in (0, 1))
    gpus = Gpu.from_attributes({name: jnp.asarray([d[name] for d in designs], float) for name in H200})
    whole = in_turn(timing, power, jnp.asarray([1.0, 4.0]), gpus, limit=True)
    for number, design in enumerate(designs):
        assert float(whole.joules[number]) == pytest.approx(float(sequence([1.0, 4.0], design).joules), rel=1e-5)


def waited(repeats, host: Host | None, numbers=H200, limit: bool = True) -> LaunchSequence:
    timing, power = judged(numbers)
    return in_sequence(PowerChoice(CHOICE.model, limit), timing, power, jnp.asarray(repeats), record(numbers), host)


@pytest.mark.parametrize("limit", [True, False])
def test_a_gpu_that_waits_draws_what_it_does_between_kernels(limit: bool) -> None:
    low = H200 | {"tdp_w": 400.0}
    alone, host = sequence([3.0, 3.0], low, limit), Host(waits_us=2000.0)
    found = waited([3.0, 3.0], host, low, limit)
    assert float(found.stack["host"]) == 2e6
    assert float(found.nanoseconds) == pytest.approx(float(alone.nanoseconds) + 2e6, rel=1e-6)
    assert float(found.clock) == pytest.approx(float(alone.clock), rel=1e-6)  # the kernels alone hold the limit
    gpu, (timing, _) = record(low), judged(low)
    mean_clock = float(jnp.sum(timing.nanoseconds * timing.clock_ghz) / jnp.sum(timing.nanoseconds))
    idle = CHOICE.model.between_kernels(jnp.asarray(mean_clock) * alone.clock, gpu)
    assert {name for name, watts in idle.breakdown().items() if float(watts) > 0} == {"constant", "static", "idle_sm"}
    assert float(found.joules) == pytest.approx(float(alone.joules) + 2e-3 * float(idle.watts), rel=1e-5)
    assert float(idle.watts) < float(found.power.watts) < float(alone.power.watts)


def test_launches_beside_the_gpu_count_where_they_take_longer() -> None:
    alone = float(sequence([3.0, 3.0]).nanoseconds)
    for overlapped_us, wait in ((0.5e-3 * alone, 0.0), (2e-3 * alone, alone)):
        found = waited([3.0, 3.0], Host(overlapped_us=overlapped_us))
        assert float(found.stack["host"]) == pytest.approx(wait, rel=1e-5)
        assert Host(overlapped_us=overlapped_us).idle_us(alone / 1e3) == pytest.approx(wait / 1e3, rel=1e-5)


def test_without_a_host_nothing_is_added() -> None:
    timing, power = judged()
    alone = in_sequence(CHOICE, timing, power, jnp.asarray([3.0, 3.0]), record(H200))
    found = waited([3.0, 3.0], None)
    assert "host" not in found.stack
    assert all(bool(jnp.all(a == b)) for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(found), strict=True))


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_waiting_is_differentiable(share: float) -> None:
    beside = share * float(sequence([3.0, 3.0]).nanoseconds) / 1e3
    with jax.enable_x64(True):
        at, step = jnp.asarray(H200["tensor_clock_mhz"], float), 0.1
        slope = slopes_of_a_wait(at, beside)
        middle = (a_wait(at + step, beside) - a_wait(at - step, beside)) / (2 * step)
    assert np.isfinite(np.asarray(slope)).all()
    assert np.asarray(slope) == pytest.approx(np.asarray(middle), rel=1e-3, abs=1e-9)
    assert (float(slope[0]) == pytest.approx(0.0, abs=1e-9)) == (share > 1)  # the host's time hides the kernels'


def _a_wait(clock: Array, beside: Array) -> Array:
    gpu = replace(record(H200), tensor_clock_mhz=clock)
    found = in_sequence(CHOICE, *program(gpu), jnp.asarray([3.0, 3.0]), gpu, Host(beside, 100.0))
    return jnp.stack([found.nanoseconds * 1e-3, found.joules])


a_wait = quick_jit(_a_wait)
"""Time [us] and energy [J] of a sequence that runs beside ``beside`` us of its host."""

slopes_of_a_wait = quick_jit(jax.jacfwd(_a_wait))


def test_power_of_a_trace(tmp_path) -> None:
    chain = ["0010 ffffffff 1 R1 FFMA 1 R1 0"] * 400
    trace = traced_workload(write_directory(tmp_path, kernel_text([[chain] * 4] * 300, threads=128)), [H200]).recorded[
        0
    ]
    gpu = Gpu.from_numbers(H200)
    timing = on_trace(Amali(), trace, gpu)
    counts = recorded_activity(operation_counts(trace, gpu), timing, gpu)
    assert float(counts.fp32) == 32 * 400 * 4 * 300
    assert float(counts.instructions) == 400 * 4 * 300
    watts = CHOICE.model.uncapped(counts, gpu)
    assert float(watts.fp32) > 0 == float(watts.tensor)
    assert all(np.isfinite(float(value)) for value in watts.breakdown().values())


def test_choices() -> None:
    assert power_choice({"model": "board", "limit": False}, "here").limit is False
    with pytest.raises(InputError, match="no power model is called 'accelwatch'"):
        power_choice("accelwatch", "here")
    for wrong in (3, {"limit": 1}, {"modell": "board"}):
        with pytest.raises(InputError, match='give power = "board"'):
            power_choice(wrong, "here")

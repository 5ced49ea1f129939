"""The steps of an evaluation: arrays against calls of the scalar models, and a phase by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.steps import evaluate_kernel, launches, phase_metrics, phase_run, settle_phase, times
from dse.hardware.presets import load_gpu
from dse.power.board import BoardPower
from dse.power.power import Power
from dse.power.sequence import LaunchSequence
from dse.timing.roofline import Roofline
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from dse.workload.serving_engine import Host
from dse.workload.workload import MemoryFootprint, Phase, Workload

KERNELS = [
    gemm_operator("product", Gemm(4096, 4096, 4096), (8.0, 9.0)).candidates[0].kernel,
    vector_operator("add", "add", 1000, 1e4).candidates[0].kernel,
]
GPUS = [load_gpu("h100_sxm"), load_gpu("a100_sxm_80gb")]
KERNEL_BATCH = Kernel.stack(KERNELS)
GPU_BATCH = jax.tree.map(lambda *x: jnp.stack(x), *GPUS)


def test_times_are_those_of_each_kernel_on_each_gpu() -> None:
    found = times(Roofline(), KERNEL_BATCH, GPU_BATCH)
    plain = [[float(Roofline().nanoseconds(kernel, gpu)) for kernel in KERNELS] for gpu in GPUS]
    np.testing.assert_allclose(found, plain, rtol=1e-5)


def test_launches_are_those_of_the_scalar_models() -> None:
    power = BoardPower.from_table()
    timing, watts = launches(Roofline(), power, KERNEL_BATCH, GPUS[0])
    for place, kernel in enumerate(KERNELS):
        one = evaluate_kernel(Roofline(), power, kernel, GPUS[0])
        assert float(timing.cycles[place]) == pytest.approx(float(one[0].cycles), rel=1e-5)
        assert float(watts.watts[place]) == pytest.approx(float(one[1].watts), rel=1e-5)


def workload(**hosts: Host) -> Workload:
    """Return two GPUs' prefill of one operator and decode of another, which runs nine times."""
    kernel = Kernel(Interval(), Interval(), Interval())
    operators = tuple(
        Operator(phase, "gemm", (Candidate("", kernel),), repeats=3.0, phase=phase) for phase in ("prefill", "decode")
    )
    phases = tuple(Phase(name, runs, hosts.get(name, Host())) for name, runs in (("prefill", 1.0), ("decode", 9.0)))
    return Workload("w", "", operators, phases, MemoryFootprint(), 2, 40.0)


def test_a_phase_runs_its_operators_and_what_fills_up_never() -> None:
    repeats, host = phase_run(workload(), "decode", 4)
    assert repeats.tolist() == [0.0, 3.0, 0.0, 0.0]
    assert host is None
    _, host = phase_run(workload(decode=Host(2.0, 5.0)), "decode", 2)
    assert host is not None and [float(x) for x in host] == [2.0, 5.0]


def test_without_a_limit_a_phase_takes_the_sum_of_its_launches() -> None:
    timing, watts = launches(Roofline(), BoardPower.from_table(), KERNEL_BATCH, GPUS[0])
    run = (jnp.asarray([2.0, 5.0]), None)
    phase = settle_phase(BoardPower.from_table(), False, timing, watts, run, GPUS[0])
    each = np.asarray(timing.nanoseconds)
    assert float(phase.nanoseconds) == pytest.approx(2 * each[0] + 5 * each[1], rel=1e-5)
    joules = np.asarray(watts.watts * timing.nanoseconds) @ [2.0, 5.0] * 1e-9
    assert float(phase.joules) == pytest.approx(joules, rel=1e-5)
    assert float(phase.clock) == 1.0


def phase(milliseconds: float, watts: float, clock: float) -> LaunchSequence:
    """Return a phase that draws all of its watts in one component."""
    parts = dict.fromkeys(Power.__dataclass_fields__, jnp.asarray(0.0)) | {"dram": jnp.asarray(watts)}
    stack = {"wait": jnp.asarray(1e6 * milliseconds)}
    return LaunchSequence(stack, power=Power(**parts), clock=jnp.asarray(clock), dram_bytes=jnp.asarray(0.0))


def test_metrics_follow_from_the_phases() -> None:
    found = phase_metrics(workload(), {"prefill": phase(100.0, 500.0, 0.8), "decode": phase(20.0, 200.0, 0.9)})
    assert float(found["ttft_ms"]) == pytest.approx(100.0)
    assert float(found["tbt_ms"]) == pytest.approx(20.0)
    assert float(found["time_ms"]) == pytest.approx(100.0 + 9 * 20.0)
    assert float(found["energy_j"]) == pytest.approx(2 * (50.0 + 9 * 4.0))  # of both boards
    assert float(found["clock_share"]) == pytest.approx(0.8)

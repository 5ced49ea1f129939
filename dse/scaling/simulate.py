"""A timing model as the simulator: scale models of a GPU record evaluated, and a table as ``dse scale`` reads it."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.errors import InputError
from dse.base.units import KILO, WARP_SIZE
from dse.evaluate.shared_programs import fastest_kernels, timings_on
from dse.hardware.gpu import Gpu
from dse.scaling.shrink import shrink
from dse.scaling.table import Benchmark
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator

WAITS_FOR_MEMORY = ("long_scoreboard", "mio_throttle", "dram_bandwidth", "l2_bandwidth", "die_link")
"""Causes under which an SM has no warp to issue because all wait for memory: latency, queueing, bandwidth."""


def memory_stall_fraction(timing: Timing) -> Array:
    """Return f_mem of a launch: the share of its cycles in which all warps wait for memory [1]."""
    stack = timing.stack()
    return sum((stack[cause] for cause in WAITS_FOR_MEMORY), jnp.zeros_like(timing.cycles)) / timing.cycles


def instructions(kernel: Kernel) -> Array:
    """Return the thread instructions of a launch [instruction]."""
    return jnp.asarray(kernel.ctas) * kernel.warps * kernel.per_warp("instructions") * WARP_SIZE


def fastest_kernel(operator: Operator, gpu: Gpu, model: TimingModel) -> Kernel:
    """Return the kernel of the fastest candidate of an operator on a GPU; raises InputError when none runs."""
    kernel, timing = jax.tree.map(lambda x: x[0], fastest_kernels(model, [operator], gpu))
    if not timing.feasible:
        raise InputError(f"{operator.name} ({operator.shape}): no kernel runs on a GPU of {float(gpu.sm_count):g} SMs")
    return kernel


def simulated(
    programs: Mapping[str, Kernel | Mapping[int, Kernel]], target: Gpu, sizes: Sequence[int], model: TimingModel
) -> tuple[Benchmark, ...]:
    """Return scale models of a GPU as a timing model predicts them: IPC, MPKI and f_mem at every size [SM].

    ``programs``: the kernel of each benchmark; one for all sizes, as a binary is, or one for each size (its
    instructions are then counted as the largest size's, so that IPC stays a measure of work). The target itself is
    evaluated when its size is among ``sizes``.
    """
    gpus = {size: shrink(target, size) if size != float(target.sm_count) else target for size in sorted(sizes)}
    benchmarks = []
    for name, program in programs.items():
        by_size = program if isinstance(program, Mapping) else dict.fromkeys(gpus, program)
        work = float(instructions(by_size[max(gpus)]))
        rows = [_row(by_size[size], gpu, model, work) for size, gpu in gpus.items()]
        ipc, mpki, f_mem = (tuple(column) for column in zip(*rows, strict=True))
        columns = tuple(float(size) for size in gpus)
        benchmarks.append(Benchmark(name, columns, ipc, mpki, f_mem, (None,) * len(gpus)))
    return tuple(benchmarks)


def _row(kernel: Kernel, gpu: Gpu, model: TimingModel, work: float) -> tuple[float, float, float]:
    timing = jax.tree.map(lambda x: x[0], timings_on(gpu, jax.tree.map(np.atleast_1d, kernel), model))
    if not float(timing.feasible):
        raise InputError(f"a kernel does not run on the scale model of {float(gpu.sm_count):g} SMs")
    mpki = float(timing.dram_bytes) / float(gpu.sector_bytes) * KILO / work
    return work / float(timing.cycles), mpki, float(memory_stall_fraction(timing))

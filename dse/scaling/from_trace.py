"""Scale models of a GPU on a recorded trace: IPC, miss-rate curve and f_mem of every size, as ``dse scale`` reads them.

The paper collects them with a simulator (section V-A). Here the trace's L2 requests have LRU stack distances, so that
one pass gives the misses of every size, and the timing model gives cycles and the share that waits for memory.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from dse.base.errors import InputError
from dse.base.units import KILO
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.scaling.shrink import PACKAGE, SHARED, shrink
from dse.scaling.simulate import memory_stall_fraction
from dse.scaling.table import Benchmark, Sheet
from dse.timing.amali import Amali
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import traced_workload
from dse.timing.traced.traced_intervals import trace_traffic
from dse.traces.curve_sizes import SIZES
from dse.traces.traced_kernel import SECTOR_BYTES, TracedKernel

MIB = 2.0**20


class CurvePoint(NamedTuple):
    """Misses of an L2 of one size: sectors loaded from DRAM of a kernel."""

    l2_mib: float
    misses: float  # [sector]
    miss_rate: float  # of the sectors that are loaded from the L2 [1]
    mpki: float  # misses per thousand thread instructions


def miss_rate_curve(kernel: TracedKernel, profile: int = 0) -> list[CurvePoint]:
    """Return the misses of a traced kernel's loads over the sizes of an L2, by default from its first profile."""
    misses = kernel.profiles.read_bytes[profile] / SECTOR_BYTES
    loaded = float(kernel.profiles.l2_read_bytes[profile]) / SECTOR_BYTES
    return [
        CurvePoint(
            float(size) / MIB, float(n), float(n) / max(loaded, 1.0), KILO * float(n) / kernel.thread_instructions
        )
        for size, n in zip(SIZES, misses, strict=True)
    ]


def traced_sheet(trace: Path, gpu: str, small: int, large: int, kernels: Sequence[str] = ()) -> Sheet:
    """Return the kernels of a trace on scale models of a GPU, a benchmark each; sizes double from ``large`` to the GPU.

    The GPU itself is evaluated by the same model, as the truth. Raises InputError where a size breaks a whole number.
    """
    sheet = load_sheet(gpu, "--gpu")
    target, count = sheet.record(), int(sheet.numbers()["sm_count"])
    if not 0 < small < large < count:
        raise InputError(
            f"--small {small} --large {large}: give two sizes below {sheet.title}'s {count} SMs, ascending"
        )
    sizes = [small]
    while sizes[-1] < count:
        sizes.append(large if len(sizes) == 1 else min(2 * sizes[-1], count))
    gpus = {size: target if size == count else shrink(target, size) for size in sizes}
    numbers = sheet.numbers()
    made = [numbers | {name: float(each.attribute(name)) for name in (*SHARED, *PACKAGE)} for each in gpus.values()]
    recorded = traced_workload(trace, made, kernels=kernels).recorded
    traces = [kernel for kernel in recorded if isinstance(kernel, TracedKernel)]
    named = [(f"{number} {kernel.name}", kernel) for number, kernel in enumerate(traces, 1)]
    return Sheet(trace.name, "SM", tuple(_benchmark(name, kernel, gpus) for name, kernel in named))


def _benchmark(name: str, kernel: TracedKernel, gpus: dict[int, Gpu]) -> Benchmark:
    def row(gpu: Gpu) -> tuple[Any, ...]:
        timing = on_trace(Amali(), kernel, gpu)
        return timing.cycles, trace_traffic(kernel, gpu).dram_read, memory_stall_fraction(timing), timing.feasible

    with jax.enable_x64(True):
        rows = [tuple(map(float, jax.jit(row)(gpu))) for gpu in gpus.values()]
    for size, (*_, feasible) in zip(gpus, rows, strict=True):
        if not feasible:
            raise InputError(f"{kernel.name}: does not run on the scale model of {size} SMs")
    work = kernel.thread_instructions
    return Benchmark(
        name,
        tuple(float(size) for size in gpus),
        tuple(work / cycles for cycles, *_ in rows),
        tuple(KILO * read / SECTOR_BYTES / work for _, read, *_ in rows),
        tuple(min(waits, 0.999) for _, _, waits, _ in rows),
        (None,) * len(rows),
    )

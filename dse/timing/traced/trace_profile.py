"""Traced kernels for GPU records: which caches to simulate, and one profile for each GPU that needs its own."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from dse.base.brief import count_of
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.timing.occupancy import Launch, Limits, ctas_per_sm
from dse.traces.trace_files import LIST, KernelFile, KernelHeader, TraceDirectory, picked, read_directory
from dse.traces.traced_kernel import TracedKernel, traced_kernel
from dse.traces.warp_profile import LINEAR, CacheGeometry, WarpProfile
from dse.workload.operator import Candidate, Operator
from dse.workload.workload import Phase, Workload

KEYS = (
    "sm_count",
    "subcores_per_sm",
    "threads_per_sm",
    "ctas_per_sm",
    "registers_per_sm",
    "shared_memory_kib",
    "shared_reserved_kib",
    "l1_kib",
    "compute_capability",
)
"""Attributes that decide which sectors miss the L1, or which sub-core is busiest: each value needs a simulation."""

MOST_PROFILES = 64
"""Most GPUs that one space may simulate a trace for."""

_L1_SETS, _LINE, _SECTORS = 4, 128, 4


def is_trace(text: str | Path) -> bool:
    """Tell whether a workload's name is the path of a trace directory."""
    return (Path(text) / LIST).is_file()


def traced_workload(
    path: str | Path,
    gpus: Sequence[Mapping[str, float]],
    name: str | None = None,
    representative: int | None = None,
    kernels: Sequence[str] = (),
) -> Workload:
    """Return the kernels of a trace directory as a workload, profiled for each of ``gpus`` (attribute -> number).

    Each kernel is an operator with one candidate that runs once. ``representative`` overrides the representative warp;
    ``kernels``: numbers or names of those to take, all by default.
    Raises InputError where the trace is broken, or a kernel fits none of the GPUs.
    """
    from dse.traces.representative_warp import representative_warp  # compiled loops: only where there is a trace

    directory = picked(read_directory(path), kernels)
    made_for = np.unique([[float(numbers[key]) for key in KEYS] for numbers in gpus], axis=0)
    for numbers in gpus:
        if (numbers["l1_line_bytes"], numbers["sector_bytes"]) != (_LINE, _LINE // _SECTORS):
            raise InputError(f"{path}: traces are simulated with L1 lines of 128 bytes in sectors of 32, no others")
    operators = []
    for kernel in directory.kernels:
        warp = representative_warp(directory, kernel, representative)
        record = _profiled(kernel, warp, made_for)
        shape = f"{kernel.header.ctas} x {32 * kernel.header.warps_per_cta}"
        title = f"{kernel.number} {kernel.header.name}"
        operators.append(Operator(title, "trace", (Candidate(f"warp {warp}", record),), shape=shape))
    title = name or Path(path).name
    description = f"{count_of(len(operators), 'traced kernel')} of {directory.path.name}"
    caution = other_generation(directory, [numbers["compute_capability"] for numbers in gpus])
    return Workload(title, description, tuple(operators), (Phase("kernel"),), caution=caution)


def other_generation(traces: TraceDirectory, capabilities: Sequence[float]) -> str:
    """Return what a trace leaves out on GPUs of other generations than it was recorded on, "" where it is theirs."""
    recorded = sorted({kernel.header.binary / 10.0 for kernel in traces.kernels})
    others = sorted({c for c in capabilities if any(int(c) != int(r) for r in recorded)})
    if not others:
        return ""
    return (
        f"recorded for compute capability {recorded[0]:.1f}, timed on {', '.join(f'{c:.1f}' for c in others)}: kernels "
        "that are compiled for it would be others"
    )


def _profiled(kernel: KernelFile, warp: int, made_for: np.ndarray) -> TracedKernel:
    """Simulate a kernel once for each distinct geometry."""
    from dse.traces.cache_simulation import simulate  # compiled loops

    runs: dict[CacheGeometry, WarpProfile] = {}
    profiles, kept = [], []
    for row in made_for:
        numbers: dict[str, float] = dict(zip(KEYS, row.tolist(), strict=True))
        geometry = trace_geometry(kernel.header, numbers)
        if geometry is None:
            continue
        if geometry not in runs:
            runs[geometry] = simulate(kernel, geometry, warp, curves=True)
        profiles.append(runs[geometry])
        kept.append(row)
    if not profiles:
        raise InputError(
            f"{kernel.path}: a CTA of {32 * kernel.header.warps_per_cta} threads, {kernel.header.registers} registers "
            f"a thread and {kernel.header.shared_bytes} B of shared memory does not fit on an SM"
        )
    placed = [(int(row[0]), int(row[1])) for row in kept]
    return traced_kernel(profiles, placed, KEYS, np.array(kept))


def trace_geometry(header: KernelHeader, numbers: Mapping[str, float]) -> CacheGeometry | None:
    """Return the L1s of a GPU for one kernel (None: no CTA fits); the L2 is left to the miss-rate curves.

    The L1 keeps what the smallest sufficient carve-out of shared memory leaves, in 4 sets (as GCoM's configuration).
    """
    fit = resident_ctas(header, numbers)
    if fit < 1:
        return None
    shared = fit * (header.shared_bytes / 1024.0 + numbers["shared_reserved_kib"] * (header.shared_bytes > 0))
    left = numbers["l1_kib"] - carveout_kib(numbers["compute_capability"], shared, numbers["shared_memory_kib"])
    ways = max(int(left * 1024) // (_L1_SETS * _LINE), 1)
    return CacheGeometry(
        sms=int(numbers["sm_count"]),
        ctas_per_sm=min(fit, -(-header.ctas // int(numbers["sm_count"]))),
        l1_sets=_L1_SETS,
        l1_ways=ways,
        l1_line=_LINE,
        l1_hash=LINEAR,
        sectors=_SECTORS,
        channels=0,
        slices_per_channel=1,
        l2_sets=1,
        l2_ways=1,
        l2_line=_LINE,
        l2_hash=LINEAR,
    )


def resident_ctas(header: KernelHeader, numbers: Mapping[str, float]) -> int:
    """Return the CTAs that an SM holds at a time (docs/model/timing_traced.md 2)."""
    launch = Launch(header.warps_per_cta, header.registers, header.shared_bytes / 1024.0)
    return int(ctas_per_sm(launch, Limits(*(numbers[name] for name in Limits._fields))))


@cache
def _carveouts() -> dict[float, tuple[float, ...]]:
    rows = read_table("sass/carveouts.csv")
    return {float(r["compute_capability"]): tuple(map(float, r["carveouts_kib"].split("|"))) for r in rows}


def carveouts(compute_capability: float) -> tuple[float, ...]:
    """Return the shared-memory carve-outs [KiB] of the newest listed generation that is not newer than the GPU."""
    known = sorted(_carveouts())
    return _carveouts()[max((c for c in known if c <= compute_capability), default=known[0])]


def carveout_kib(compute_capability: float, needed: float, most: float) -> float:
    """Return the smallest shared-memory carve-out that holds ``needed`` [KiB], at most ``most``."""
    sizes = carveouts(compute_capability)
    at = bisect_left(sizes, needed)
    return min(sizes[at] if at < len(sizes) else needed, most)

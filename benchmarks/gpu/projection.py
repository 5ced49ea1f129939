"""How fast a program would be on the device: each kernel at what binds it, and what each launch costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu.h100 import numbers, pipes
from benchmarks.gpu.sass import Kernel, by_pipe
from benchmarks.gpu.thunks import Launch

TERA, MICRO, GIGA_HZ = 1e12, 1e-6, 1e9


@dataclass(frozen=True)
class Started:
    """A launch with its kernel (None: a copy) and the bytes it reads and writes."""

    launch: Launch
    kernel: Kernel | None
    bytes: float

    @property
    def instructions(self) -> float:
        """Instructions of all threads, of one start."""
        return self.launch.threads * (self.kernel.total if self.kernel else 0)

    def seconds(self, efficiency: float) -> dict[str, float]:
        """Return the least time of one start by what may bind it [s]: issue, its worst pipe, DRAM."""
        device = numbers()
        cycles = device["multiprocessors"] * device["clock_ghz"] * GIGA_HZ  # of all SMs in a second
        worst = 0.0
        if self.kernel:
            every = by_pipe(self.kernel.instructions)
            worst = max(self.launch.threads * every[name] / (lanes * cycles) for name, (lanes, _) in pipes().items())
        return {
            "issue": self.instructions / (device["issue_lanes"] * cycles * efficiency),
            "pipe": worst,
            "memory": self.bytes / (device["dram_tbs"] * TERA),
        }


def figures(started: Sequence[Started], designs: int, scratch: float, pairs: int) -> dict[str, Any]:
    """Return what a call of ``designs`` designs takes, per design; ``scratch`` [B]; ``pairs`` of a design, or 0."""
    device = numbers()
    launches = sum(s.launch.times for s in started)
    instructions = sum(s.launch.times * s.instructions for s in started) / designs
    bound = sum(s.launch.times * max(s.seconds(1.0).values()) for s in started)
    parts = {"issue": 0.0, "pipe": 0.0, "memory": 0.0, "launches": launches * device["launch_us"] * MICRO}
    for one in started:
        seconds = one.seconds(device["issue_efficiency"])
        binds = max(seconds, key=lambda name: seconds[name])
        parts[binds] += one.launch.times * seconds[binds]
    kernels = {s.kernel.name: s.kernel for s in started if s.kernel}
    return {
        "designs_per_call": designs,
        "launches_per_million": launches * 1e6 / designs,
        "scratch_mib": scratch / 2**20,
        "bytes_per_design": sum(s.launch.times * s.bytes for s in started) / designs,
        "instructions_per_design": instructions,
        "instructions_per_pair": instructions / pairs if pairs else None,
        "spill_bytes": sum(kernel.spill_bytes for kernel in kernels.values()),
        "most_registers": max((kernel.registers for kernel in kernels.values()), default=0),
        "bound_designs_per_second": designs / bound if bound else None,
        "projected_designs_per_second": designs / sum(parts.values()),
        "bound_by": max(parts, key=lambda name: parts[name]),
        "shares": {name: seconds / sum(parts.values()) for name, seconds in parts.items()},
        "all_loops_counted": all(s.launch.known and (s.kernel is None or s.kernel.counted) for s in started),
        "heaviest": _heaviest(started, designs),
    }


def _heaviest(started: Sequence[Started], designs: int, count: int = 6) -> list[dict[str, Any]]:
    """Return the kernels with most instructions: instructions a design, those of a thread, registers and spills."""
    every: dict[str, dict[str, Any]] = {}
    for one in started:
        if one.kernel:
            row = every.setdefault(one.kernel.name, {"kernel": one.kernel.name, "instructions_per_design": 0.0})
            row["instructions_per_design"] += one.launch.times * one.instructions / designs
            row |= {"instructions_per_thread": one.kernel.total, "registers": one.kernel.registers}
            row |= {"spill_bytes": one.kernel.spill_bytes, "loops_counted": one.kernel.counted}
    return sorted(every.values(), key=lambda row: -row["instructions_per_design"])[:count]

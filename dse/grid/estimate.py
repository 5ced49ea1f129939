"""About how long a sweep takes, and how much memory and disk, before it runs."""

import os
from dataclasses import dataclass, field
from typing import Any

from dse.base.units import GIGA
from dse.evaluate.by_workload import by_shared_programs
from dse.evaluate.platform import CPU
from dse.evaluate.space_program import result_columns
from dse.grid.constraint_check import constraint_checks
from dse.space.space import Space
from dse.space.unlinked import unlinked_notes

PAIRS_PER_CORE_SECOND = 78e6
"""Pairs (design, kernel candidate) a core evaluates in a second: 3.7 us of it for 289 of them
(benchmarks/README.md, Intel Xeon with AVX-512)."""

CORES = 2
"""Processors that are counted on at most: more have not been measured."""

START_SECONDS = 4.0
"""Imports and all else that a sweep of any space needs."""

COMPILE_SECONDS, QUICK_SECONDS = 12.0, 6.0
"""Compilation for each workload, nothing cached, on two such cores; the second of traces on grids that fit a block,
whose program is compiled with the least effort."""

SHARED_SECONDS, FEW_SECONDS = 12.0, 0.15e-3
"""Compilation of the programs that a few designs of any space share, nothing cached; what a design takes by them for
each workload, on the same."""

PAGE_SECONDS, LOOK_SECONDS = 5.0, 1.0
"""What the page adds, nothing cached, on the same: its programs, which all workloads share, compile beside the sweep's
(3 s are left, and 10 where one workload's own program is sooner compiled than they are); and what each workload
adds."""

CELLS_PER_SECOND = 30e6
"""Numbers written to points.parquet in a second, on the same machine."""

CHUNKS_IN_MEMORY = 6
"""Chunks of results in memory at once: in evaluation, being sorted, waiting to be written."""

BYTES_PER_CELL = 1.3
"""Bytes a number takes in points.parquet, compressed (measured: 100 MB for 1.36 million designs of 57 columns)."""

RESIDENT_GB = 0.9
"""Memory of the program and its libraries."""

ON_DISK_LIMIT = 20_000_000
"""Most designs that are all kept in a folder; of more, only the front is kept (``--keep front``)."""


@dataclass(frozen=True)
class Estimate:
    """About how much time, memory and disk a sweep takes."""

    n: int  # designs
    kernels: int  # candidates of all workloads
    seconds: float  # [s]
    memory_gb: float  # [GB = 1e9 B]
    disk_gb: float  # [GB]
    parts: dict[str, float] = field(default_factory=dict)  # of the seconds: start, compilation, designs, page [s]
    constraint_shares: dict[str, float | None] = field(default_factory=dict)  # constraint -> share of designs left [1]
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the figures as a JSON document."""
        keys = {"constraint_shares": "within"}
        return {
            keys.get(name, name): float(f"{value:.3g}") if isinstance(value, float) else value
            for name, value in vars(self).items()
        } | {"parts": {name: float(f"{value:.3g}") for name, value in self.parts.items()}}


def estimate(space: Space) -> Estimate:
    """Return the estimate for one sweep on this machine's processors (CORES at most)."""
    kernels = max(sum(workload.candidate_count for workload in one.workloads) for one in space.plain)
    columns = len(result_columns(space)) + len(space.axes) + 2
    rows = space.size if space.size <= ON_DISK_LIMIT else 0
    parts = _seconds(space, kernels, rows * columns)
    constraints = constraint_checks(space)
    chunks = CHUNKS_IN_MEMORY * CPU.chunk * columns * 8 / GIGA
    return Estimate(
        n=space.size,
        kernels=kernels,
        seconds=sum(parts.values()),
        memory_gb=RESIDENT_GB + chunks,
        disk_gb=rows * columns * BYTES_PER_CELL / GIGA + 0.01,
        parts=parts,
        constraint_shares={constraint.constraint: constraint.share for constraint in constraints},
        warnings=(
            *without_room(space),
            *(constraint.sentence for constraint in constraints if constraint.sentence),
            *unlinked_notes(space),
        ),
    )


def _seconds(space: Space, kernels: int, cells: int) -> dict[str, float]:
    """Return what a sweep of ``cells`` numbers to write spends its time on, nothing compiled before."""
    count, cores = len(space.workloads), min(os.cpu_count() or 1, CORES)
    if space.variants or by_shared_programs(space.size, space.workloads):
        compilation, designs = SHARED_SECONDS, space.size * count * FEW_SECONDS
    else:
        compilation = (QUICK_SECONDS if space.size <= CPU.recorded_block else COMPILE_SECONDS) * count
        designs = space.size * kernels / (PAIRS_PER_CORE_SECOND * cores)
    return {
        "start": START_SECONDS,
        "compilation": compilation,
        "designs": designs + cells / CELLS_PER_SECOND,
        "page": PAGE_SECONDS + LOOK_SECONDS * count,
    }


def without_room(space: Space) -> list[str]:
    """Return a sentence for each workload that no design of a space has the memory for, of variants those of the
    first; none where links decide it."""
    if space.variants:
        found = [without_room(one) for one in space.variants.spaces]
        return found[0] if all(found) else []
    if any(name == "dram_gb" for name, _ in space.links):
        return []
    most = max((max(a.numbers) for a in space.axes if a.name == "dram_gb"), default=space.base.numbers()["dram_gb"])
    return [
        f"no design has room for {w.name}: it needs {w.memory.total / GIGA:.1f} GB a GPU, dram_gb is {most:g} at most"
        for w in space.workloads
        if w.memory.total > most * GIGA
    ]

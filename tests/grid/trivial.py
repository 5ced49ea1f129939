"""A space that costs next to nothing: one GEMM, the roofline, many designs; and a sweep of it in a process of its own.

Run with ``python -m tests.grid.trivial OUT KEEP SIZE [CLUSTER]``: sweeps with small chunks, slowly, and resumes; every
shard is written into OUT.log before it is evaluated.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from dse.evaluate.platform import CPU, PLATFORMS, Platform
from dse.grid import checkpoint as checkpoint
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator
from dse.grid.sweep import sweep
from dse.space.space import Space, space_from_mapping

CHUNK = 512
WAIT = 0.02
"""Seconds that a shard takes longer than it must, so that a kill hits it."""


def trivial(size: int, folder: Path, **changes: Any) -> Space:
    """Return a space of at least ``size`` designs, its workload in a file of ``folder``."""
    (folder / "one.csv").write_text("m,n,k,dtype\n4096,4096,4096,bf16\n")
    axes: dict[str, Any] = {
        "sm_count": list(range(60, 160)),
        "dram_bandwidth_gbs": list(range(1000, 6000, 50)),
        "l2_mib": list(range(20, 20 + min(-(-size // 10_000), 50))),
    }
    if size > 500_000:
        axes["tensor_clock_mhz"] = list(range(1000, 1000 + -(-size // 500_000)))
    content = {
        "base": "h100_sxm",
        "timing": "roofline",
        "axes": axes,
        "workloads": {"gemm": "one.csv"},
        "objectives": [{"value": "gemm.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
        "constraints": ["die_mm2 <= 700"],
    }
    return space_from_mapping(content | changes, "here", "trivial", folder)


def with_chunks(chunk: int = CHUNK) -> Platform:
    """Return a CPU's platform whose sweeps take small chunks."""
    return replace(CPU, chunk=chunk)


def main(out: str, keep: str, size: str, cluster: str | None = None) -> None:
    """Sweep slowly into a folder, going on where a sweep was killed."""
    PLATFORMS["cpu"] = with_chunks()
    checkpoint.EVERY = 0.0
    shard = SpaceEvaluator.shard

    def slowly(self: SpaceEvaluator, which: Shard, *rest: Any) -> ShardResult:
        with Path(f"{out}.log").open("a") as log:
            log.write(f"{which.number}\n")
        time.sleep(WAIT)
        return shard(self, which, *rest)

    SpaceEvaluator.shard = slowly
    print(len(jax.local_devices()), "devices")
    sweep(trivial(int(size), Path(out).parent), out, keep=keep, resume=True, cluster=cluster)


if __name__ == "__main__":
    main(*sys.argv[1:])

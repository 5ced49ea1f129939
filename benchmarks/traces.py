"""Microseconds a warp instruction of reading a trace, simulating its caches, and counting its miss-rate curve.

Run with ``python -m benchmarks.traces [--json]`` (a minute, most of it compilation). Processor time, not wall time.
Three generated kernels: arithmetic only; 16-byte loads and stores that stream; loads whose lanes scatter. The original
program takes 1.4 to 2.3 us to parse and 0.04 to 4 us to simulate a warp instruction (as the issue states).
"""

import gzip
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.arguments import parser
from dse.traces.cache_simulation import simulate
from dse.traces.trace_files import KernelFile, read_directory
from dse.traces.trace_reader import KernelStream
from dse.traces.warp_profile import CacheGeometry

RTX_2060 = CacheGeometry(30, 4, 4, 128, 128, 0, 4, 12, 2, 64, 16, 128, 2)
WARPS, CTAS = 8, 200
HEADER = (
    "-kernel name = {name}\n-grid dim = ({ctas},1,1)\n-block dim = (256,1,1)\n-shmem = 0\n-nregs = 16\n"
    "-binary version = 75\n-accelsim tracer version = 3\n#traces format\n"
)


def arithmetic(warp: int) -> list[str]:
    """Return a warp of 200 FFMA."""
    return [f"{16 * i:04x} ffffffff 1 R{i % 60} FFMA 3 R1 R2 R3 0" for i in range(200)]


def streaming(warp: int) -> list[str]:
    """Return a warp that loads and stores 16 bytes a lane, each line once."""
    lines = []
    for i in range(40):
        address = 0x7FFF00000000 + 512 * warp + (i << 20)
        lines.append(f"0010 ffffffff 1 R2 LDG.E.128.SYS 1 R4 16 1 {address:#x} 16")
        lines.append("0020 ffffffff 1 R1 FFMA 3 R1 R2 R3 0")
        lines.append(f"0030 ffffffff 0 STG.E.128.SYS 2 R4 R6 16 1 {address + (1 << 30):#x} 16")
    return lines


def scattered(warp: int) -> list[str]:
    """Return a warp whose loads touch 32 sectors each."""
    rng = random.Random(warp)
    lines = []
    for _ in range(30):
        deltas = " ".join(str(4 * rng.randrange(-99999, 99999)) for _ in range(31))
        lines.append(f"0010 ffffffff 1 R2 LDG.E.SYS 1 R4 4 2 0x7fff10000000 {deltas}")
        lines.append("0020 ffffffff 1 R1 FFMA 3 R1 R2 R3 0")
    return lines


def write(folder: Path, warp: Callable[[int], list[str]]) -> KernelFile:
    """Write a directory of one kernel and return the kernel."""
    parts = [HEADER.format(name=warp.__name__, ctas=CTAS)]
    for cta in range(CTAS):
        parts.append("#BEGIN_TB\n")
        for w in range(WARPS):
            lines = warp(cta * WARPS + w)
            parts.append(f"warp = {w}\ninsts = {len(lines)}\n" + "\n".join(lines) + "\n")
        parts.append("#END_TB\n")
    (folder / "kernel-1.traceg.gz").write_bytes(gzip.compress("".join(parts).encode(), 1))
    (folder / "kernelslist.g").write_text("kernel-1.traceg.gz\n", encoding="utf-8")
    return read_directory(folder).kernels[0]


def seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of three runs, a first having compiled."""
    work()
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(warp: Callable[[int], list[str]]) -> dict[str, float]:
    """Return microseconds a warp instruction of reading, and of simulating beyond reading."""
    with tempfile.TemporaryDirectory() as folder:
        kernel = write(Path(folder), warp)
        count = sum(int(cta.warp_count.sum()) for cta in KernelStream(kernel))
        read = seconds(lambda: [None for _ in KernelStream(kernel)])
        whole = seconds(lambda: simulate(kernel, RTX_2060, 0))
        curves = seconds(lambda: simulate(kernel, RTX_2060._replace(channels=0), 0, curves=True))
    return {
        "instructions": count,
        "parse_us": 1e6 * read / count,
        "simulate_us": 1e6 * (whole - read) / count,
        "curves_us": 1e6 * (curves - read) / count,
    }


def main() -> None:
    """Measure the three kernels and print them."""
    options = parser("traces", __doc__).parse_args()
    rows = {warp.__name__: measure(warp) for warp in (arithmetic, streaming, scattered)}
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for name, row in rows.items():
        print(
            f"{name:12s} parse {row['parse_us']:6.2f} us, simulate L1 and L2 {row['simulate_us']:6.2f} us, "
            f"L1 and miss-rate curve {row['curves_us']:6.2f} us a warp instruction"
        )


if __name__ == "__main__":
    main()

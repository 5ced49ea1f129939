"""What a design costs as a sweep grows: time and memory from ten thousand to a hundred million designs.

Run with ``python -m benchmarks.scaling [--largest] [--json]`` (two minutes on two cores; ``--largest`` adds 10^8
designs, a minute more). Every sweep runs in a process of its own, so that its peak memory is its own. The space is the
cheapest there is (one GEMM, the roofline), where what surrounds the evaluation weighs most; the last rows are the
shipped main space, thinned and whole. ``of_evaluation``: the evaluator's processor time a design, called directly on
two threads, over the sweep's; processor time, because it stays the same beside other programs.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.arguments import parser
from dse.base.kept.between_commands import cache_compilations
from dse.grid.shard import SpaceEvaluator
from dse.grid.sweep import sweep
from dse.space.shipped import find_space
from dse.space.space import Space, load_space, space_from_mapping

SIZES = (10**4, 10**5, 10**6, 10**7)
LARGEST = 10**8
MAIN_SIZES = (10**4, 10**5)
WHOLE = 0
MAIN = "h100_tensor_core"
ALONE_SECONDS = 3.0


def cheapest(size: int, folder: Path) -> Space:
    """Return a space of ``size`` designs (a power of ten from 10^4 to 10^9) whose evaluation costs next to nothing."""
    (folder / "one.csv").write_text("m,n,k,dtype\n4096,4096,4096,bf16\n", encoding="utf-8")
    cells = size // 10**4
    axes = {
        "sm_count": {"from": 60, "to": 159, "step": 1},
        "dram_bandwidth_gbs": {"from": 1000, "to": 5950, "step": 50},
        "l2_mib": list(range(20, 20 + min(cells, 100))),
        "tensor_clock_mhz": list(range(1000, 1000 + max(cells // 100, 1))),
    }
    objectives = [{"value": "gemm.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}]
    content = {"base": "h100_sxm", "timing": "roofline", "axes": axes, "workloads": {"gemm": "one.csv"}}
    return space_from_mapping(content | {"objectives": objectives}, "benchmark", "cheapest", folder)


def main_space(size: int) -> Space:
    """Return the shipped main space with every so-many-th value of its longest axes: at most ``size`` designs."""
    whole = load_space(find_space(MAIN))
    if size == WHOLE:
        return whole
    values = {axis.name: list(axis.numbers) for axis in whole.axes}
    while prod(map(len, values.values())) > size:
        longest = max(values, key=lambda name: len(values[name]))
        values[longest] = values[longest][::2]
    content = whole.content | {"axes": values}
    return space_from_mapping(content, "benchmark", "main, thinned", whole.folder)


def alone(space: Space) -> float:
    """Return the processor time [ns] of a design where the evaluator is all that runs, on two threads."""
    whole = SpaceEvaluator(space)
    whole.compile()
    names, size = [o.name for o in space.objectives], whole.chunk_size
    columns = whole.grid.columns(whole.grid.digits(0, size), size)
    whole.evaluator(columns, names)
    with ThreadPoolExecutor(2) as pool:
        start, begin, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - start < ALONE_SECONDS:
            list(pool.map(lambda _: whole.evaluator(columns, names), range(8)))
            count += 8 * size
        return (time.process_time() - begin) / count * 1e9


def measured(space: Space, keep: str, folder: Path) -> dict[str, Any]:
    """Sweep a space and return what it took, compilation left out."""
    stamps: list[tuple[float, float]] = []
    start = time.perf_counter()
    found = sweep(space, folder / "out", lambda _: stamps.append((time.perf_counter(), time.process_time())), keep=keep)
    (begin, cpu_begin), (end, cpu_end) = stamps[0], stamps[-1]
    cpu, own = (cpu_end - cpu_begin) / found.n * 1e9, alone(space)
    return {
        "designs": found.n,
        "keep": keep,
        "designs_per_second": found.n / (end - begin),
        "cpu_ns_per_design": cpu,
        "evaluation_cpu_ns_per_design": own,
        "of_evaluation": own / cpu,
        "all_seconds": time.perf_counter() - start - ALONE_SECONDS,
        "front": len(found.front),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def in_a_process(which: str, size: int, keep: str) -> dict[str, Any]:
    """Return what a sweep of ``size`` designs takes in a process of its own; ``which``: cheapest or main."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--one", which, str(size), keep]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def one(which: str, size: int, keep: str) -> None:
    """Measure one sweep in this process and print it as JSON."""
    cache_compilations()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        space = cheapest(size, folder) if which == "cheapest" else main_space(size)
        print(json.dumps(measured(space, keep, folder)))


def main() -> None:
    """Print a row a sweep, or all of them as JSON with --json."""
    known = parser("scaling", __doc__)
    known.add_argument("--largest", action="store_true", help="10^8 designs, too")
    known.add_argument("--one", nargs=3, help=SUPPRESS)  # of a process of its own
    options = known.parse_args()
    if options.one:
        which, size, keep = options.one
        one(which, int(size), keep)
        return
    sizes = (*SIZES, LARGEST) if options.largest else SIZES
    wanted = {
        "cheapest": [*((size, "front") for size in sizes), (10**7, "all")],
        "main": [*((size, "front") for size in (*MAIN_SIZES, WHOLE)), (WHOLE, "all")],
    }
    document = {which: [in_a_process(which, *row) for row in rows] for which, rows in wanted.items()}
    if options.json:
        print(json.dumps(document, indent=1))
        return
    print("    designs  keep   designs/s  CPU ns/design  of evaluation  all s  front  peak GiB")
    for name, group in document.items():
        print(name)
        for row in group:
            print(
                f"{row['designs']:11,d} {row['keep']:>5s} {row['designs_per_second']:11,.0f} "
                f"{row['cpu_ns_per_design']:14,.0f} {row['of_evaluation']:14.2f} {row['all_seconds']:6.1f} "
                f"{row['front']:6,d} {row['peak_gib']:9.2f}"
            )


if __name__ == "__main__":
    main()

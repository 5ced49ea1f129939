"""How soon a few designs are evaluated: by the programs that all spaces share, and by a program of the space's own.

Run with ``python -m benchmarks.few [--json]`` (four minutes on two cores). The designs are of the shipped main space.
Each way starts in a process of its own, with no program kept, and once more with those that the first kept; seconds
from the space to the results of all designs, compilation included.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS

import numpy as np

from benchmarks.arguments import parser
from dse.base.kept.between_commands import cache_compilations
from dse.evaluate import by_workload
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.space import designs
from dse.space.shipped import find_space
from dse.space.space import load_space

MAIN = "h100_tensor_core"
SIZES = (45, 1024, 8192)
WAYS = {"shared": by_workload.MOST_DESIGNS, "own": 0}
"""Way -> most designs that are evaluated by the programs that spaces share."""


def seconds(way: str, size: int) -> float:
    """Return the seconds that ``size`` designs take in this process."""
    by_workload.MOST_DESIGNS = WAYS[way]
    cache_compilations()
    space = load_space(find_space(MAIN))
    draw = np.random.default_rng(0)
    drawn = {axis.name: draw.choice(axis.numbers, size) for axis in space.axes}
    start = time.perf_counter()
    evaluator = Evaluator(space, Reasons(space), asked=size)
    columns = designs.with_links(space, drawn)
    for begin in range(0, size, evaluator.chunk):
        evaluator({name: values[begin : begin + evaluator.chunk] for name, values in columns.items()})
    return time.perf_counter() - start


def in_a_process(way: str, size: int, kept: str) -> float:
    """Return the seconds in a process of its own, whose programs are kept in a folder."""
    command = [sys.executable, "-m", "benchmarks.few", "--one", way, str(size)]
    found = subprocess.run(
        command, env=os.environ | {"XDG_CACHE_HOME": kept}, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(found.stdout)


def main() -> None:
    """Print a row a number of designs, or all of them as JSON with --json."""
    known = parser("few", __doc__)
    known.add_argument("--one", nargs=2, help=SUPPRESS)  # of a process of its own
    options = known.parse_args()
    if options.one:
        way, size = options.one
        print(seconds(way, int(size)))
        return
    rows = []
    for size in SIZES:
        row: dict[str, float] = {"designs": size}
        for way in WAYS:
            with tempfile.TemporaryDirectory() as kept:
                row |= {f"{way}_{run}_s": in_a_process(way, size, kept) for run in ("first", "second")}
        rows.append(row | {f"ratio_{run}": row[f"own_{run}_s"] / row[f"shared_{run}_s"] for run in ("first", "second")})
    if options.json:
        print(json.dumps(rows))
        return
    print("designs   nothing kept: shared, own, ratio      programs kept: shared, own, ratio   [s]")
    for row in rows:
        parts = [
            f"{row[f'shared_{run}_s']:8.1f} {row[f'own_{run}_s']:8.1f} {row[f'ratio_{run}']:8.1f}"
            for run in ("first", "second")
        ]
        print(f"{row['designs']:7,}        {'        '.join(parts)}")


if __name__ == "__main__":
    main()

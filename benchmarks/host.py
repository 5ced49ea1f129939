"""Processor time of the host beside a sweep's programs, a design: what no device, however fast, can hide.

Run with ``python -m benchmarks.host [DESIGNS [PORTIONS]] [--rows] [--json]``: 10^8 designs by default, and all of their
shards. The space is the cheapest there is (:mod:`benchmarks.scaling`), its front kept.
One thread evaluates shard after shard and merges them. Its processor time is counted without that inside the compiled
programs, which are waited for.

``--rows``: instead, how many rows a second one thread encodes of the cheapest and of the main space where every design
is kept, by its processor time.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from pyarrow.parquet import ParquetFile

from benchmarks.arguments import parser
from benchmarks.scaling import cheapest, main_space
from dse.base.kept.between_commands import cache_compilations
from dse.grid.device_designs import Rows
from dse.grid.device_shard import DeviceShards
from dse.grid.shard import Shard, shards
from dse.grid.sweep_program import Reduced, SweepProgram
from dse.grid.sweep_run import PointsTable, evaluator_of
from dse.space.space import Space

DESIGNS = 10**8
FIRST = 2
"""Shards after which the clock begins: what is done once a space is not counted."""

WRITTEN = 20
"""How often a chunk of rows is written."""


def measured(designs: int, portions: int | None = None) -> dict[str, Any]:
    """Return the time of the host and of the program [ns a design], and what came back; ``portions``: shards of the
    grid, all by default."""
    inside, survivors = [0.0], [0]
    take = DeviceShards._survivors

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def one(*arguments: Any) -> Any:
            begin = time.thread_time()
            found = jax.block_until_ready(call(*arguments))
            inside[0] += time.thread_time() - begin
            return found

        return one

    def counted(self: DeviceShards, rows: Rows, reduced: Reduced) -> Any:
        found = take(self, rows, reduced)
        survivors[0] += len(found[0])
        return found

    SweepProgram.call, SweepProgram.summed = timed(SweepProgram.call), timed(SweepProgram.summed)
    DeviceShards._survivors = counted
    with tempfile.TemporaryDirectory() as folder:
        evaluator = evaluator_of(cheapest(designs, Path(folder)), "front")
        evaluator.compile()
        parts = shards(designs, evaluator.chunk_size)[:portions]
        whole, begin, start = evaluator.empty_accumulator(), 0.0, 0.0
        for part in parts:
            if part.number == FIRST:
                inside[0], survivors[0], begin, start = 0.0, 0, time.thread_time(), time.process_time()
            whole.merge(evaluator.shard(part, False).accumulator)
        host, every = time.thread_time() - begin - inside[0], time.process_time() - start
    count = parts[-1].stop - parts[FIRST].start
    return {
        "designs": count,
        "host_ns_per_design": host / count * 1e9,
        "program_ns_per_design": (every - host) / count * 1e9,
        "survivors": survivors[0] / count,
        "front": len(whole.front),
    }


def encoded(space: Space, folder: Path) -> dict[str, float]:
    """Return what the table of every design takes, from a portion in the middle of the grid written WRITTEN times."""
    evaluator = evaluator_of(space, "all")
    size, start = evaluator.chunk_size, space.size // 2
    packed = evaluator.shard(Shard(0, start, start + size), True).rows or b""
    portions = [Shard(number, number * size, (number + 1) * size) for number in range(WRITTEN)]
    with PointsTable(space, folder, portions, lambda portion: packed) as rows:
        begin = time.thread_time()
        rows.add(range(WRITTEN))
        took = time.thread_time() - begin
        rows.finish()
    written = ParquetFile(folder / "points.parquet").metadata
    count, large = written.num_rows, (folder / "points.parquet").stat().st_size
    return {"columns": written.num_columns, "bytes_per_row": large / count, "rows_per_second": count / took}


def every_row() -> dict[str, Any]:
    """Return what is written of the cheapest and of the main space."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for space in (cheapest(10**6, Path(folder)), main_space(0)):
            found |= {f"{space.name}_{name}": value for name, value in encoded(space, Path(folder)).items()}
    return found


def whole_number(word: str) -> int:
    """A whole number, also as 1e8."""
    return int(float(word))


def main() -> None:
    """Print the figures, or one JSON document with --json."""
    known = parser("host", __doc__)
    known.add_argument("designs", nargs="?", type=whole_number, default=DESIGNS, metavar="DESIGNS")
    known.add_argument("portions", nargs="?", type=whole_number, metavar="PORTIONS")
    known.add_argument("--rows", action="store_true", help="rows a second that are written of every design, instead")
    options = known.parse_args()
    cache_compilations()
    document = every_row() if options.rows else measured(options.designs, options.portions)
    if options.json:
        print(json.dumps(document))
        return
    for name, value in document.items():
        print(f"{name:32} {value:14,.4g}")


if __name__ == "__main__":
    main()

"""A shard of a sweep: consecutive designs of the grid, evaluated chunk by chunk and accumulated in one process.

The same code runs in a thread of this process and in a worker of a cluster. A shard's front may lack designs that those
of earlier shards dominate; the front of all shards is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dse.base.compilation import Options, threads
from dse.evaluate.infeasibility import Masks, Reasons, reasons_of
from dse.evaluate.space_program import Evaluator
from dse.evaluate.variants.evaluator import evaluator_of
from dse.grid.accumulator import Accumulator
from dse.grid.designs import Grid
from dse.grid.device_designs import MOST_COMBINATIONS, too_many
from dse.grid.device_shard import DeviceShards
from dse.grid.store import design_table, packed
from dse.grid.sweep_program import SweepProgram
from dse.space import designs
from dse.space.space import Space

SHARDS = 32
"""Least shards of a large sweep: an interruption loses a few of them."""

OF_PART = 4
"""Least shards of each part of a large sweep that several jobs share out: none has more than a quarter more to do."""

LONGEST = 64
"""Most chunks of a shard, whose result is sent, saved and merged once."""


@dataclass(frozen=True)
class Shard:
    """Designs ``start`` to ``stop`` of the grid; ``number`` counts shards."""

    number: int
    start: int
    stop: int


def shards(size: int, chunk: int, parts: int = 1) -> list[Shard]:
    """Return the shards of a grid of ``size`` designs, each a whole number of chunks but the last.

    ``parts``: jobs that share the grid out.
    """
    step = chunk * int(np.clip(size // (chunk * max(SHARDS, OF_PART * parts)), 1, LONGEST))
    return [Shard(i, start, min(start + step, size)) for i, start in enumerate(range(0, size, step))]


@dataclass(frozen=True)
class ShardResult:
    """A shard's result: its ``accumulator``, and its designs as a packed table where all are kept."""

    shard: Shard
    accumulator: Accumulator
    rows: bytes | None


@dataclass(frozen=True)
class Chunk:
    """Designs that were evaluated together, each array of shape (designs,); ``code`` and ``lacking``: see Reasons."""

    columns: designs.Columns
    results: dict[str, np.ndarray]
    code: np.ndarray
    lacking: Masks


def chunk_table(space: Space, reasons: Reasons, chunk: Chunk) -> pa.Table:
    """Return designs as a table: axes, results, ``feasible`` and ``reason``."""
    texts = reasons.texts(chunk.code, chunk.columns)
    empty = reasons.empty(chunk.code, chunk.lacking, chunk.results)
    return design_table(space, chunk.columns, chunk.results, texts, empty)


class SpaceEvaluator:
    """Everything that evaluates designs of one space on ``devices``, all of this process's by default.

    ``chunk``: designs evaluated at once; ``reduced``: designs are made and reduced on the devices, if they can be,
    since only the front is kept (:mod:`dse.grid.device_shard`); ``notes`` say where they cannot.
    """

    def __init__(
        self, space: Space, chunk: int | None = None, devices: Sequence[Any] | None = None, *, reduced: bool = False
    ) -> None:
        self.space, self.notes = space, list[str]()
        self.reasons, self._on_device, self.reduced = reasons_of(space), None, reduced
        self._compile_given: Callable[[], None] | None = None
        if reduced and space.variants:
            names = " and ".join(axis.name for axis in space.variants.axes)
            self.notes.append(f"designs were made and compared on the host: {names} vary what kernels run")
            reduced = False
        elif reduced and (names := too_many(space)):
            self.notes.append(
                f"designs were made and compared on the host: {' and '.join(names)} follows more than "
                f"{MOST_COMBINATIONS:,} combinations of axes"
            )
            reduced = False
        own = self._sweep_program if reduced else None
        self.evaluator = evaluator_of(space, self.reasons, chunk, in_order=True, devices=devices, own=own)
        self.chunk_size = self.evaluator.chunk
        self.devices = self.evaluator.devices
        self.grid = Grid(space)
        self._killers = self.empty_accumulator().front.killers
        self._objectives = list(dict.fromkeys(o.name for o in space.objectives))

    def _sweep_program(self, evaluator: Evaluator, options: Options | None) -> SweepProgram:
        """Make the program that makes, evaluates and reduces designs."""
        chunks = -(-shards(self.space.size, evaluator.chunk)[0].stop // evaluator.chunk)
        pairs = sum(workload.candidate_count for workload in self.space.workloads if not workload.recorded)
        most = evaluator.platform.chunks_of_call(pairs)
        program = SweepProgram(evaluator, options, self.reasons, min(chunks, most), evaluator.own_program(options))
        self._on_device = DeviceShards(program, self.reasons, self.space.size)
        self._compile_given = lambda: evaluator.on_each(program.compile_given)
        return program

    def trace(self) -> None:
        """Trace the program for every device, the part of :meth:`compile` that Python does."""
        self.evaluator.trace(self.devices)

    def compile(self) -> None:
        """Compile the program for every device, ahead of the first designs."""
        self.evaluator.compile(self.devices)

    def compile_all(self) -> None:
        """Do so, and beside it compile what evaluates given designs, where that is another program."""
        with threads(2) as pool:
            both = [pool.submit(self.compile)]
            if self._compile_given:
                both.append(pool.submit(self._compile_given))
            for one in both:
                one.result()

    def empty_accumulator(self) -> Accumulator:
        """Return an accumulator of no designs."""
        return Accumulator([len(axis) for axis in self.space.axes], [o.sign for o in self.space.objectives])

    def shard(self, shard: Shard, keep_all: bool, tick: Callable[[int], None] = lambda count: None) -> ShardResult:
        """Evaluate a shard on one device; ``tick`` is called with the number of designs of each chunk."""
        device = self.devices[shard.number % len(self.devices)]
        accumulator, tables = self.empty_accumulator(), []
        if not keep_all and self._on_device:
            self._on_device(shard.start, shard.stop, device, accumulator, tick)
            return ShardResult(shard, accumulator, None)
        accumulator.front.killers = self._killers
        for start in range(shard.start, shard.stop, self.chunk_size):
            stop = min(start + self.chunk_size, shard.stop)
            digits = self.grid.digits(start, stop)
            names = None if keep_all else self._objectives
            chunk = self.chunk(self.grid.columns(digits, stop - start), names, device)
            values = np.array([chunk.results[name] for name in self._objectives], float)
            feasible = chunk.code == 0
            accumulator.add(start, feasible, values)
            if not feasible.all():
                accumulator.reasons.update(self.reasons.counts(chunk.code, chunk.columns))
            if keep_all:
                tables.append(self.table(chunk))
            tick(stop - start)
        self._killers = accumulator.front.killers
        return ShardResult(shard, accumulator, packed(tables) if keep_all else None)

    def chunk(self, columns: designs.Columns, names: Sequence[str] | None = None, device: Any = None) -> Chunk:
        """Evaluate at most a chunk of designs; ``names``: of the results, all by default."""
        results = self.evaluator(columns, names, device)
        code, lacking = self.reasons.add_non_finite(results.pop("code"), results)
        return Chunk(columns, results, code, lacking)

    def table(self, chunk: Chunk) -> pa.Table:
        """Return designs as a table (:func:`chunk_table`)."""
        return chunk_table(self.space, self.reasons, chunk)

    def chunks(self, columns: designs.Columns) -> Iterator[Chunk]:
        """Evaluate any number of designs that are given by their columns."""
        count = len(next(iter(columns.values())))
        for start in range(0, count, self.chunk_size):
            yield self.chunk({name: v[start : start + self.chunk_size] for name, v in columns.items()})

    def designs(self, index: np.ndarray) -> pa.Table:
        """Evaluate the designs with these numbers and return them as a table."""
        if len(index) == 0:
            return self.table(self.chunk(designs.baseline(self.space))).slice(0, 0)
        columns = designs.with_links(self.space, self.space.at(index))
        return pa.concat_tables([self.table(chunk) for chunk in self.chunks(columns)])

"""One run of a sweep: which of evaluator, checkpoint and folder does what, in which order."""

import time
from collections import deque
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dse.evaluate.platform import local_platform, platform_of_device
from dse.grid.accumulator import Accumulator
from dse.grid.checkpoint import Checkpoint, InMemory, identity, leftovers
from dse.grid.local_executor import on_this_machine
from dse.grid.merged_checkpoint import MergedCheckpoint
from dse.grid.record import write_record
from dse.grid.result import SweepResult
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator, shards
from dse.grid.store import TableWriter, discard_record, provenance, unpacked, write_table
from dse.space import designs
from dse.space.space import Space

Progress = Callable[[int], None]


def evaluator_of(space: Space, keep: str, devices: Sequence[Any] | None = None) -> SpaceEvaluator:
    """Return what evaluates a sweep's designs on ``devices``, all of this process's by default; ``keep``: as in
    :func:`dse.grid.sweep.sweep`. Few designs the host reduces, which takes less time than to compile what does."""
    platform = platform_of_device(devices[0]) if devices else local_platform()
    return SpaceEvaluator(space, devices=devices, reduced=keep == "front" and space.size >= platform.reduced_from)


class PointsTable:
    """The table of every design, in a folder or in memory, put together in grid order while later shards are evaluated.

    Inside ``with``: an error leaves no table behind. ``packed``: returns the rows of a finished shard.
    """

    def __init__(
        self, space: Space, folder: Path | None, shards: Sequence[Shard], packed: Callable[[Shard], bytes]
    ) -> None:
        self._size, self._waiting, self._packed = space.size, deque(shards), packed
        self._writer = TableWriter(folder / "points.parquet", provenance(space)) if folder else None
        self._tables: list[pa.Table] = []
        self._sample: list[pa.Table] = []
        self._count = 0

    def __enter__(self) -> "PointsTable":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is not None and self._writer is not None:
            self._writer.abandon()

    def add(self, finished: Container[int]) -> None:
        """Add the shards with numbers among ``finished`` that follow those which have been added."""
        while self._waiting and self._waiting[0].number in finished:
            for table in unpacked(self._packed(self._waiting.popleft())):
                self._add(table)

    def _add(self, table: pa.Table) -> None:
        feasible = np.asarray(table["feasible"])
        self._sample.append(table.take(designs.sample_positions(self._size, feasible, self._count)))
        self._count += len(table)
        if self._writer is None:
            self._tables.append(table)
        else:
            self._writer.write(table)

    def finish(self) -> tuple[pa.Table | None, pa.Table]:
        """End the table when all shards have been added; return it, if in memory, and the sample of it."""
        if self._writer is not None:
            self._writer.finish()
        return (pa.concat_tables(self._tables) if self._tables else None), pa.concat_tables(self._sample)


@dataclass
class SweepRun:
    """A sweep of a space, into a folder or in memory; ``parts``: jobs that share its grid out."""

    space: Space
    folder: Path | None
    keep: str
    progress: Progress | None
    cluster: Any
    parts: int = 1
    checkpoint: InMemory | Checkpoint | MergedCheckpoint = field(default_factory=InMemory)
    seconds: dict[str, float] = field(default_factory=lambda: {"compile": 0.0, "evaluate": 0.0, "write": 0.0})
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evaluator = evaluator_of(self.space, self.keep)
        self.notes += self.evaluator.notes
        self.shards = shards(self.space.size, self.evaluator.chunk_size, self.parts)

    def go_on_in(self, folder: Path, resume: bool, part: str | None = None) -> "SweepRun":
        """Keep what is finished in a folder, and begin there or go on; raises InputError where another sweep is there.

        ``part``: which of several parts of the grid this run evaluates, as "3/64".
        """
        leftovers(folder)
        self.checkpoint = Checkpoint(folder, self.identity(part), resume)
        return self

    def identity(self, part: str | None = None) -> dict[str, Any]:
        """Return what must be the same for a run to go on (:func:`dse.grid.checkpoint.identity`)."""
        return identity(self.space, self.keep, self.evaluator.chunk_size, self.shards[0].stop, part)

    def write(self) -> SweepResult:
        """Run, and write tables and record into the folder; what an earlier run left there is replaced."""
        assert self.folder is not None
        discard_record(self.folder)
        result = self.run()
        write_record(result, self.folder)
        (self.folder / ("sample.parquet" if self.keep == "all" else "points.parquet")).unlink(missing_ok=True)
        self.checkpoint.remove()
        return result

    def run(self) -> SweepResult:
        """Evaluate all designs and return the result."""
        self._compile()
        baseline = self.evaluator.table(self.evaluator.chunk(designs.baseline(self.space)))
        at_baseline = self._at_baseline()
        with self._rows() as rows:
            accumulator = self._evaluate(self.shards, rows)
            start = time.perf_counter()
            table, sample = rows.finish() if rows else (None, self._sample())
        front, top = self._front_and_best(accumulator)
        self.seconds["write"] += time.perf_counter() - start
        return SweepResult(
            space=self.space,
            baseline=baseline.to_pandas(),
            front=front.to_pandas(),
            axis_effects=accumulator.axes.frame(self.space, at_baseline),
            sample=sample.to_pandas(),
            n=self.space.size,
            n_feasible=self.space.size - sum(accumulator.reasons.values()),
            infeasible=dict(sorted(accumulator.reasons.items(), key=lambda item: (-item[1], item[0]))),
            seconds=self.seconds,
            folder=self.folder,
            table=table,
            keep=self.keep,
            top=top,
            notes=(*self.notes, *self.checkpoint.notes),
        )

    def run_part(self, shards: list[Shard]) -> None:
        """Evaluate some shards, and leave their rows and accumulator in the checkpoint."""
        assert isinstance(self.checkpoint, Checkpoint)
        self._compile()
        self.checkpoint.save_state(self._evaluate(shards))

    def _compile(self) -> None:
        start = time.perf_counter()
        self.evaluator.trace()
        if self.progress:
            self.progress(0)
        self.evaluator.compile_all()
        self.seconds["compile"] = time.perf_counter() - start

    def _evaluate(self, shards: list[Shard], rows: PointsTable | None = None) -> Accumulator:
        """Evaluate those shards that are not finished yet, and return the accumulator of all that are.

        ``rows``: takes their designs meanwhile.
        """
        accumulator, progress = self.evaluator.empty_accumulator(), self.progress or (lambda count: None)
        done = self.checkpoint.restore(accumulator)
        progress(sum(p.stop - p.start for p in shards if p.number in done))
        todo = [p for p in shards if p.number not in done]
        begin, written, interrupted = time.perf_counter(), 0.0, True
        try:
            with closing(self._evaluated(todo, progress)) as results:
                for evaluated in results:
                    stamp = time.perf_counter()
                    self.checkpoint.save(evaluated, accumulator)
                    done.add(evaluated.shard.number)
                    if rows:
                        rows.add(done)
                    written += time.perf_counter() - stamp
            interrupted = False
            if rows:
                rows.add(done)  # of a sweep that had been evaluated
        finally:
            self.checkpoint.close(accumulator, interrupted)
        self.seconds["write"] = written
        self.seconds["evaluate"] = time.perf_counter() - begin - written
        return accumulator

    def _evaluated(self, todo: list[Shard], progress: Progress) -> Generator[ShardResult]:
        keep_all = self.keep == "all"
        if self.cluster is None:
            return on_this_machine(self.evaluator, todo, keep_all, progress)
        from dse.grid.cluster import on_cluster

        return on_cluster(self.cluster, self.evaluator, todo, keep_all, progress, self.notes)

    def _rows(self) -> AbstractContextManager[PointsTable | None]:
        """Return what puts the rows of all shards together, None where only the front is kept."""
        if self.keep != "all":
            return nullcontext()
        return PointsTable(
            self.space, self.folder, self.shards, lambda shard: self.checkpoint.rows(shard, self._rows_again)
        )

    def _rows_again(self, shard: Shard) -> bytes:
        return self.evaluator.shard(shard, True).rows or b""

    def _sample(self) -> pa.Table:
        """Evaluate the designs that pictures show (they were not kept) and write them."""
        table = self.evaluator.designs(np.arange(0, self.space.size, designs.sample_step(self.space.size)))
        table = table.filter(table["feasible"])
        if self.folder is not None:
            write_table(self.folder / "sample.parquet", table, provenance(self.space))
        return table

    def _front_and_best(self, accumulator: Accumulator) -> tuple[pa.Table, pd.DataFrame]:
        """Evaluate the front's designs and the best of each objective (they were not kept); write the front."""
        front = self.evaluator.designs(accumulator.front.index)
        if self.folder is not None:
            write_table(self.folder / "pareto.parquet", front, provenance(self.space))
        best = [accumulator.top(number) for number in range(len(self.space.objectives))]
        top = self.evaluator.designs(np.concatenate(best)).to_pandas()
        top.insert(0, "best_in", np.repeat([o.name for o in self.space.objectives], [len(b) for b in best]))
        return front, top

    def _at_baseline(self) -> pd.DataFrame:
        """Return each objective where one axis alone differs from the base GPU, None where that design cannot run."""
        around, columns = designs.one_axis_at_a_time(self.space)
        rows = []
        for chunk in self.evaluator.chunks(columns) if around else ():
            for number, code in enumerate(chunk.code):
                axis, value = around[len(rows) // len(self.space.objectives)]
                for o in self.space.objectives:
                    result = None if code else float(chunk.results[o.name][number])
                    rows.append((axis, value, o.name, result))
        return pd.DataFrame(rows, columns=["axis", "number", "objective", "at_baseline"])

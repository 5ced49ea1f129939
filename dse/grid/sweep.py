"""The sweep: every design of a space's grid, in bounded memory, to a table, a front and a summary.

A pipeline: threads, devices or a cluster evaluate shards of the grid; an accumulator takes the front, the statistics
and the counts; a checkpoint holds what is finished; at the end all is written as tables.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dse.base.errors import InputError, expect
from dse.base.units import GIGA
from dse.evaluate.space_program import result_columns
from dse.grid.accumulator import Accumulator
from dse.grid.checkpoint import GO_ON, Checkpoint, InMemory, identity, leftovers
from dse.grid.estimate import BYTES_PER_CELL, ON_DISK_LIMIT
from dse.grid.local_executor import on_this_machine
from dse.grid.record import finished, write_record
from dse.grid.result import SweepResult
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator, shards
from dse.grid.store import (
    TableWriter,
    alone_in,
    discard_record,
    provenance,
    refuse_other_kind,
    results_in,
    unpacked,
    write_table,
    writing,
)
from dse.space import designs
from dse.space.space import Space, space_of

IN_MEMORY_LIMIT = 5_000_000
"""Most designs that are kept in memory when no folder is given."""

KEEP = ("all", "front")
"""What is kept: every design; or the front, the best of each objective, the axes' statistics and a sample."""

Progress = Callable[[int], None]


def sweep(
    space: Space | str | Path,
    out: str | Path | None = None,
    progress: Progress | None = None,
    *,
    keep: str | None = None,
    resume: bool = False,
    cluster: Any = None,
) -> SweepResult:
    """Evaluate every design of a space (or of the space file at a path) and return the result.

    ``out``: a folder for ``points.parquet``, ``pareto.parquet`` and ``run.json``; without it, the designs stay in
    memory. ``progress`` is called with the number of designs done since its last call, first with 0 when
    all inputs have been checked and XLA begins to compile. ``keep``: "all" designs (the
    default where they fit: ON_DISK_LIMIT, in memory IN_MEMORY_LIMIT), or only the "front" with the best of each
    objective, statistics of the axes and a sample, however many designs there are. ``resume``: go on with the sweep
    that was interrupted in ``out``; a finished one is read again. ``cluster``: a Dask scheduler's address, "local:N",
    or a cluster object of Dask's. The result does not depend on any of resume, cluster, threads and devices.
    Raises InputError.
    """
    space = space_of(space)
    expect("progress", progress, Callable | None, "give a function that takes the number of designs done")
    expect("resume", resume, bool, "give True or False")
    keep = _what_to_keep(space, keep, out is not None)
    if cluster is not None:
        from dse.grid.cluster import check_cluster

        check_cluster(cluster)
    if out is None:
        if resume:
            raise InputError("--resume needs the folder of the interrupted sweep; give out=...")
        return _Sweep(space, None, keep, progress, cluster, InMemory()).run()
    with results_in(out) as folder, alone_in(folder), writing(folder, GO_ON):
        refuse_other_kind(folder, search=False, name=space.name)
        if resume and (result := finished(folder, space, keep)):
            return result
        return _into(folder, _Sweep.prepared(space, folder, keep, progress, cluster, resume))


def _what_to_keep(space: Space, keep: str | None, on_disk: bool) -> str:
    """Return which designs of a space to keep, "all" or "front"; raises InputError where all do not fit."""
    expect("keep", keep, str | None, f"give {' or '.join(KEEP)}")
    if keep not in (None, *KEEP):
        raise InputError(f"--keep {keep} is not accepted; give {' or '.join(KEEP)}")
    limit = ON_DISK_LIMIT if on_disk else IN_MEMORY_LIMIT
    if keep == "all" and space.size > limit:
        columns = len(result_columns(space)) + len(space.axes) + 2
        size = space.size * columns * (BYTES_PER_CELL if on_disk else 4) / GIGA
        where = "on disk" if on_disk else "in memory"
        raise InputError(
            f"--keep all: {space.size:,} designs of {columns} columns would take about {size:,.0f} GB {where}, and at "
            f"most {limit:,} are kept; give --keep front, or shorter axes"
        )
    return keep or ("all" if space.size <= limit else "front")


def evaluator_of(space: Space, keep: str, devices: Sequence[Any] | None = None) -> SpaceEvaluator:
    """Return what evaluates a sweep's designs on ``devices``, all of this process's by default; ``keep``: as in
    :func:`sweep`."""
    return SpaceEvaluator(space, devices=devices, reduced=keep == "front")


def _into(folder: Path, run: "_Sweep") -> SweepResult:
    assert isinstance(run.checkpoint, Checkpoint)
    discard_record(folder)
    result = run.run()
    write_record(result, folder)
    (folder / ("sample.parquet" if run.keep == "all" else "points.parquet")).unlink(missing_ok=True)
    run.checkpoint.remove()
    return result


@dataclass
class _Sweep:
    space: Space
    folder: Path | None
    keep: str
    progress: Progress | None
    cluster: Any
    checkpoint: InMemory | Checkpoint
    seconds: dict[str, float] = field(default_factory=lambda: {"compile": 0.0, "evaluate": 0.0, "write": 0.0})
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evaluator = evaluator_of(self.space, self.keep)
        self.notes += self.evaluator.notes
        self.shards = shards(self.space.size, self.evaluator.chunk_size)

    @classmethod
    def prepared(cls, space: Space, folder: Path, keep: str, progress: Progress | None, cluster: Any, resume: bool):
        """Return the sweep into a folder, begun anew or where it was interrupted; raises InputError."""
        run = cls(space, folder, keep, progress, cluster, InMemory())
        leftovers(folder)
        which = identity(space, keep, run.evaluator.chunk_size, run.shards[0].stop)
        run.checkpoint = Checkpoint(folder, which, resume)
        return run

    def run(self) -> SweepResult:
        start = time.perf_counter()
        self.evaluator.trace()
        if self.progress:
            self.progress(0)
        self.evaluator.compile()
        self.seconds["compile"] = time.perf_counter() - start
        baseline = self.evaluator.table(self.evaluator.chunk(designs.baseline(self.space)))
        at_baseline = self._at_baseline()
        accumulator = self._evaluate()
        start = time.perf_counter()
        table, sample = self._every_design() if self.keep == "all" else (None, self._sample())
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
            notes=(*self.notes, *(self.checkpoint.notes if isinstance(self.checkpoint, Checkpoint) else ())),
        )

    def _evaluate(self) -> Accumulator:
        """Evaluate all shards that are not finished yet, and return the accumulator of all."""
        accumulator, progress = self.evaluator.empty_accumulator(), self.progress or (lambda count: None)
        done = self.checkpoint.restore(accumulator)
        progress(sum(p.stop - p.start for p in self.shards if p.number in done))
        todo = [p for p in self.shards if p.number not in done]
        begin, written, interrupted = time.perf_counter(), 0.0, True
        try:
            with closing(self._evaluated(todo, progress)) as results:
                for evaluated in results:
                    stamp = time.perf_counter()
                    self.checkpoint.save(evaluated, accumulator)
                    written += time.perf_counter() - stamp
            interrupted = False
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

    def _every_design(self) -> tuple[pa.Table | None, pa.Table]:
        """Put the rows of all shards together, in grid order; return them, if in memory, and the sample of them."""
        writer = TableWriter(self.folder / "points.parquet", provenance(self.space)) if self.folder else None
        tables, sample, start = [], [], 0
        try:
            for shard in self.shards:
                for table in unpacked(self.checkpoint.rows(shard, self._rows_again)):
                    feasible = np.asarray(table["feasible"])
                    sample.append(table.take(designs.sample_positions(self.space.size, feasible, start)))
                    start += len(table)
                    if writer is None:
                        tables.append(table)
                    else:
                        writer.write(table)
            if writer is not None:
                writer.finish()
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        return (pa.concat_tables(tables) if tables else None), pa.concat_tables(sample)

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

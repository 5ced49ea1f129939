"""The sweep: every design of a space's grid, in bounded memory, to a table, a front and a summary."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dse.errors import InputError
from dse.space import designs
from dse.space.space import Space, load_space
from dse.sweep.evaluate import Evaluator
from dse.sweep.pareto import FrontBuilder
from dse.sweep.reasons import Reasons
from dse.sweep.record import write_record
from dse.sweep.result import SweepResult
from dse.sweep.store import TableWriter, design_table, discard_record, open_folder

THREADS = 2
"""Chunks in evaluation at once: one program keeps one core busy for most of its time."""

IN_MEMORY_LIMIT = 5_000_000
"""Most designs that are kept in memory when no folder is given."""

Progress = Callable[[int], None]


@dataclass
class _Chunk:
    start: int
    columns: designs.Columns
    results: dict[str, np.ndarray]
    code: np.ndarray
    reasons: np.ndarray


def sweep(space: Space | str | Path, out: str | Path | None = None, progress: Progress | None = None) -> SweepResult:
    """Evaluate every design of a space (or of the space file at a path) and return what was found.

    ``out``: a folder for ``points.parquet``, ``pareto.parquet`` and ``run.json``; without it, the designs stay in
    memory (at most IN_MEMORY_LIMIT). ``progress`` is called with the number of designs done since its last call.
    Raises InputError.
    """
    space = space if isinstance(space, Space) else load_space(space)
    folder = open_folder(Path(out)) if out is not None else None
    if folder is None and space.size > IN_MEMORY_LIMIT:
        raise InputError(f"{space.name}: {space.size} designs do not stay in memory; give a folder with out=...")
    if folder is not None:
        discard_record(folder)
    result = _Sweep(space, folder, progress or (lambda count: None)).run()
    if folder is not None:
        write_record(result, folder)
    return result


@dataclass
class _Sweep:
    space: Space
    folder: Path | None
    progress: Progress
    seconds: dict[str, float] = field(default_factory=lambda: {"compile": 0.0, "evaluate": 0.0, "write": 0.0})

    def __post_init__(self) -> None:
        self.reasons = Reasons(self.space)
        self.evaluator = Evaluator(self.space, self.reasons)
        self.front = FrontBuilder(len(self.space.objectives))
        self.effects = _AxisStatistics(self.space)
        self.infeasible: Counter[str] = Counter()
        self.tables: list[pa.Table] = []
        self.sample: list[pa.Table] = []

    def run(self) -> SweepResult:
        start = time.perf_counter()
        base = designs.baseline(self.space)
        self.evaluator.compile(base)
        self.seconds["compile"] = time.perf_counter() - start
        baseline = self._table(self._evaluate(0, base))
        around, columns = designs.one_axis_at_a_time(self.space)
        at_baseline = self._at_baseline(around, columns)
        self._all_designs()
        front = self._write_front()
        return SweepResult(
            space=self.space,
            baseline=baseline.to_pandas(),
            front=front.to_pandas(),
            axis_effects=self.effects.frame(at_baseline),
            sample=pa.concat_tables(self.sample).to_pandas(),
            n=self.space.size,
            n_feasible=self.space.size - sum(self.infeasible.values()),
            infeasible=dict(sorted(self.infeasible.items(), key=lambda item: (-item[1], item[0]))),
            seconds=self.seconds,
            folder=self.folder,
            table=None if self.folder else pa.concat_tables(self.tables),
        )

    def _all_designs(self) -> None:
        writer = TableWriter(self.folder / "points.parquet", self._metadata()) if self.folder else None
        begin, written = time.perf_counter(), 0.0
        try:
            for chunk in self._chunks():
                table = self._table(chunk)
                self._take(chunk, table)
                stamp = time.perf_counter()
                if writer is None:
                    self.tables.append(table)
                else:
                    writer.write(table)
                written += time.perf_counter() - stamp
                self.progress(len(chunk.code))
            if writer is not None:
                writer.finish()
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
        self.seconds["write"] = written
        self.seconds["evaluate"] = time.perf_counter() - begin - written

    def _chunks(self) -> Iterator[_Chunk]:
        """Yield the grid's chunks in order; a few are evaluated ahead of the one in hand."""
        size, step = self.space.size, self.evaluator.chunk
        with ThreadPoolExecutor(THREADS) as pool:
            waiting: deque = deque()
            try:
                for start in range(0, size, step):
                    waiting.append(pool.submit(self._grid_chunk, start, min(start + step, size)))
                    if len(waiting) > THREADS:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _grid_chunk(self, start: int, stop: int) -> _Chunk:
        return self._evaluate(start, designs.grid(self.space, start, stop))

    def _evaluate(self, start: int, columns: designs.Columns) -> _Chunk:
        results = self.evaluator(columns)
        code = self.reasons.add_non_finite(results.pop("code"), results)
        return _Chunk(start, columns, results, code, self.reasons.texts(code, columns))

    def _table(self, chunk: _Chunk) -> pa.Table:
        blank = np.asarray(self.reasons.is_blank(chunk.code))
        return design_table(self.space, chunk.columns, chunk.results, chunk.reasons, blank)

    def _costs(self, chunk: _Chunk) -> np.ndarray:
        return np.stack([o.sign * chunk.results[o.name].astype(float) for o in self.space.objectives], axis=1)

    def _take(self, chunk: _Chunk, table: pa.Table) -> None:
        """Fold a chunk into the front, the statistics of the axes, the counts of reasons, and the sample."""
        feasible = np.flatnonzero(chunk.code == 0)
        costs = self._costs(chunk)[feasible]
        self.front.add(costs, chunk.start + feasible)
        self.effects.add(chunk, feasible)
        if len(feasible) < len(chunk.code):
            self.infeasible.update(Counter(chunk.reasons[chunk.code > 0].tolist()))
        self.sample.append(table.take(designs.sample_positions(self.space.size, chunk.code == 0, chunk.start)))

    def _write_front(self) -> pa.Table:
        """Evaluate the front's designs again (they were not kept) and write them."""
        index = self.front.index
        parts = []
        for begin in range(0, max(len(index), 1), self.evaluator.chunk):
            part = index[begin : begin + self.evaluator.chunk]
            columns = designs.with_links(self.space, self.space.at(part))
            parts.append(self._table(self._evaluate(0, columns)) if len(part) else self._empty())
        table = pa.concat_tables(parts)
        if self.folder is not None:
            writer = TableWriter(self.folder / "pareto.parquet", self._metadata())
            writer.write(table)
            writer.finish()
        return table

    def _empty(self) -> pa.Table:
        return self._table(self._evaluate(0, designs.baseline(self.space))).slice(0, 0)

    def _at_baseline(self, around: list[tuple[str, float]], columns: designs.Columns) -> pd.DataFrame:
        rows = []
        for begin in range(0, len(around), self.evaluator.chunk):
            stop = begin + self.evaluator.chunk
            chunk = self._evaluate(0, {name: values[begin:stop] for name, values in columns.items()})
            blank = np.asarray(self.reasons.is_blank(chunk.code))
            for number, (axis, value) in enumerate(around[begin:stop]):
                for o in self.space.objectives:
                    result = None if blank[number] else float(chunk.results[o.name][number])
                    rows.append((axis, value, o.name, result))
        return pd.DataFrame(rows, columns=["axis", "number", "objective", "at_baseline"])

    def _metadata(self) -> dict[str, str]:
        return {"dse.space": self.space.name, "dse.digest": self.space.digest}


class _AxisStatistics:
    """Median and best of each objective over the feasible designs with each value of each axis, in bounded memory.

    The median comes from histograms on a logarithmic scale (1 % wide bins, wider on axes of very many values) and is
    exact to half a bin; there is none where an objective leaves the scale.
    """

    LOW, HIGH = 1e-9, 1e9
    CELLS = 2**23
    """Counts held for one axis."""

    def __init__(self, space: Space) -> None:
        self.space = space
        objectives = len(space.objectives)
        bins = [int(np.clip(self.CELLS // (len(axis) * objectives), 64, 4096)) for axis in space.axes]
        self.counts = [np.zeros((len(a), objectives, b), np.int64) for a, b in zip(space.axes, bins, strict=True)]
        self.best = [np.full((len(axis), objectives), np.inf) for axis in space.axes]
        self.off_scale = np.zeros(objectives, dtype=bool)

    def add(self, chunk: _Chunk, feasible: np.ndarray) -> None:
        """Take the feasible designs of a chunk."""
        order = [np.argsort(axis.numbers) for axis in self.space.axes]
        places = [
            rank[np.searchsorted(np.sort(axis.numbers), chunk.columns[axis.name][feasible])]
            for axis, rank in zip(self.space.axes, order, strict=True)
        ]
        for number, objective in enumerate(self.space.objectives):
            values = chunk.results[objective.name][feasible].astype(float)
            self.off_scale[number] |= bool(((values < self.LOW) | (values > self.HIGH)).any())
            depth = np.log(np.clip(values, self.LOW, self.HIGH) / self.LOW) / np.log(self.HIGH / self.LOW)
            for place, counts, best in zip(places, self.counts, self.best, strict=True):
                bins = np.minimum((depth * counts.shape[2]).astype(int), counts.shape[2] - 1)
                np.add.at(counts[:, number], (place, bins), 1)
                np.minimum.at(best[:, number], place, objective.sign * values)

    def frame(self, at_baseline: pd.DataFrame) -> pd.DataFrame:
        """Return the statistics beside the one-axis-at-a-time results."""
        rows = [
            (axis.name, axis.numbers[i], value, axis.unit, objective.name, *self._figures(number, i, j))
            for number, axis in enumerate(self.space.axes)
            for i, value in enumerate(axis.values)
            for j, objective in enumerate(self.space.objectives)
        ]
        frame = pd.DataFrame(rows, columns=["axis", "number", "value", "unit", "objective", "median", "best"])
        return frame.merge(at_baseline, on=["axis", "number", "objective"], how="left")

    def _figures(self, axis: int, value: int, objective: int) -> tuple[float | None, float | None]:
        """Median and best of one objective at one value of an axis; None where there is none."""
        cumulative = self.counts[axis][value, objective].cumsum()
        if not cumulative[-1]:
            return None, None
        best = self.space.objectives[objective].sign * self.best[axis][value, objective]
        if self.off_scale[objective]:
            return None, best
        middle = (np.searchsorted(cumulative, cumulative[-1] / 2) + 0.5) / len(cumulative)
        return self.LOW * (self.HIGH / self.LOW) ** middle, best

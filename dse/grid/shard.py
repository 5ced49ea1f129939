"""One portion of a sweep: a run of consecutive designs, evaluated chunk by chunk and folded, where it stands.

The same code runs in a thread of this process and in a worker of a cluster. A portion's front may lack what designs of
portions evaluated here before dominate; the front of all portions is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dse.evaluate import space_program as evaluate
from dse.evaluate.infeasibility import Masks, Reasons
from dse.evaluate.space_program import Evaluator
from dse.grid.accumulator import Fold
from dse.grid.designs import Grid
from dse.grid.store import design_table, packed
from dse.space import designs
from dse.space.space import Space

PORTIONS = 64
"""Least portions of a large sweep: what is interrupted loses a few of them."""

LONGEST = 32
"""Most chunks of a portion: what it leaves behind is sent, saved and merged once for so many."""


@dataclass(frozen=True)
class Portion:
    """Designs ``start`` to ``stop`` of the grid; ``number`` counts portions."""

    number: int
    start: int
    stop: int


def portions(size: int, chunk: int) -> list[Portion]:
    """Return the portions of a grid of ``size`` designs, each a whole number of chunks but the last."""
    step = chunk * int(np.clip(size // (chunk * PORTIONS), 1, LONGEST))
    return [Portion(i, start, min(start + step, size)) for i, start in enumerate(range(0, size, step))]


@dataclass(frozen=True)
class PortionResult:
    """A portion's result: its ``fold``, and its designs as a packed table where all are kept."""

    portion: Portion
    fold: Fold
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
    """Everything that evaluates designs of one space on the devices of this process; ``chunk``: designs a call."""

    def __init__(self, space: Space, chunk: int | None = None) -> None:
        self.space = space
        self.reasons = Reasons(space)
        self.evaluator = Evaluator(space, self.reasons, chunk or evaluate.CHUNK)
        self.chunk_size = self.evaluator.chunk
        self.devices = self.evaluator.devices
        self.grid = Grid(space)
        self._killers = self.empty_fold().front.killers
        self._objectives = list(dict.fromkeys(o.name for o in space.objectives))

    def trace(self) -> None:
        """Do what is Python's part of :meth:`compile`."""
        self.evaluator.trace(self.devices)

    def compile(self) -> None:
        """Compile the program for every device, ahead of the first designs."""
        self.evaluator.compile(self.devices)

    def empty_fold(self) -> Fold:
        """Return a fold of no designs."""
        return Fold([len(axis) for axis in self.space.axes], [o.sign for o in self.space.objectives])

    def portion(
        self, portion: Portion, keep_all: bool, tick: Callable[[int], None] = lambda count: None
    ) -> PortionResult:
        """Evaluate a portion, whole on one device; ``tick`` is called with the number of designs of each chunk."""
        device = self.devices[portion.number % len(self.devices)]
        fold, tables = self.empty_fold(), []
        fold.front.killers = self._killers
        for start in range(portion.start, portion.stop, self.chunk_size):
            stop = min(start + self.chunk_size, portion.stop)
            digits = self.grid.digits(start, stop)
            names = None if keep_all else self._objectives
            chunk = self.chunk(self.grid.columns(digits, stop - start), names, device)
            values = np.array([chunk.results[name] for name in self._objectives], float)
            feasible = chunk.code == 0
            fold.add(start, feasible, values)
            if not feasible.all():
                fold.reasons.update(self.reasons.counts(chunk.code, chunk.columns))
            if keep_all:
                tables.append(self.table(chunk))
            tick(stop - start)
        self._killers = fold.front.killers
        return PortionResult(portion, fold, packed(tables) if keep_all else None)

    def chunk(self, columns: designs.Columns, names: Sequence[str] | None = None, device: Any = None) -> Chunk:
        """Evaluate at most a chunk of designs; ``names``: the results wanted, all by default."""
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

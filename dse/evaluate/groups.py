"""Designs in groups that have some attributes in common, so that what depends on a kernel and on these alone is
computed once a combination of their numbers instead of once a design.

In a sweep designs come in the order of the grid, and the slower axes stay for many of them. A chunk is put in order by
the attributes that its groups have in common; the last design of each is repeated to fill its last group.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np

from dse.evaluate.batching import in_blocks
from dse.evaluate.candidates import Candidates
from dse.space import links
from dse.space.axis import Axis
from dse.space.designs import SAMPLE, with_links
from dse.space.space import Space

SIZES = range(256, 513, 32)
"""Designs of a group: whole vectors, enough to hide what is done once a group, few enough for a core's L2 cache."""

TABULATED = 40.0
"""What an operation on a kernel and a combination costs in NumPy, in operations on pairs."""

BEGUN = 16.0
"""What a group costs beside its designs, in designs: loops that begin anew."""

READ = 4.0
"""What a number of a table costs a group, in operations on pairs."""

MOST_BYTES = 64e6
"""Size of the tables of all combinations that may be kept."""

OTHERS = 1.0
"""What the rest of an evaluation costs, in all the pairs' operations: the chosen candidates' stacks, power, metrics
(docs/model/speed.md 4)."""

STARTS = 16
"""Chunks of the grid whose groups are counted."""

Columns = Mapping[str, np.ndarray]


class Cost(NamedTuple):
    """Operations of a design's pairs, those of a combination's table, and its numbers."""

    pairs: float
    table: float
    columns: int


WEIGHTS = {"reciprocal": 10, "div": 16, "exp": 11, "log": 11, "log1p": 11, "pow": 22}
"""Operations that a primitive takes on a CPU, where it is not 1."""


def cost_of(every: Sequence[Candidates], attributes: Sequence[str]) -> Cost:
    """Return the cost of having attributes in common in groups of designs, of all workloads' candidates."""
    operations = [candidates.operations(attributes) for candidates in every]
    pairs, table = (sum(map(_weighed, part)) for part in list(zip(*operations, strict=True))[:2])
    return Cost(pairs, table, sum(o.columns for o in operations))


def _weighed(operations: Mapping[str, int]) -> float:
    return float(sum(WEIGHTS.get(name, 1) * count for name, count in operations.items()))


@dataclass(frozen=True)
class Groups:
    """Groups of ``size`` designs that have ``attributes`` in common; a program takes ``count`` of them."""

    attributes: tuple[str, ...]
    size: int
    count: int

    def places(self, columns: Columns) -> np.ndarray:
        """Return which designs stand in each group, (groups, size), each design at least once."""
        order, lengths = _in_order([columns[name] for name in self.attributes])
        filled = -(-lengths // self.size) * self.size
        last = np.repeat(np.cumsum(lengths) - 1, filled)
        shift = np.repeat(np.cumsum(filled - lengths) - (filled - lengths), filled)
        return order[np.minimum(np.arange(len(last)) - shift, last)].reshape(-1, self.size)

    def evaluated(self, program: Callable[..., Columns], tables: "TableCache", columns: Columns) -> Columns:
        """Return what ``program`` gives for designs, as they come, (designs,).

        It is called with columns (groups, size) and the groups' tables, and gives arrays (groups, size).
        """
        places = self.places(columns)
        arranged = {name: values[places] for name, values in columns.items()}
        common = {name: arranged[name][:, 0] for name in self.attributes}
        found = in_blocks(program, self.count, arranged, tables(common))
        rows = np.empty(len(next(iter(columns.values()))), int)
        rows[places.reshape(-1)] = np.arange(places.size)
        return {name: values.reshape(-1)[rows] for name, values in found.items()}


class TableCache:
    """The tables of groups, by workload and kind of kernels: each combination of numbers is computed once.

    ``compute``: the tables (groups, ...) of columns (groups,). Several threads may call. Beyond MOST_BYTES, as where
    designs are not the grid's, what is kept is forgotten.
    """

    def __init__(self, compute: Callable[[Columns], Any]) -> None:
        self._compute, self._lock = compute, Lock()
        self._rows: dict[bytes, int] = {}
        self._tables: Any = None

    def __call__(self, common: Columns) -> Any:
        """Return the tables of groups with these attributes, each (groups,)."""
        keys = [row.tobytes() for row in np.stack(list(common.values()), axis=1)]
        with self._lock:
            new = {key: place for place, key in enumerate(keys) if key not in self._rows}
            if new:
                self._add(list(new), self._compute({name: x[list(new.values())] for name, x in common.items()}))
            tables, rows = self._tables, [self._rows[key] for key in keys]
            self._forget()
        return jax.tree.map(lambda table: table[rows], tables)

    def _add(self, keys: list[bytes], new: Any) -> None:
        whole = new if self._tables is None else jax.tree.map(lambda *x: np.concatenate(x), self._tables, new)
        self._tables = whole
        self._rows |= {key: len(self._rows) + place for place, key in enumerate(keys)}

    def _forget(self) -> None:
        if sum(x.nbytes for x in jax.tree.leaves(self._tables)) > MOST_BYTES:
            self._tables, self._rows = None, {}


def _in_order(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return an order in which designs that have all of ``columns`` in common follow each other, and how
    many each are."""
    changes = np.any([values[1:] != values[:-1] for values in columns], axis=0)
    starts = np.flatnonzero(np.r_[True, changes])
    lengths = np.diff(np.r_[starts, len(columns[0])])
    kind = np.zeros(len(starts), np.int64)
    for values in columns:  # one after the other: ten times faster than the distinct rows of all
        distinct, place = np.unique(values[starts], return_inverse=True)
        kind = np.unique(kind * len(distinct) + place, return_inverse=True)[1]
    if kind.max() + 1 == len(kind):  # no combination comes back
        return np.arange(len(columns[0])), lengths
    kind = np.repeat(kind, lengths)
    return np.argsort(kind.astype(np.min_scalar_type(kind.max())), kind="stable"), np.bincount(kind)


def chosen_groups(space: Space, chunk: int, cost: Callable[[Sequence[str]], Cost], together: int = 1) -> Groups | None:
    """Return the groups that make a sweep of a space fastest, which takes ``chunk`` designs after each other; None
    where none helps.

    ``cost``: of having attributes in common; ``together``: groups of a block. Axes are added one after the other as
    long as that saves operations.
    """
    starts = np.unique(np.linspace(0, max(space.size - chunk, 0), STARTS).astype(np.int64))
    chunks = [with_links(space, space.at(start + np.arange(min(chunk, space.size)))) for start in starts]
    pairs = cost(()).pairs
    best, least = None, (1.0 + OTHERS) * pairs
    common: list[Axis] = []
    while True:
        options = [
            _of_axes(space, [*common, axis], chunks, cost, OTHERS * pairs, together)
            for axis in space.axes
            if axis not in common
        ]
        if not options:
            return best
        price, groups, axes = min(options, key=lambda option: option[0])
        if price >= least:
            return best
        best, least, common = groups, price, axes


def _of_axes(
    space: Space,
    axes: list[Axis],
    chunks: Sequence[Columns],
    cost: Callable[[Sequence[str]], Cost],
    others: float,
    together: int,
) -> tuple[float, Groups | None, list[Axis]]:
    """Return the operations of a design in groups that have the values of ``axes`` in common, and the groups;
    ``others``: operations of a design that no group saves."""
    names = {axis.name for axis in axes}
    deciding = {
        name: {axis.name for axis in links.deciding(space.axes, space.links, [name])} for name, _ in space.links
    }
    attributes = (*(axis.name for axis in axes), *(name for name, those in deciding.items() if those <= names))
    mine, combinations = cost(attributes), links.count_of(axes)
    if combinations * mine.columns * np.dtype(np.float32).itemsize > MOST_BYTES:
        return np.inf, None, axes
    lengths = [_in_order([np.asarray(columns[name]) for name in names])[1] for columns in chunks]
    counts = [max(int(np.sum(-(-each // size))) for each in lengths) for size in SIZES]
    counts = [-(-count // together) * together for count in counts]
    prices = []
    for size, count in zip(SIZES, counts, strict=True):
        # A picture's designs lie scattered over the grid, and so does a front.
        scattered = 2 * max(min(combinations, SAMPLE) * size - SAMPLE, 0)
        groups = count / lengths[0].sum() + scattered / size / space.size
        prices.append(groups * ((size + BEGUN) * (mine.pairs + others) + READ * mine.columns))
    best = int(np.argmin(prices))
    price = prices[best] + TABULATED * mine.table * combinations / space.size
    return price, Groups(attributes, SIZES[best], counts[best]), axes

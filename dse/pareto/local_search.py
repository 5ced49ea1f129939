"""Pareto local search on a grid: every generation of designs is drawn around the front so far.

Archive-based local search (Paquete, Chiarandini and Stützle, "Pareto local optimum sets in the biobjective traveling
salesman problem", 2004) with whole generations in place of single neighbours, differential steps (Storn and Price,
1997) and uniform crossover between near members of the front, so that the model always gets a full batch. Everything
is arrays of grid positions; nothing here knows what an axis means.
"""

from dataclasses import dataclass, field

import numpy as np

from dse.base.pareto_filter import pareto_mask
from dse.pareto.fronts import box_of

SLOTS = 2**27
"""Marks of evaluated designs: one each where the grid has no more designs, else shared (a design may then be taken
for an evaluated one, and is passed over: one in a hundred after a million evaluations)."""

POOL = 4096
"""Members of the front that one generation draws its parents from."""

CELLS = 24
"""Cells an objective's range is cut into, to tell crowded from thin stretches of the front."""

ROUNDS = 8
"""Attempts to fill a generation around the front before the rest is drawn at random."""


@dataclass(frozen=True)
class SearchGrid:
    """The grid of a search: axes of these lengths.

    A design is its number (the last axis varies fastest) or its digits, one an axis.

    ``ordered``: whether neighbours on an axis are neighbours in fact; without, a step goes anywhere.
    """

    lengths: np.ndarray
    ordered: np.ndarray

    @property
    def strides(self) -> np.ndarray:
        """How far apart two neighbours on each axis are in number."""
        return np.append(np.cumprod(self.lengths[:0:-1])[::-1], 1).astype(np.int64)

    @property
    def size(self) -> int:
        """Designs in the grid."""
        return int(np.prod(self.lengths, dtype=object))

    def digits(self, index: np.ndarray) -> np.ndarray:
        """Return the digits of designs, shape (designs, axes)."""
        return index[:, None] // self.strides % self.lengths

    def index(self, digits: np.ndarray) -> np.ndarray:
        """Return the numbers of designs from their digits."""
        return digits @ self.strides


class EvaluatedSet:
    """The designs of a grid that have been evaluated."""

    def __init__(self, size: int) -> None:
        self._marks = np.zeros(min(size, SLOTS), dtype=bool)
        self._shared = size > SLOTS

    def _slot(self, index: np.ndarray) -> np.ndarray:
        if not self._shared:
            return index
        return ((index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(37)).astype(np.int64)  # Knuth

    def add(self, index: np.ndarray) -> None:
        """Mark designs."""
        self._marks[self._slot(index)] = True

    def has(self, index: np.ndarray) -> np.ndarray:
        """Return which designs are marked."""
        return self._marks[self._slot(index)]

    def new(self, index: np.ndarray) -> np.ndarray:
        """Return the distinct unmarked ones of ``index``, in the order they come."""
        index = index[~self.has(index)]
        _, first = np.unique(index, return_index=True)
        return index[np.sort(first)]


@dataclass
class LocalSearch:
    """The state of the search: its front so far, and the designs that have been evaluated.

    It depends on the generations alone, so that the same ones make it ask for the same designs. Before any feasible
    design, the front is that of the least violation.
    """

    grid: SearchGrid
    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (members,) number in the grid
    costs: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (members, objectives), to be minimised
    violation: np.ndarray = field(default_factory=lambda: np.empty(0))  # (members,) 0 where feasible [1]
    born: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (members,) generation of each
    generations: int = 0

    def __post_init__(self) -> None:
        self.evaluated = EvaluatedSet(self.grid.size)

    def tell(self, index: np.ndarray, costs: np.ndarray, violation: np.ndarray) -> np.ndarray:
        """Add a generation's designs and return the positions of those that entered the front.

        Those that can enter it suffice, after ``evaluated.add`` of all.
        """
        self.evaluated.add(index)
        self.generations += 1
        first = len(self.index)
        costs = np.vstack([self.costs.reshape(-1, costs.shape[1]), costs])
        violation = np.concatenate([self.violation, violation])
        nondominated = np.flatnonzero(violation <= violation.min(initial=np.inf))
        nondominated = nondominated[pareto_mask(costs[nondominated])]
        self.index, self.costs = np.concatenate([self.index, index])[nondominated], costs[nondominated]
        self.born = np.concatenate([self.born, np.full(len(index), self.generations)])[nondominated]
        self.violation = violation[nondominated]
        return nondominated[nondominated >= first] - first

    def ask(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Return at most ``count`` designs to evaluate, none evaluated before; none where every one has been."""
        if len(self.index) == 0:
            return self.evaluated.new(self.grid.index(spread_digits(self.grid, count, random)))
        new = np.empty(0, np.int64)
        pool = self._pool(random)
        for _ in range(ROUNDS):
            new = self.evaluated.new(np.concatenate([new, self._children(pool, 2 * count, random)]))
            if len(new) >= count:
                return random.permutation(new)[:count]
        rest = self._anywhere(4 * count, random)
        return self.evaluated.new(np.concatenate([new, rest]))[:count]

    def _anywhere(self, count: int, random: np.random.Generator) -> np.ndarray:
        if self.grid.size <= SLOTS // 64:
            return random.permutation(self.grid.size)
        return random.integers(self.grid.size, size=count)

    def _pool(self, random: np.random.Generator) -> np.ndarray:
        """Members that this generation draws parents from: young, and in thin stretches of the front."""
        cells = np.minimum((box_of(self.costs) * CELLS).astype(np.int64), CELLS - 1)
        _, cell, crowd = np.unique(
            cells @ (CELLS ** np.arange(cells.shape[1])), return_inverse=True, return_counts=True
        )
        weight = 1.0 / (1.0 + self.generations - self.born) / crowd[cell]
        size = min(POOL, len(self.index))
        # The largest of weighted exponentials: a weighted draw without replacement (Efraimidis and Spirakis, 2006).
        keys = random.exponential(size=len(weight)) / weight
        return np.argpartition(keys, size - 1)[:size]

    def _children(self, pool: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
        """Return designs around members of the pool: three tenths by differences, two by crossover (half of these then
        step, too), the others by steps."""
        digits = self.grid.digits(self.index[pool])
        age = 1.0 + self.generations - self.born[pool]
        parent = random.choice(len(pool), size=count, p=(1.0 / age) / (1.0 / age).sum())
        near = _Near(box_of(self.costs[pool]), random)
        mate, third = near(parent), near(parent)
        child = digits[parent]
        kind = random.random((count, 1))
        difference = np.where(self.grid.ordered, digits[mate] - digits[third], 0)
        child = np.where(kind < 0.3, child + difference, child)
        swapped = random.random(child.shape) < 0.5
        child = np.where((kind >= 0.3) & (kind < 0.5) & swapped, digits[mate], child)
        child = child + np.where(kind >= 0.4, self._steps(child.shape, random), 0)
        child = np.where(self.grid.ordered, np.clip(child, 0, self.grid.lengths - 1), child % self.grid.lengths)
        return self.grid.index(child)

    def _steps(self, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
        """Steps along one axis, or a few: mostly to the neighbour, sometimes up to a quarter of the axis."""
        first = random.integers(shape[1], size=shape[0])
        on = (np.arange(shape[1]) == first[:, None]) | (random.random(shape) < 0.5 / shape[1])
        reach = np.maximum(self.grid.lengths / 4.0, 1.0)
        length = np.exp(random.random(shape) ** 2 * np.log(reach)).round()
        length = np.where(self.grid.ordered, length * random.choice([-1, 1], shape), random.integers(1, 2**31, shape))
        return np.where(on, length, 0).astype(np.int64)


class _Near:
    """Draws near members for members of a set of points: neighbours along a random direction."""

    def __init__(self, points: np.ndarray, random: np.random.Generator) -> None:
        self._random = random
        self._order = np.argsort(points @ random.dirichlet(np.ones(points.shape[1])), kind="stable")
        self._place = np.empty(len(points), np.int64)
        self._place[self._order] = np.arange(len(points))

    def __call__(self, member: np.ndarray, reach: int = 10) -> np.ndarray:
        offset = self._random.integers(1, reach, len(member)) * self._random.choice([-1, 1], len(member))
        return self._order[np.clip(self._place[member] + offset, 0, len(self._order) - 1)]


def spread_digits(grid: SearchGrid, count: int, random: np.random.Generator) -> np.ndarray:
    """Return ``count`` designs that spread over every axis (a Latin hypercube), as digits (designs, axes)."""
    columns = [random.permutation(count) * int(length) // count for length in grid.lengths]
    return np.stack(columns, axis=1) if columns else np.zeros((1, 0), np.int64)

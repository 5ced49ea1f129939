"""What a sweep keeps of designs, inside a program: counts, statistics of the axes, and the few that may be needed.

The rest of a chunk never leaves the device. Designs that may be on the front, among the best of an objective, or beyond
the histograms' windows are survivors: their places and objectives are put together.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.evaluate.batching import float_type
from dse.evaluate.infeasibility import Reasons
from dse.grid.statistics import LOWEST, OCTAVE, SHIFT, AxisStatistics, runs_of

WINDOW = 10
"""Octaves of an objective that are counted on a device: beyond, designs are survivors."""

KILLERS = 32
"""Designs that others are held against on a device."""

CELLS = 2**17
"""Most counts of axes that are counted together."""

LARGEST = np.float32(3e38)
"""Stands for a cost where there is none: fast-math knows no infinity."""

WORD = 32
"""Designs whose marks stand in one word."""

State = dict[str, Any]
"""Counts (objectives, cells) and lowest costs (objectives, combinations) of axes counted together; reasons."""


class Filters(NamedTuple):
    """What decides which designs survive: arrays that the host makes anew as it learns."""

    killers: np.ndarray  # (KILLERS, objectives) costs
    weights: np.ndarray  # (objectives + 1, objectives) of costs: the designs of a row with the least sums lead it
    top_cost: np.ndarray  # (objectives,) a design of a higher cost is not among the best
    top_number: np.ndarray  # (objectives, parts) nor is one of the same cost and a higher number
    first: np.ndarray  # (objectives,) first bin of the window
    clipped: np.ndarray  # (objectives,) off the scale: counted at the window's ends


class Survivors(NamedTuple):
    """The survivors of a chunk: how many, their places (capacity,) and objectives (capacity, objectives)."""

    survived: Any
    place: Any
    values: Any


class Reduction:
    """The reduction of chunks of designs of a space, called inside a program."""

    def __init__(self, reasons: Reasons, lengths: Sequence[int]) -> None:
        space = reasons.space
        self.lengths, self.objectives = list(lengths), [o.name for o in space.objectives]
        self._signs = np.asarray([o.sign for o in space.objectives])
        self._shifts = AxisStatistics(tuple(lengths), len(self._signs)).shifts
        self._together = _together(self.lengths, self._shifts)
        self.parts = _parts(self.lengths)
        names = [axis.name for axis in space.axes]
        self._capacity = names.index("dram_gb") if "dram_gb" in names else None
        self.reasons, self._first_objective = len(reasons.all), len(reasons.all) - len(self.objectives)

    def empty(self) -> State:
        """Return the state of no designs."""
        count = len(self.objectives)
        cells = [self._combinations(axes) for axes in self._together]
        bins = [self._bins(axes) for axes in self._together]
        capacities = 1 if self._capacity is None else self.lengths[self._capacity]
        return {
            "counts": [np.zeros(count * c * b, np.int32) for c, b in zip(cells, bins, strict=True)],
            "best": [np.full(count * c, LARGEST, float_type()) for c in cells],
            "reasons": np.zeros(self.reasons * capacities, np.int32),
        }

    def _combinations(self, axes: Sequence[int]) -> int:
        return int(np.prod([self.lengths[a] for a in axes]))

    def _bins(self, axes: Sequence[int]) -> int:
        return WINDOW * OCTAVE >> self._shifts[axes[0]]

    def __call__(
        self,
        state: State,
        filters: Filters,
        digits: Sequence[Array],
        values: Array,
        code: Array,
        valid: Array,
        row: int,
    ) -> tuple[State, Array, Array]:
        """Return the state with a chunk's designs, which of them survive, and their codes, -1 where not ``valid``.

        ``digits``: of each axis (designs,); ``values``: objectives, (objectives, designs), which come in rows of so
        many.
        """
        code = self._marked(values, code)
        feasible = valid & (code == 0)
        costs = jnp.where(feasible, self._signs[:, None].astype(values.dtype) * values, LARGEST)
        bins, beyond = self._placed(filters, values)
        counted = (feasible & ~beyond).astype(jnp.int32)
        new = {"counts": [], "best": [], "reasons": self._add_reasons(state["reasons"], digits, code, valid)}
        for axes, counts, best in zip(self._together, state["counts"], state["best"], strict=True):
            place = self._index(digits, axes) + self._combinations(axes) * jnp.arange(len(values))[:, None]
            cell = place * self._bins(axes) + (bins >> self._shifts[axes[0]])
            new["counts"].append(_flat(counts, cell).add(counted.reshape(-1), mode="promise_in_bounds"))
            new["best"].append(_flat(best, place).min(costs.reshape(-1), mode="promise_in_bounds"))
        dominated = _dominated(costs, filters.killers) | _led(costs, feasible, filters.weights, row)
        wanted = ~dominated | self._among_best(filters, digits, costs) | beyond.any(axis=0)
        return new, feasible & wanted, jnp.where(valid, code, -1)

    def _marked(self, values: Array, code: Array) -> Array:
        """The codes, with designs whose objectives are not finite marked: told by the bits, which fast-math leaves."""
        wide = values.dtype == jnp.float64
        exponent = np.int64(0x7FF << 52) if wide else np.int32(0x7F800000)
        bad = lax.bitcast_convert_type(values, jnp.int64 if wide else jnp.int32) & exponent == exponent
        for number in range(len(self.objectives)):
            code = jnp.where((code == 0) & bad[number], self._first_objective + number, code)
        return code

    def _placed(self, filters: Filters, values: Array) -> tuple[Array, Array]:
        """The bins of values in their windows, and which lie beyond, (objectives, designs)."""
        bits = lax.bitcast_convert_type(values.astype(jnp.float32), jnp.int32)
        place = ((bits - LOWEST) >> SHIFT) - jnp.asarray(filters.first)[:, None]
        inside = jnp.clip(place, 0, WINDOW * OCTAVE - 1)
        return inside, (inside != place) & ~jnp.asarray(filters.clipped)[:, None]

    def _index(self, digits: Sequence[Array], axes: Sequence[int]) -> Array:
        index = digits[axes[0]]
        for axis in axes[1:]:
            index = index * self.lengths[axis] + digits[axis]
        return index

    def _add_reasons(self, reasons: Array, digits: Sequence[Array], code: Array, valid: Array) -> Array:
        place = code
        if self._capacity is not None:
            place = code * self.lengths[self._capacity] + digits[self._capacity]
        return jnp.asarray(reasons).at[place].add(valid.astype(jnp.int32), mode="promise_in_bounds")

    def _among_best(self, filters: Filters, digits: Sequence[Array], costs: Array) -> Array:
        """Whether designs may be among the best of an objective: of the same cost, those of lower numbers."""
        found = jnp.zeros(costs.shape[1], bool)
        parts = [self._index(digits, axes) for axes in self.parts]
        for cost, least, number in zip(costs, filters.top_cost, filters.top_number, strict=True):
            before = jnp.ones_like(found)
            for part, limit in reversed(list(zip(parts, number, strict=True))):
                before = (part < limit) | ((part == limit) & before)
            found |= (cost < least) | ((cost == least) & before)
        return found

    def by_axis(self, state: State) -> tuple[list[Array], Array]:
        """Return the counts of each run of axes with bins alike (objectives, values, bins), and the lowest costs of
        all axes (objectives, values): axis after axis, value after value."""
        counts: dict[int, Array] = {}
        lowest: dict[int, Array] = {}
        for axes, cells, best in zip(self._together, state["counts"], state["best"], strict=True):
            shape = (len(self.objectives), *(self.lengths[a] for a in axes))
            for place, axis in enumerate(axes):
                others = tuple(1 + k for k in range(len(axes)) if k != place)
                counts[axis] = jnp.reshape(cells, (*shape, -1)).sum(axis=others)
                lowest[axis] = jnp.reshape(best, shape).min(axis=others)
        if not lowest:
            return [], jnp.zeros((len(self.objectives), 0), float_type())
        runs = [jnp.concatenate([counts[a] for a in axes], axis=1) for axes in runs_of(self._shifts)]
        return runs, jnp.concatenate([lowest[a] for a in sorted(lowest)], axis=1)

    def limits(self, numbers: np.ndarray) -> np.ndarray:
        """Return designs' numbers (designs,) in the parts that are compared one after the other, (designs, parts)."""
        found = []
        for axes in reversed(self.parts):
            numbers, part = np.divmod(numbers, self._combinations(axes))
            found.append(part)
        return np.stack(found[::-1], axis=1).astype(np.int32) if found else np.zeros((len(numbers), 0), np.int32)


def _flat(table: Any, places: Array) -> Any:
    return jnp.asarray(table).at[places.reshape(-1)]


def _dominated(costs: Array, killers: Any) -> Array:
    """Which designs a killer is nowhere worse than, and somewhere better, (designs,)."""
    found = jnp.zeros(costs.shape[1], bool)
    for row in range(KILLERS):
        found |= _dominates(killers[row], costs)
    return found


def _led(costs: Array, feasible: Array, weights: Any, row: int) -> Array:
    """Which designs the leaders of their row dominate, (designs,): those whose weighted sums of costs are least."""
    rows, inside = costs.reshape(len(costs), -1, row), feasible.reshape(-1, row)
    found, places = jnp.zeros(inside.shape, bool), jnp.arange(row, dtype=jnp.int32)
    for weight in weights:
        total = sum(w * cost for w, cost in zip(weight, jnp.where(inside, rows, 0), strict=True))
        total = jnp.where(inside, total, LARGEST)
        least = total.min(axis=1, keepdims=True)
        place = jnp.where(total <= least, places, row - 1).min(axis=1, keepdims=True)
        found |= _dominates([jnp.take_along_axis(cost, place, axis=1, mode="promise_in_bounds") for cost in rows], rows)
    return found.reshape(-1)


def _dominates(one: Any, costs: Any) -> Array:
    """Where a design is nowhere worse, and somewhere better."""
    worse = [one[j] > costs[j] for j in range(len(costs))]
    better = [one[j] < costs[j] for j in range(len(costs))]
    return ~_any(worse) & _any(better)


def _any(parts: Sequence[Array]) -> Array:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole | part
    return whole


def survivors(marks: Array, values: Array, capacity: int) -> Survivors:
    """Return the survivors among designs (designs,); beyond the ``capacity`` they are counted alone.

    The k-th mark's word is found in the running count of marks, its bit by halves: a gather for each of the few
    that survive instead of a scatter of all.
    """
    whole = jnp.pad(marks, (0, -len(marks) % WORD))
    bits = whole.reshape(-1, WORD).astype(jnp.uint32) << jnp.arange(WORD, dtype=jnp.uint32)
    words = bits.sum(axis=1, dtype=jnp.uint32)
    total = jnp.cumsum(lax.population_count(words).astype(jnp.int32))
    wanted = jnp.arange(capacity, dtype=jnp.int32)
    row = jnp.searchsorted(total, wanted, side="right").astype(jnp.int32)
    row = jnp.minimum(row, len(words) - 1)
    word, left = words[row], wanted - jnp.where(row > 0, total[row - 1], 0)
    place = row * WORD
    half = WORD // 2
    while half:
        below = lax.population_count(word & jnp.uint32((1 << half) - 1)).astype(jnp.int32)
        upper = left >= below
        place, left = place + half * upper, left - below * upper
        word = jnp.where(upper, word >> half, word)
        half //= 2
    return Survivors(total[-1], place, values.T.at[place].get(mode="clip"))


def _together(lengths: Sequence[int], shifts: Sequence[int]) -> list[list[int]]:
    """Return axes that are counted together: one after the other, as long as their counts are few."""
    found: list[list[int]] = []
    cells = 0
    for axis, (length, shift) in enumerate(zip(lengths, shifts, strict=True)):
        if found and not shift and not shifts[found[-1][0]] and cells * length <= CELLS:
            found[-1].append(axis)
            cells *= length
        else:
            found.append([axis])
            cells = length * (WINDOW * OCTAVE >> shift)
    return found


def _parts(lengths: Sequence[int]) -> list[list[int]]:
    """Return axes in parts whose combinations a 32-bit number counts."""
    found: list[list[int]] = []
    count = 0
    for axis, length in enumerate(lengths):
        if found and count * length < 2**31:
            found[-1].append(axis)
            count *= length
        else:
            found.append([axis])
            count = length
    return found

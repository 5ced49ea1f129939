"""The designs of a grid as a device makes them: rows of designs that follow each other, their digits, their columns.

A row's first design comes from the host as digits, one an axis; the device counts on from there. The numbers of axes
and links stand in tables, which the host makes in 64 bits, so that a column is the same to the bit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.evaluate.batching import float_type
from dse.space import links
from dse.space.space import Space

MOST_COMBINATIONS = 2**20
"""Combinations of axes up to which a link's values are kept on a device."""

GOLDEN = (5**0.5 - 1) / 2
"""Fractions of its multiples lie evenly, however many there are (the golden ratio)."""


@dataclass(frozen=True)
class Rows:
    """Rows of designs: the ``position`` of the first, how many follow, and its ``digits``, (rows, axes).

    ``combination``: which values a row has of the axes that all its designs have in common.
    """

    position: np.ndarray
    count: np.ndarray
    combination: np.ndarray
    digits: np.ndarray

    def part(self, start: int, stop: int) -> "Rows":
        """Return some of the rows."""
        return Rows(*(values[start:stop] for values in vars(self).values()))


def too_many(space: Space) -> list[str]:
    """Return the links that follow too many combinations of axes for a table."""
    counts = {name: links.count_of(links.deciding(space.axes, space.links, [name])) for name, _ in space.links}
    return [name for name, count in counts.items() if count > MOST_COMBINATIONS]


class DeviceGrid:
    """The grid of a space in rows of ``size`` designs, which have the values of the axes ``common`` in common.

    Positions run through the grid with these axes slowest, the others in their order: without such axes a position is
    a design's number.
    """

    def __init__(self, space: Space, common: Iterable[str], size: int) -> None:
        self.size, names = size, [axis.name for axis in space.axes]
        slow = [place for place, name in enumerate(names) if name in set(common)]
        self._order = slow + [place for place in range(len(names)) if place not in slow]
        self.lengths = [len(axis) for axis in space.axes]
        self._inner = prod(self.lengths[place] for place in self._order[len(slow) :])
        self._strides = _strides(self.lengths)
        self._steps = dict(zip(self._order, _strides([self.lengths[p] for p in self._order]), strict=True))
        self.common = [space.axes[place] for place in slow]
        self._tables = {axis.name: ([p], np.asarray(axis.numbers, float_type())) for p, axis in enumerate(space.axes)}
        for name, _ in space.links:
            axes = links.deciding(space.axes, space.links, [name])
            values = links.combinations(space.base.numbers(), space.links, axes)[name]
            self._tables[name] = ([names.index(axis.name) for axis in axes], values.astype(float_type()))

    @property
    def names(self) -> list[str]:
        """The attributes that designs differ in."""
        return list(self._tables)

    def rows(self, start: int, stop: int) -> Rows:
        """Return the rows of the designs at positions ``start`` to ``stop``."""
        every = np.arange(start // self._inner, (stop - 1) // self._inner + 1)
        first, last = np.maximum(every * self._inner, start), np.minimum((every + 1) * self._inner, stop)
        counts = -(-(last - first) // self.size)
        number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        position = np.repeat(first, counts) + self.size * number
        count = np.minimum(np.repeat(last, counts) - position, self.size)
        return Rows(position, count.astype(np.int32), np.repeat(every, counts).astype(np.int32), self._at(position))

    def scattered(self, size: int, count: int) -> Rows:
        """Return at most ``count`` rows from all over a grid of ``size`` designs."""
        each = -(-self._inner // self.size)
        total = size // self._inner * each
        chosen = np.unique((np.arange(count) * GOLDEN % 1.0 * total).astype(np.int64))
        every, number = np.divmod(chosen, each)
        position = every * self._inner + self.size * number
        counts = np.minimum(self._inner - self.size * number, self.size)
        return Rows(position, counts.astype(np.int32), every.astype(np.int32), self._at(position))

    def _at(self, position: np.ndarray) -> np.ndarray:
        """The digits of designs at positions, (designs, axes)."""
        digits = np.empty((len(position), len(self.lengths)), np.int32)
        for place in self._order:  # the slowest first; a quotient and a product take less time than a remainder
            step = self._steps[place]
            digits[:, place] = quotient = position // step
            position = position - quotient * step
        return digits

    def numbers(self, position: np.ndarray) -> np.ndarray:
        """Return the designs' numbers in the grid."""
        if self._order == sorted(self._order):
            return position
        return self._at(position).astype(np.int64) @ np.asarray(self._strides, np.int64)

    def digits(self, first: Array) -> list[Array]:
        """Return which value each axis has in the designs of rows, each (rows, size), inside a program.

        ``first``: the digits of the rows' first designs, (rows, axes).
        """
        carry = jnp.broadcast_to(jnp.arange(self.size, dtype=jnp.uint32), (len(first), self.size))
        found: dict[int, Array] = {}
        for place in reversed(self._order):
            total = carry + first[:, place, None].astype(jnp.uint32)
            length = jnp.uint32(self.lengths[place])
            carry = lax.div(total, jnp.broadcast_to(length, total.shape))
            found[place] = (total - carry * length).astype(jnp.int32)
        return [found[place] for place in range(len(self.lengths))]

    def columns(self, digits: Sequence[Array]) -> dict[str, Array]:
        """Return the numbers of axes and links of designs with these digits, of their shape, inside a program."""
        return {name: self._column(places, table, digits) for name, (places, table) in self._tables.items()}

    def _column(self, places: Sequence[int], table: np.ndarray, digits: Sequence[Array]) -> Array:
        if not places:
            return jnp.full(digits[0].shape, table[0])
        index = digits[places[0]]
        for place in places[1:]:
            index = index * self.lengths[place] + digits[place]
        return jnp.asarray(table).at[index].get(mode="promise_in_bounds")

    def combinations(self, space: Space, attributes: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Return the numbers of ``attributes`` for each combination of the axes in common."""
        columns = links.combinations(space.base.numbers(), space.links, self.common)
        return {name: columns[name].astype(float_type()) for name in attributes}


def _strides(lengths: Sequence[int]) -> list[int]:
    return [prod(lengths[place + 1 :]) for place in range(len(lengths))]

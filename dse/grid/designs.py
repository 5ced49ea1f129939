"""The designs of a grid by number: the values of each axis and link in a range of numbers."""

from collections.abc import Iterable
from math import prod

import numpy as np

from dse.space import links
from dse.space.axis import Axis
from dse.space.designs import with_links
from dse.space.space import Space

TABLE = 65_536
"""Most combinations of axes for which a link's values are kept in a table."""

Columns = dict[str, np.ndarray]


class Grid:
    """The grid of a space; the last axis varies fastest.

    What :func:`dse.space.designs.with_links` makes of a range of numbers, several times faster: axes by repetition
    instead of division, a link of few axes from a table of all their combinations.
    """

    def __init__(self, space: Space) -> None:
        self._space, self._base, self._links = space, space.base.numbers(), space.links
        self._names = [axis.name for axis in space.axes]
        self._numbers = {axis.name: np.asarray(axis.numbers, float) for axis in space.axes}
        self._strides = [prod(len(axis) for axis in space.axes[i + 1 :]) for i in range(len(space.axes))]
        rules = () if space.variants else space.links
        self._tables = {name: _LinkTable(self._base, rules, space.axes, name) for name, _ in rules}
        if not all(table.small for table in self._tables.values()):
            self._tables = {}

    def digits(self, start: int, stop: int) -> list[np.ndarray]:
        """Return which of its values each axis has in designs ``start`` to ``stop``, each of shape (designs,)."""
        lengths = [len(self._numbers[name]) for name in self._names]
        return [_digit(start, stop, s, n) for s, n in zip(self._strides, lengths, strict=True)]

    def columns(self, digits: list[np.ndarray], count: int) -> Columns:
        """Return the numbers of the axes and links of ``count`` designs, given their ``digits``."""
        of = dict(zip(self._names, digits, strict=True))
        columns = {name: self._numbers[name][digit] for name, digit in of.items()}
        if self._space.variants:
            return with_links(self._space, columns)
        if len(self._tables) < len(self._links):
            return links.with_links(self._base, self._links, columns)
        return columns | {name: table(of, count) for name, table in self._tables.items()}


def _digit(start: int, stop: int, stride: int, length: int) -> np.ndarray:
    """``(number // stride) % length`` of the numbers from ``start`` to ``stop``."""
    first, last = start // stride, (stop - 1) // stride
    values = np.arange(first, last + 1) % length
    if stride == 1:
        return values
    if stride >= stop - start:  # one value, or two
        counts = np.diff(np.clip(np.arange(first, last + 2) * stride, start, stop))
        return np.repeat(values, counts)
    return np.repeat(values, stride)[start - first * stride :][: stop - start]


class _LinkTable:
    """The values of one link for every combination of the axes that it follows."""

    def __init__(self, base: dict[str, float], rules: links.Links, axes: Iterable[Axis], name: str) -> None:
        deciding = links.deciding(axes, rules, [name])
        self._lengths = {axis.name: len(axis) for axis in deciding}
        self.small = prod(self._lengths.values()) <= TABLE
        if self.small:
            grids = np.meshgrid(*(np.asarray(axis.numbers, float) for axis in deciding), indexing="ij")
            columns = {axis.name: grid.reshape(-1) for axis, grid in zip(deciding, grids, strict=True)}
            self._values = links.with_links(base, rules, columns)[name]

    def __call__(self, digits: dict[str, np.ndarray], count: int) -> np.ndarray:
        place: np.ndarray | int = 0
        for name, length in self._lengths.items():
            place = place * length + digits[name] if np.ndim(place) or place else digits[name]
        return self._values[place] if self._lengths else np.broadcast_to(self._values, (count,))

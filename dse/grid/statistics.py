"""Statistics of the objectives for each value of an axis, over all feasible designs, in bounded memory."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from dse.space.space import Space

LOW, HIGH = 2.0**-30, 2.0**30
"""The scale of the histograms: about 1e-9 to 1e9."""

CELLS = 2**22
"""Most counts held for one axis."""

LOWEST = int(np.float32(LOW).view(np.int32))
SHIFT = 17
BINS = (int(np.float32(HIGH).view(np.int32)) - LOWEST) >> SHIFT
"""A bin is the exponent and the first 6 bits of the fraction of a 32-bit float: no logarithm, the same on any CPU."""


DESIGNS_PER_COUNT = 4
"""Designs for each count of a run, at least, where designs are counted in runs."""

DENSE = 4
"""Counts of a table for each design, at most, where all of them are added at once."""

OCTAVE = 64
"""Bins of one exponent. Memory is taken for whole octaves."""


@dataclass
class AxisStatistics:
    """Histograms and best of each objective over the feasible designs with each value of each axis.

    ``histograms``: of each objective; ``best``: the lowest cost of each axis value and objective; ``off_scale``: which
    objectives have left the scale. The medians that follow are exact to half a bin: 0.8 % (more on axes of very many
    values). Statistics of two sets of designs add up.
    """

    lengths: tuple[int, ...]
    objectives: int

    def __post_init__(self) -> None:
        self._strides = [prod(self.lengths[axis + 1 :]) for axis in range(len(self.lengths))]
        self.shifts = [self._coarser(length) for length in self.lengths]
        self.runs = runs_of(self.shifts)
        self._rows = [0, *accumulate(self.lengths)]
        self.histograms = [Histograms(self.lengths, self.shifts) for _ in range(self.objectives)]
        self.best = np.full((self._rows[-1], self.objectives), np.inf)
        self.off_scale = np.zeros(self.objectives, bool)

    def _coarser(self, length: int) -> int:
        """How many bits fewer an axis of so many values has."""
        return next(s for s in range(64) if length * self.objectives * (BINS >> s) <= CELLS or BINS >> s <= 64)

    def add(self, start: int, feasible: np.ndarray, values: np.ndarray, costs: np.ndarray) -> None:
        """Take designs from number ``start`` on, the last axis varying fastest.

        ``values`` and ``costs``, which are the values to be minimised: shape (objectives, designs).
        """
        if not self.lengths or not feasible.any():
            return
        inside = values if feasible.all() else np.compress(feasible, values, axis=1)
        ends = np.stack([inside.min(axis=1), inside.max(axis=1)], axis=1)
        self.off_scale |= (ends[:, 0] < LOW) | (ends[:, 1] >= HIGH)
        for number, (low, high) in enumerate(bins_of(ends) // OCTAVE):
            self.histograms[number].widen(low, high + 1)
            self._count(number, start, feasible, _bits(values[number]), costs[number])

    def _count(self, number: int, start: int, *designs: np.ndarray) -> None:
        """Count designs by one objective; ``designs``: their feasibility, values and costs, as ``_fill`` takes them."""
        histograms = self.histograms[number]
        first = (LOWEST >> SHIFT) + histograms.low * OCTAVE
        bests = [self.best[begin:end, number] for begin, end in pairwise(self._rows)]
        axes = list(zip(histograms.tables, bests, self._strides, self.shifts, strict=True))
        slow = self._slow(len(designs[0]), (histograms.high - histograms.low) * OCTAVE)
        if slow:
            stride, length = self._strides[slow - 1], len(designs[0])
            runs = np.zeros((2 + length // stride, (histograms.high - histograms.low) * OCTAVE), np.int64)
            lowest = np.full(len(runs), np.inf)
            _fill(runs, lowest, start % stride, stride, SHIFT, first, *designs)
            for table, best, longer, shift in axes[:slow]:
                coarser = runs.reshape(len(runs), -1, 1 << shift).sum(axis=2) if shift else runs
                _add_runs(table, best, start // stride, longer // stride, coarser, lowest)
        for table, best, stride, shift in axes[slow:]:
            _fill(table, best, start, stride, SHIFT + shift, first >> shift, *designs)

    def _slow(self, designs: int, bins: int) -> int:
        """Return how many axes keep their values so long that designs are counted once for all of them, in runs."""
        slow = sum(DESIGNS_PER_COUNT * bins * (2 + designs // stride) <= designs for stride in self._strides)
        return slow if slow > 1 else 0

    def add_counts(self, first: np.ndarray, counts: Sequence[np.ndarray], best: np.ndarray) -> None:
        """Take what was counted elsewhere: of each of the ``runs`` of axes the ``counts`` (objectives, values, bins),
        and of all axes the ``best`` costs (objectives, values); ``first``: the bin at which each objective's counts
        begin, of a whole octave."""
        np.minimum(self.best, best.T, out=self.best)
        for number, begin in enumerate(first // OCTAVE if len(counts) else ()):
            used = np.flatnonzero(counts[0][number, : self.lengths[0]].max(axis=0)) << self.shifts[0]
            if not len(used):
                continue
            low, high = int(used[0]) // OCTAVE, int(used[-1]) // OCTAVE + 1
            blocks = (count[number] for count in counts)
            some = [
                block[:, low * OCTAVE >> self.shifts[axes[0]] : high * OCTAVE >> self.shifts[axes[0]]]
                for block, axes in zip(blocks, self.runs, strict=True)
            ]
            self.histograms[number].add(int(begin) + low, int(begin) + high, some)

    def add_some(self, numbers: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> None:
        """Count designs with these ``numbers`` by those of their ``values`` that are ``wanted``, both (objectives,
        designs); their best is counted already."""
        digits = [numbers // stride % length for stride, length in zip(self._strides, self.lengths, strict=True)]
        for objective, mask in enumerate(wanted):
            if not mask.any():
                continue
            some, histograms = values[objective, mask], self.histograms[objective]
            self.off_scale[objective] |= bool(some.min() < LOW or some.max() >= HIGH)
            bins = bins_of(some)
            histograms.widen(int(bins.min()) // OCTAVE, int(bins.max()) // OCTAVE + 1)
            for table, digit, shift in zip(histograms.tables, digits, self.shifts, strict=True):
                np.add.at(table, (digit[mask], (bins - histograms.low * OCTAVE) >> shift), 1)

    def merge(self, other: "AxisStatistics") -> None:
        """Take the designs of other statistics."""
        for mine, theirs in zip(self.histograms, other.histograms, strict=True):
            mine.merge(theirs)
        np.minimum(self.best, other.best, out=self.best)
        self.off_scale |= other.off_scale

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all of it as arrays, from which :meth:`restore` makes equal statistics: only counts above 0."""
        counts = np.concatenate([histograms.counts for histograms in self.histograms])
        places = np.flatnonzero(counts)
        octaves = np.asarray([(histograms.low, histograms.high) for histograms in self.histograms], np.int64)
        return {
            "places": places,
            "counts": counts[places],
            "octaves": octaves,
            "best": self.best,
            "off_scale": self.off_scale,
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what :meth:`arrays` returned, into statistics of no designs."""
        begin, places = 0, arrays["places"]
        for histograms, (low, high) in zip(self.histograms, arrays["octaves"].tolist(), strict=True):
            histograms.widen(low, high)
            end = begin + len(histograms.counts)
            here = slice(*np.searchsorted(places, (begin, end)))
            histograms.counts[places[here] - begin] = arrays["counts"][here]
            begin = end
        self.best, self.off_scale = np.array(arrays["best"]), np.array(arrays["off_scale"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as :meth:`arrays`."""
        return _restored, (self.lengths, self.objectives, self.arrays())

    def frame(self, space: Space, at_baseline: pd.DataFrame) -> pd.DataFrame:
        """Return the statistics, a row an axis value and objective, joined with the one-axis-at-a-time results."""
        rows = [
            (axis.name, axis.numbers[i], value, axis.unit, objective.name, *self._figures(number, i, j, objective.sign))
            for number, axis in enumerate(space.axes)
            for i, value in enumerate(axis.values)
            for j, objective in enumerate(space.objectives)
        ]
        frame = pd.DataFrame(rows, columns=["axis", "number", "value", "unit", "objective", "median", "best"])
        return frame.merge(at_baseline, on=["axis", "number", "objective"], how="left")

    def _figures(self, axis: int, value: int, objective: int, sign: float) -> tuple[float | None, float | None]:
        """Median and best of one objective at one value of an axis; None where there is none."""
        histograms, shift = self.histograms[objective], self.shifts[axis]
        cumulative = histograms.tables[axis][value].cumsum()
        if not cumulative.any():
            return None, None
        best = sign * float(self.best[self._rows[axis] + value, objective])
        if self.off_scale[objective]:
            return None, best
        first, width = histograms.low * OCTAVE >> shift, 1 << (SHIFT + shift)
        total = int(cumulative[-1])
        middle_two = [(total + 1) // 2, total // 2 + 1]  # one and the same of an odd count
        places = first + np.searchsorted(cumulative, middle_two)
        middles = (LOWEST + places * width + width // 2).astype(np.int32).view(np.float32)
        median = float(middles.astype(float).mean())
        # Half a bin of error must not put it beyond the best, which is exact.
        return (max if sign > 0 else min)(median, best), best


def _restored(lengths: tuple[int, ...], objectives: int, arrays: Mapping[str, np.ndarray]) -> AxisStatistics:
    statistics = AxisStatistics(lengths, objectives)
    statistics.restore(arrays)
    return statistics


class Histograms:
    """The counts of one objective: a table an axis, a row of bins for each of its values.

    There are bins for the octaves from ``low`` up to ``high`` alone, those in use: of the whole scale most would be
    empty, and to clear and to add them up would take longer than to count. ``shifts``: how many bits fewer an axis has.
    ``blocks``: the tables of axes that follow each other with bins alike are one, which is added up at once.
    """

    def __init__(self, lengths: Sequence[int], shifts: Sequence[int]) -> None:
        self._runs = [([lengths[axis] for axis in axes], shifts[axes[0]]) for axes in runs_of(shifts)]
        self._clear(0, 0)

    def _clear(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        shapes = [(sum(lengths), (high - low) * OCTAVE >> shift) for lengths, shift in self._runs]
        ends = [0, *accumulate(rows * width for rows, width in shapes)]
        self.counts = np.zeros(ends[-1], np.int64)
        parts = [self.counts[begin:end] for begin, end in pairwise(ends)]
        self.blocks = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def tables(self) -> list[np.ndarray]:
        """The table of each axis, (values, bins)."""
        ends = [[0, *accumulate(lengths)] for lengths, _ in self._runs]
        return [block[begin:end] for block, run in zip(self.blocks, ends, strict=True) for begin, end in pairwise(run)]

    def widen(self, low: int, high: int) -> None:
        """Have bins for the octaves from ``low`` up to ``high`` too."""
        if self.low <= low and high <= self.high:
            return
        if self.low == self.high:
            self._clear(low, high)
            return
        before = copy(self)
        self._clear(min(low, self.low), max(high, self.high))
        self.merge(before)

    def merge(self, other: "Histograms") -> None:
        """Add the counts of others."""
        if other.low < other.high:
            self.add(other.low, other.high, other.blocks)

    def add(self, low: int, high: int, blocks: Sequence[np.ndarray]) -> None:
        """Add the counts of octaves from ``low`` up to ``high``, as :attr:`blocks`."""
        empty = self.low == self.high
        self.widen(low, high)
        for mine, theirs, (_, shift) in zip(self.blocks, blocks, self._runs, strict=True):
            first = (low - self.low) * OCTAVE >> shift
            here = mine[:, first : first + theirs.shape[1]]
            if empty:  # a copy reads no memory that is not there yet
                here[:] = theirs
            else:
                here += theirs


def runs_of(shifts: Sequence[int]) -> list[list[int]]:
    """Return the axes, those together that follow each other with bins alike."""
    return [list(axes) for _, axes in groupby(range(len(shifts)), key=lambda axis: shifts[axis])]


def bins_of(values: np.ndarray) -> np.ndarray:
    """Return the bin of each value, counted from LOW; those off the scale are in the first or the last."""
    return (_bits(values) - LOWEST) >> SHIFT


def _bits(values: np.ndarray) -> np.ndarray:
    """Return each value as the bits of a 32-bit float; those off the scale as its first or its last."""
    if values.min() < LOW or values.max() >= HIGH:
        values = np.clip(values, LOW, HIGH * 0.999)
    return values.astype(np.float32).view(np.int32)


def _fill(
    table: np.ndarray,
    best: np.ndarray,
    start: int,
    stride: int,
    shift: int,
    first: int,
    feasible: np.ndarray,
    bits: np.ndarray,
    costs: np.ndarray,
) -> None:
    """Count consecutive designs into one axis's ``table`` (values, bins) and lower ``best`` (values,).

    ``start``: the number of the first design; ``stride``: designs for which the axis keeps its value. A bin is a
    number's bits but the last ``shift``; the table begins with bin ``first``.
    """
    where = np.flatnonzero(feasible)
    values = (start + where) // stride % len(table)
    cells = values * table.shape[1] + ((bits[where] >> shift) - first)
    if table.size <= DENSE * len(cells):
        table += np.bincount(cells, minlength=table.size).reshape(table.shape)
    else:
        np.add.at(table.reshape(-1), cells, 1)
    np.minimum.at(best, values, costs[where])


def _add_runs(
    table: np.ndarray, best: np.ndarray, start: int, stride: int, runs: np.ndarray, lowest: np.ndarray
) -> None:
    """Add what was counted in ``runs`` (runs, bins) and their ``lowest`` costs (runs,) to one axis.

    ``start``: the number of the first run; ``stride``: runs for which the axis keeps its value.
    """
    values = (start + np.arange(len(runs))) // stride % len(table)
    for value, run in zip(values, runs, strict=True):
        table[value] += run
    np.minimum.at(best, values, lowest)

"""What each value of an axis does to the objectives, over all feasible designs, in bounded memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from dse.space.space import Space

LOW, HIGH = 2.0**-30, 2.0**30
"""The scale of the histograms: about 1e-9 to 1e9."""

CELLS = 2**22
"""Most counts held for one axis."""

_LOWEST = int(np.float32(LOW).view(np.int32))
_SHIFT = 17
_BINS = (int(np.float32(HIGH).view(np.int32)) - _LOWEST) >> _SHIFT
"""A bin is the exponent and the first 6 bits of the fraction of a 32-bit float: no logarithm, the same on any CPU."""


@dataclass
class AxisStatistics:
    """Histograms and best of each objective over the feasible designs with each value of each axis.

    ``counts``: one row of bins for each axis value and objective, axis after axis; ``best``: the lowest cost of each
    axis value and objective; ``off_scale``: which objectives have left the scale. The medians that follow are exact to
    half a bin: 0.8 % (more on axes of very many values). Statistics of two sets of designs add up; most counts are 0,
    so that only the range of bins in use is added, and only counts above 0 are saved.
    """

    lengths: tuple[int, ...]
    objectives: int

    def __post_init__(self) -> None:
        self._shifts = np.asarray([self._coarser(length) for length in self.lengths], np.int64)
        self._bins = np.asarray([_BINS >> s for s in self._shifts], np.int64)
        sizes = [n * self.objectives * b for n, b in zip(self.lengths, self._bins, strict=True)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._rows = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.counts = np.zeros(self._starts[-1], np.int64)
        self.best = np.full((self._rows[-1], self.objectives), np.inf)
        self.off_scale = np.zeros(self.objectives, bool)
        self._used = np.tile([[_BINS], [0]], self.objectives)

    def _coarser(self, length: int) -> int:
        """How many bits fewer an axis of so many values has."""
        return next(s for s in range(64) if length * self.objectives * (_BINS >> s) <= CELLS or _BINS >> s <= 64)

    def add(self, digits: Sequence[np.ndarray], feasible: np.ndarray, values: np.ndarray, signs: np.ndarray) -> None:
        """Take designs: ``digits`` by axis, ``values`` of shape (objectives, designs), ``signs`` +1 to minimise."""
        if not feasible.any() or not self.lengths:
            return
        inside = values if feasible.all() else values[:, feasible]
        ends = np.stack([inside.min(axis=1), inside.max(axis=1)])
        self.off_scale |= (ends[0] < LOW) | (ends[1] >= HIGH)
        self._use(_bins(ends))
        bins = _bins(values)
        costs = signs[:, None] * values
        for axis, (digit, counts) in enumerate(zip(digits, self._tables(), strict=True)):
            best = self.best[self._rows[axis] : self._rows[axis + 1]]
            _count(digit, feasible, bins, costs, counts, best, self._shifts[axis])

    def _use(self, ends: np.ndarray) -> None:
        self._used = np.stack([np.minimum(self._used[0], ends[0]), np.maximum(self._used[1], ends[1])])

    def _tables(self) -> Iterator[np.ndarray]:
        """Yield the counts of each axis, shape (values, objectives, bins)."""
        for axis, bins in enumerate(self._bins):
            yield self.counts[self._starts[axis] : self._starts[axis + 1]].reshape(-1, self.objectives, bins)

    def merge(self, other: "AxisStatistics") -> None:
        """Take the designs of other statistics."""
        for mine, theirs, shift in zip(self._tables(), other._tables(), self._shifts, strict=True):
            for objective, (low, high) in enumerate(other._used.T >> shift):
                mine[:, objective, low : high + 1] += theirs[:, objective, low : high + 1]
        self._use(other._used)
        np.minimum(self.best, other.best, out=self.best)
        self.off_scale |= other.off_scale

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all of it as arrays, from which :meth:`restore` makes equal statistics."""
        places = np.flatnonzero(self.counts)
        return {"places": places, "counts": self.counts[places], "used": self._used, "best": self.best,
                "off_scale": self.off_scale}  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take what :meth:`arrays` returned, into statistics of no designs."""
        self.counts[arrays["places"]] = arrays["counts"]
        self._used, self.best, self.off_scale = arrays["used"], arrays["best"], arrays["off_scale"]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as :meth:`arrays`."""
        return _restored, (self.lengths, self.objectives, self.arrays())

    def frame(self, space: Space, at_baseline: pd.DataFrame) -> pd.DataFrame:
        """Return the statistics beside the one-axis-at-a-time results."""
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
        bins = self._bins[axis]
        start = self._starts[axis] + (value * self.objectives + objective) * bins
        cumulative = self.counts[start : start + bins].cumsum()
        if not cumulative[-1]:
            return None, None
        best = sign * float(self.best[self._rows[axis] + value, objective])
        if self.off_scale[objective]:
            return None, best
        width = 1 << (_SHIFT + int(self._shifts[axis]))
        middle = _LOWEST + int(np.searchsorted(cumulative, cumulative[-1] / 2)) * width + width // 2
        return float(np.int32(middle).view(np.float32)), best


def _restored(lengths: tuple[int, ...], objectives: int, arrays: Mapping[str, np.ndarray]) -> AxisStatistics:
    found = AxisStatistics(lengths, objectives)
    found.restore(arrays)
    return found


def _bins(values: np.ndarray) -> np.ndarray:
    """Return the bin of each value; those off the scale are in the first or the last."""
    return (np.clip(values, LOW, HIGH * 0.999).astype(np.float32).view(np.int32) - _LOWEST) >> _SHIFT


@njit(
    "void(int64[::1], boolean[::1], int32[:, ::1], float64[:, ::1], int64[:, :, ::1], float64[:, ::1], int64)",
    cache=True, nogil=True,
)  # fmt: skip
def _count(digit, feasible, bins, costs, counts, best, shift):
    """Count the designs of one axis into ``counts`` (values, objectives, bins) and lower ``best``."""
    for objective in range(costs.shape[0]):
        for i in range(digit.shape[0]):
            if feasible[i]:
                value = digit[i]
                counts[value, objective, bins[objective, i] >> shift] += 1
                best[value, objective] = min(best[value, objective], costs[objective, i])

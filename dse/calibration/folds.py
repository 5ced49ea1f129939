"""What is left out: the fits that nested leave-one-out asks for, as weights, and the choice of the prior's strength."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Folds(NamedTuple):
    """All fits of a nested leave-one-out over rows: ``weights`` (fits, rows), 0 where a row is left out.

    ``place`` finds a fit by the rows it leaves out; ``group`` holds the number of each row's benchmark.
    """

    weights: np.ndarray
    place: dict[frozenset[int], int]
    group: np.ndarray

    @classmethod
    def of(cls, groups: Sequence[str]) -> "Folds":
        """Fits without one kernel, without one benchmark, and each of these without one more benchmark."""
        group = np.unique(np.asarray(groups), return_inverse=True)[1]
        rows = np.arange(len(group))
        benchmarks = [frozenset(rows[group == g].tolist()) for g in range(group.max() + 1)]
        outer = [frozenset[int](), *(frozenset([int(i)]) for i in rows), *benchmarks]
        sets = dict.fromkeys(outer) | dict.fromkeys(out | more for out in outer for more in benchmarks)
        kept = [out for out in sets if len(out) < len(rows)]
        weights = np.array([[float(i not in out) for i in rows] for out in kept])
        return cls(weights, {out: i for i, out in enumerate(kept)}, group)

    def benchmark_of(self, row: int) -> frozenset[int]:
        """The rows of a row's benchmark."""
        return frozenset(np.flatnonzero(self.group == self.group[row]).tolist())

    def strength(self, errors: np.ndarray, out: frozenset[int]) -> int:
        """Place of the strength with the least inner leave-one-benchmark-out error, ``out`` left out throughout.

        ``errors`` |predicted / measured - 1| of every fit, strength and row, shape (fits, strengths, rows).
        """
        inner = [row for row in range(len(self.group)) if row not in out]
        place = [self.place.get(out | self.benchmark_of(row)) for row in inner]
        seen = [errors[fit, :, row] for fit, row in zip(place, inner, strict=True) if fit is not None]
        return int(np.argmin(np.mean(seen, axis=0))) if seen else errors.shape[1] - 1

    def left_out(self, errors: np.ndarray, by_benchmark: bool) -> tuple[np.ndarray, np.ndarray]:
        """(fit, strength) of each row's prediction by the fit that has seen neither it nor, if asked, its benchmark."""
        outs = [self.benchmark_of(row) if by_benchmark else frozenset([row]) for row in range(len(self.group))]
        chosen = {out: self.strength(errors, out) for out in set(outs)}
        return np.array([self.place[out] for out in outs]), np.array([chosen[out] for out in outs])

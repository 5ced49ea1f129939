"""Cliffs of a miss-rate curve: where the working set begins to fit the growing last-level cache."""

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from typing import NamedTuple

FALL = 2.0
"""A cliff is a fall of the miss rate by more than this factor a doubling of the size."""


class Cliff(NamedTuple):
    """A cliff of the miss rate between two sizes of a system."""

    before: float  # size before it [SM or chiplet]
    after: float  # size after it [SM or chiplet]
    f_mem: float | None = None  # share of cycles in which all warps wait for memory [1], None where nobody measured it


def find_cliffs(sizes: Sequence[float], mpki: Sequence[float]) -> tuple[Cliff, ...]:
    """Return the cliffs of a miss-rate curve, in the order of their sizes.

    ``sizes`` ascend; ``mpki``: misses per thousand instructions at each. Where sizes stand closer than doublings, a
    fall may spread over several steps: every stretch of at most a doubling is looked at, and of stretches that overlap
    the shortest with a cliff counts, then the steepest. A single step may be longer: its fall a doubling
    counts (see :func:`ambiguous_steps`).
    """
    falls = [
        (sizes[j] / sizes[i], mpki[j] / mpki[i], i, j)
        for i in range(len(sizes) - 1)
        for j in range(i + 1, len(sizes))
        if (j == i + 1 or sizes[j] <= 2 * sizes[i]) and mpki[i] > FALL ** max(log2(sizes[j] / sizes[i]), 1.0) * mpki[j]
    ]
    spans: list[tuple[int, int]] = []
    for _, _, i, j in sorted(falls):
        if all(j <= first or i >= last for first, last in spans):
            spans.append((i, j))
    return tuple(Cliff(sizes[i], sizes[j]) for i, j in sorted(spans))


def ambiguous_steps(sizes: Sequence[float], mpki: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return the steps longer than a doubling, (size before, size after), in which a cliff cannot be excluded.

    They fall by more than FALL in all, but not a doubling: no cliff is assumed, yet sizes between might show one.
    """
    return tuple(
        (a, b)
        for (a, before), (b, after) in pairwise(zip(sizes, mpki, strict=True))
        if b > 2 * a and FALL * after < before <= FALL ** log2(b / a) * after
    )

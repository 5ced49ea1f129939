"""Designs that dominate much of a space, against which all others are held on a device."""

import numpy as np

from dse.base.pareto_filter import pareto_mask

CANDIDATES, TESTS = 256, 2048
"""Designs of a front among which killers are chosen, and designs that they are tried on, at most."""


def chosen_killers(candidates: np.ndarray, tests: np.ndarray, count: int) -> np.ndarray:
    """Return at most ``count`` rows of ``candidates`` that together dominate most of ``tests``, the strongest first.

    Both (designs, objectives): costs. One after the other, each the one that dominates most of what is left: at least
    1 - 1/e of what the best choice would. Where nothing is left, others follow: these may dominate what is not tried.
    """
    candidates = _spread(np.unique(candidates[pareto_mask(candidates)], axis=0), CANDIDATES)
    words = _dominated(candidates, _spread(tests, TESTS))
    left = np.full(words.shape[1], np.iinfo(np.uint64).max, np.uint64)
    found: list[int] = []
    while len(found) < min(count, len(candidates)):
        kills = np.bitwise_count(words & left).sum(axis=1)
        best = int(kills.argmax())
        if not kills[best]:
            break
        found.append(best)
        left &= ~words[best]
    others = np.delete(candidates, found, axis=0)
    return np.concatenate([candidates[found], _spread(others, count - len(found))])


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """Every so-many-th row, at most so many."""
    return rows[:: max(-(-len(rows) // most), 1)] if most else rows[:0]


def _dominated(candidates: np.ndarray, tests: np.ndarray) -> np.ndarray:
    """Return which tests each candidate dominates, a bit each, (candidates, words)."""
    better = np.zeros((len(candidates), len(tests)), bool)
    never_worse = np.ones_like(better)
    for mine, theirs in zip(candidates.T, tests.T, strict=True):
        never_worse &= mine[:, None] <= theirs
        better |= mine[:, None] < theirs
    bits = np.packbits(never_worse & better, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)

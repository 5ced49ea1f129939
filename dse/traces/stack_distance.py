"""Miss-rate curves in one pass: LRU stack distances of sectors, so that one simulation serves every cache size.

A sector hits in a fully associative LRU cache of C lines when, since its last access, every reuse of its line had
fewer than C other lines in between (Mattson et al., "Evaluation techniques for storage hierarchies", 1970, extended
here to lines whose sectors are filled one by one). The distances are counted with a Fenwick tree over the order of
accesses (Bennett and Kruskal, 1975): O(log n) an access, memory by the distinct lines touched.
"""

from typing import NamedTuple

import numpy as np

from dse.base.compiled_loops import njit
from dse.traces.curve_sizes import LINE_BYTES, SIZES

MOST_SECTORS = 64
"""Sectors that one warp instruction requests at most: two for each lane."""

FIRST, STORE = 1, 2
"""Bits of a request's flags: the first of its warp instruction; a store."""

_NEVER = np.int64(1 << 60)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Requests(NamedTuple):
    """A stream of sectors that miss the L1: address, row of its instruction's counts, flags; ``used`` [1] entries."""

    address: np.ndarray
    row: np.ndarray
    flags: np.ndarray
    used: np.ndarray


def make_requests(size: int) -> Requests:
    """Return an empty stream with room for ``size`` requests."""
    return Requests(
        np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.uint8), np.zeros(1, np.int64)
    )


class Histograms(NamedTuple):
    """Counts by the smallest of SIZES that holds a request, the last column for those that no cache holds.

    ``sectors`` and ``instructions`` [rows, sizes + 1]: sectors, and warp instructions by their farthest sector, of each
    row; ``lines`` [rows]: distinct lines that a row's instructions request; ``kernel`` [2, sizes + 1]: sectors of all
    loads and all stores.
    """

    sectors: np.ndarray
    instructions: np.ndarray
    lines: np.ndarray
    kernel: np.ndarray

    def reserve(self, rows: int) -> "Histograms":
        """Return the same counts with room for more rows."""
        if rows <= len(self.lines):
            return self
        more = rows - len(self.lines)
        wide = np.zeros((more, len(SIZES) + 1), np.int32)
        return Histograms(
            np.concatenate([self.sectors, wide]),
            np.concatenate([self.instructions, wide]),
            np.concatenate([self.lines, np.zeros(more, np.int64)]),
            self.kernel,
        )


def make_histograms(rows: int) -> Histograms:
    """Return empty counts for ``rows`` instructions."""
    wide = len(SIZES) + 1
    return Histograms(
        np.zeros((rows, wide), np.int32),
        np.zeros((rows, wide), np.int32),
        np.zeros(rows, np.int64),
        np.zeros((2, wide), np.int64),
    )


class StackDistances:
    """The order in which lines were last used, growing with the lines touched; feed it with :meth:`count`."""

    def __init__(self) -> None:
        self._table = np.full(1 << 12, _EMPTY)  # hash table: line address -> slot
        self._slot = np.zeros(1 << 12, np.int32)
        self._when = np.zeros(1 << 11, np.int64)  # slot -> place of its last access in the order
        self._far = np.full((1 << 11, 4), _NEVER)  # slot -> farthest reuse of the line since a sector's last access
        self._tree = np.zeros((1 << 13) + 1, np.int32)
        self._now = 0
        self.lines = 0

    @property
    def footprint_bytes(self) -> int:
        """Lines touched so far [B]."""
        return self.lines * LINE_BYTES

    def count(self, requests: Requests, histograms: Histograms) -> None:
        """Add the distances of a stream's requests to the histograms and empty the stream."""
        total, start = int(requests.used[0]), 0
        while start < total:
            self._make_room()
            room = min(len(self._tree) - 1 - self._now, len(self._when) - self.lines)
            stop = _last_start(requests.flags, start, start + room) if start + room < total else total
            self.lines = _count(
                requests.address[start:stop],
                requests.row[start:stop],
                requests.flags[start:stop],
                self._table,
                self._slot,
                self._when,
                self._far,
                self._tree,
                self._now,
                self.lines,
                SIZES // LINE_BYTES,
                histograms,
            )
            self._now += stop - start
            start = stop
        requests.used[0] = 0

    def _make_room(self) -> None:
        """Double the table of lines when it is nearly full, and renumber the order when its end is near."""
        if self.lines + MOST_SECTORS > len(self._when):
            self._when = np.concatenate([self._when, np.zeros_like(self._when)])
            self._far = np.concatenate([self._far, np.full_like(self._far, _NEVER)])
            self._table, self._slot = _rehash(self._table, self._slot, 2 * len(self._table))
        if self._now + MOST_SECTORS > len(self._tree) - 1:
            order = np.argsort(self._when[: self.lines], kind="stable")
            self._when[order] = np.arange(self.lines)
            self._tree = _full_tree(self.lines, 4 * len(self._when))
            self._now = self.lines


def _last_start(flags: np.ndarray, start: int, stop: int) -> int:
    """Return the last place up to ``stop`` where a warp instruction begins."""
    return start + int(np.flatnonzero(flags[start : stop + 1] & FIRST)[-1])


def _full_tree(marked: int, size: int) -> np.ndarray:
    """Return the Fenwick tree whose first ``marked`` places hold 1."""
    ends = np.arange(size + 1)
    covered = np.minimum(ends, marked) - np.minimum(ends - (ends & -ends), marked)
    return covered.astype(np.int32)


@njit()
def _place(table, line):
    """Return the place of a line in the hash table, or the empty place where it belongs."""
    mask = np.uint64(table.size - 1)
    at = ((line * _GOLDEN) >> np.uint64(24)) & mask
    while table[at] != line and table[at] != _EMPTY:
        at = (at + np.uint64(1)) & mask
    return at


@njit()
def _rehash(table, slot, size):
    new_table, new_slot = np.full(size, _EMPTY), np.zeros(size, np.int32)
    for i in range(table.size):
        if table[i] != _EMPTY:
            at = _place(new_table, table[i])
            new_table[at], new_slot[at] = table[i], slot[i]
    return new_table, new_slot


@njit()
def _add(tree, place, amount):
    i = place + 1
    while i < tree.size:
        tree[i] += amount
        i += i & -i


@njit()
def _up_to(tree, place):
    """Return the marks at places 0 to ``place``."""
    i, total = place + 1, 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit()
def _reuse(line, sector, table, slot, when, far, tree, now, lines):
    """Access a sector; return (its distance in lines or _NEVER, lines touched so far)."""
    at = _place(table, line)
    if table[at] == _EMPTY:
        table[at], slot[at] = line, lines
        s, lines = lines, lines + 1
    else:
        s = slot[at]
        distance = lines - _up_to(tree, when[s])
        for k in range(4):
            far[s, k] = max(far[s, k], distance)
        _add(tree, when[s], -1)
    when[s] = now
    _add(tree, now, 1)
    distance, far[s, sector] = far[s, sector], 0
    return distance, lines


@njit()
def _bin(distance, sizes):
    """Return the index of the smallest size that holds a reuse with that many other lines in between."""
    return np.searchsorted(sizes, distance + 1) if distance < _NEVER else sizes.size


@njit()
def _count(address, row, flags, table, slot, when, far, tree, now, lines, sizes, histograms):
    """Count a stream's requests; return the lines touched so far."""
    sectors, instructions, requested, kernel = histograms
    n = address.size
    farthest, last = 0, _EMPTY
    for i in range(n):
        line = address[i] >> np.uint64(7)
        sector = np.int64((address[i] >> np.uint64(5)) & np.uint64(3))
        distance, lines = _reuse(line, sector, table, slot, when, far, tree, now + i, lines)
        b = _bin(distance, sizes)
        sectors[row[i], b] += 1
        kernel[(flags[i] >> 1) & 1, b] += 1
        if flags[i] & 1:
            farthest, last = 0, _EMPTY
        farthest = max(farthest, b)
        requested[row[i]] += line != last
        last = line
        if i + 1 == n or flags[i + 1] & 1:
            instructions[row[i], farthest] += 1
    return lines

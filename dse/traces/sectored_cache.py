"""Compiled sectored LRU caches, their set hashes, and the L2 slice of an address (docs/model/timing_traced.md 3)."""

from typing import NamedTuple

import numpy as np

from dse.base.compiled_loops import njit
from dse.base.errors import InputError
from dse.traces.warp_profile import BITWISE_XOR, FERMI, LINEAR, RESIDUE

_POLYNOMIALS = {16: (0b10011, 13), 32: (0b100101, 15), 64: (0b1000011, 19)}
"""Bins -> (polynomial over GF(2), bits hashed): x^4+x+1, x^5+x^2+1, x^6+x+1."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Hash(NamedTuple):
    """How an address becomes one of ``bins``: the address bits above ``offset`` under a hash of ``kind``."""

    kind: int
    bins: int
    offset: int
    residues: np.ndarray


def make_hash(kind: int, bins: int, granule: int, what: str) -> Hash:
    """Return the hash of ``bins`` over granules of so many bytes; raises InputError where the original aborts."""
    if kind not in (LINEAR, BITWISE_XOR, RESIDUE, FERMI):
        raise InputError(f"{what}: hash function {kind} is not known; 0 linear, 1 xor, 2 residue and 3 Fermi are")
    if kind == RESIDUE and bins not in _POLYNOMIALS:
        raise InputError(f"{what}: the residue hash has no polynomial for {bins} bins; 16, 32 and 64 have one")
    if kind == FERMI and bins not in (32, 64):
        raise InputError(f"{what}: the Fermi hash is made for 32 and 64 bins, not {bins}")
    if bins < 1 or granule < 1:
        raise InputError(f"{what}: {bins} bins of {granule} bytes are not a cache")
    return Hash(kind, bins, granule.bit_length() - 1, _residues(bins) if kind == RESIDUE else np.zeros(1, np.int64))


def _residues(bins: int) -> np.ndarray:
    """Return x^(n+k) mod P over GF(2) for k = 0, 1, ...: what bit n+k above the offset adds to the index."""
    polynomial, count = _POLYNOMIALS[bins]
    value, out = 1, []
    for power in range(bins.bit_length() - 1 + count):
        if power >= bins.bit_length() - 1:
            out.append(value)
        value <<= 1
        value ^= polynomial if value & bins else 0
    return np.array(out, np.int64)


@njit()
def hash_index(address, kind, bins, offset, residues):
    """Return the bin of an address. The linear hash masks with bins - 1, which is modulo for powers of two."""
    line = address >> np.uint64(offset)
    index = np.int64(line & np.uint64(bins - 1))
    if kind == LINEAR:
        return index
    if kind == FERMI:
        index = np.int64(line & np.uint64(31)) ^ np.int64((address & np.uint64(0xE000)) >> np.uint64(13))
        upper = (address & np.uint64(0x20000)) >> np.uint64(14) | (address & np.uint64(0x80000)) >> np.uint64(15)
        index ^= np.int64(upper)
        return index | np.int64((address & np.uint64(0x1000)) >> np.uint64(7)) if bins == 64 else index
    bits = 0
    while (2 << bits) <= bins:
        bits += 1
    high = line >> np.uint64(bits)
    if kind == BITWISE_XOR:
        return index ^ np.int64(high & np.uint64(bins - 1))
    for k in range(residues.size):
        index ^= residues[k] & -np.int64((high >> np.uint64(k)) & np.uint64(1))
    return index


@njit()
def bank_cycles(accesses: np.ndarray, banks: Hash) -> int:
    """Return b: accesses in order, a new cycle whenever the bank is in use; at most 64 banks.

    docs/model/timing_traced.md 4.
    """
    cycles, used = 1, np.uint64(0)
    for address in accesses:
        bank = np.uint64(1) << np.uint64(hash_index(address, banks.kind, banks.bins, banks.offset, banks.residues))
        if used & bank:
            cycles, used = cycles + 1, np.uint64(0)
        used |= bank
    return cycles


@njit()
def slice_and_partition(address, line_address, channels, slices_per_channel):
    """Return the L2 slice of an address and its line's address within the slice.

    256-byte blocks are dealt over the channels; the low bank bits of what is left (7, 12, 13, 14) choose the slice
    of a channel and are squeezed out of the partition address (Accel-Sim's address decoder with GCoM's mapping).
    """
    n, low = np.uint64(channels), np.uint64(255)
    block, line_block = address >> np.uint64(8), line_address >> np.uint64(8)
    row = block // n
    rest = (row << np.uint64(8)) | (address & low)
    line_row = row if line_block == block else line_block // n
    partition = (line_row << np.uint64(8)) | (line_address & low)
    chosen, taken = 0, 0
    while (2 << taken) <= slices_per_channel:
        bit = 7 if taken == 0 else 11 + taken
        chosen |= np.int64((rest >> np.uint64(bit)) & np.uint64(1)) << taken
        at = np.uint64(bit - taken)
        below = (np.uint64(1) << at) - np.uint64(1)
        partition = ((partition >> (at + np.uint64(1))) << at) | (partition & below)
        taken += 1
    return np.int64(block - row * n) * slices_per_channel + chosen, partition


class Caches(NamedTuple):
    """Many sets of LRU lines: a doubly linked list in order of use and hash chains for each set.

    ``line`` [set * ways + way] holds addresses; ``node`` [set * ways + way, 4] the valid sectors as bits, the next
    newer and older line and the next in the chain; ``sets`` [set, 3 + buckets] the newest and oldest line, the lines
    used, and the chains' heads. -1 ends a list.
    """

    ways: int
    line: np.ndarray
    node: np.ndarray
    sets: np.ndarray


_VALID, _NEWER, _OLDER, _CHAIN = range(4)
_NEWEST, _OLDEST, _USED, _HEADS = range(4)


def make_caches(sets: int, ways: int) -> Caches:
    """Return empty caches with that many sets in all."""
    buckets = 1 << max(ways - 1, 1).bit_length()
    heads = np.full((sets, _HEADS + buckets), -1, np.int32)
    heads[:, _USED] = 0
    return Caches(ways, np.zeros(sets * ways, np.uint64), np.full((sets * ways, 4), -1, np.int32), heads)


@njit()
def _head(line, sets):
    """Return the column of the chain that a line belongs to."""
    return _HEADS + np.int64((line * _GOLDEN) >> np.uint64(40)) % (sets.shape[1] - _HEADS)


@njit()
def _unlink(node, sets, s, at):
    newer, older = node[at, _NEWER], node[at, _OLDER]
    if newer >= 0:
        node[newer, _OLDER] = older
    else:
        sets[s, _NEWEST] = older
    if older >= 0:
        node[older, _NEWER] = newer
    else:
        sets[s, _OLDEST] = newer


@njit()
def _make_newest(node, sets, s, at):
    first = sets[s, _NEWEST]
    node[at, _NEWER], node[at, _OLDER] = -1, first
    if first >= 0:
        node[first, _NEWER] = at
    else:
        sets[s, _OLDEST] = at
    sets[s, _NEWEST] = at


@njit()
def _evict(line, node, sets, s):
    """Take the least recently used line out of its list and chain; return its place."""
    at = sets[s, _OLDEST]
    _unlink(node, sets, s, at)
    head = _head(line[at], sets)
    if sets[s, head] == at:
        sets[s, head] = node[at, _CHAIN]
    else:
        before = sets[s, head]
        while node[before, _CHAIN] != at:
            before = node[before, _CHAIN]
        node[before, _CHAIN] = node[at, _CHAIN]
    return at


@njit()
def touch(ways, line, node, sets, s, address, sector):
    """Access one sector of the line at ``address`` in set ``s``, filling what is missing; tell whether it hit.

    Takes the arrays of Caches one by one: handing records on counts references, which cost more than the access.
    """
    head = _head(address, sets)
    at = sets[s, head]
    while at >= 0 and line[at] != address:
        at = node[at, _CHAIN]
    if at >= 0:
        if sets[s, _NEWEST] != at:
            _unlink(node, sets, s, at)
            _make_newest(node, sets, s, at)
        hit = (node[at, _VALID] >> sector) & 1
        node[at, _VALID] |= 1 << sector
        return hit == 1
    if sets[s, _USED] < ways:
        at = np.int32(s * ways + sets[s, _USED])
        sets[s, _USED] += 1
    else:
        at = _evict(line, node, sets, s)
    line[at], node[at, _VALID] = address, 1 << sector
    node[at, _CHAIN] = sets[s, head]
    sets[s, head] = at
    _make_newest(node, sets, s, at)
    return False

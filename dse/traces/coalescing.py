"""Compiled coalescing of a warp's lanes into memory accesses (GCoM after Accel-Sim; docs/model/timing_traced.md 3)."""

import numpy as np

from dse.base.compiled_loops import njit

STRADDLES = -1
"""Returned for an atomic whose bytes lie in two segments, which the original aborts on."""

_ONE, _FIVE, _SEVEN = np.uint64(1), np.uint64(5), np.uint64(127)


@njit()
def segment_bytes(width, sectors_per_line):
    """Return the size of a coalescing segment [B]: 32, or by access width in a cache without sectors."""
    if sectors_per_line != 1 or width == 1:
        return 32
    return 64 if width == 2 else 128


@njit()
def _reduced(block, chunks, segment):
    """Return a segment's address moved up to the half and the quarter that alone is used."""
    if segment == 32:
        return block
    if segment == 128:
        low, high = chunks & 3, chunks >> 2
        if low and high:
            return block
        half = low if low else high
        block = block if low else block + np.uint64(64)
    else:
        half = chunks & 3 if (block & _SEVEN) == 0 else chunks >> 2
    return block + np.uint64(32) if half == 2 else block


@njit()
def _enter(block, chunk, blocks, chunks, count):
    """Insert a segment into the ascending list, or add the chunk to the one that is there; return the count."""
    i = count
    while i > 0 and blocks[i - 1] > block:
        i -= 1
    if i > 0 and blocks[i - 1] == block:
        chunks[i - 1] |= 1 << chunk
        return count
    for j in range(count, i, -1):
        blocks[j], chunks[j] = blocks[j - 1], chunks[j - 1]
    blocks[i], chunks[i] = block, 1 << chunk
    return count + 1


@njit()
def coalesce(lanes, width, local, sectors_per_line, out):
    """Write the accesses of a load or store in ascending order to ``out`` (room for 64); return their number.

    ``lanes`` holds one address per active lane. A lane that straddles touches its first and its last byte's segment;
    local accesses of 4 bytes and more count as 4.
    """
    segment = segment_bytes(width, sectors_per_line)
    keep = ~np.uint64(segment - 1)
    reach = np.uint64((4 if local and width >= 4 else width) - 1)
    blocks, chunks = np.empty(65, np.uint64), np.empty(65, np.int64)
    count = 0
    for address in lanes:
        count = _enter(address & keep, np.int64((address & _SEVEN) >> _FIVE), blocks, chunks, count)
        last = address + reach
        if last & keep != address & keep:
            count = _enter(last & keep, np.int64((last & _SEVEN) >> _FIVE), blocks, chunks, count)
    for i in range(count):
        out[i] = _reduced(blocks[i], chunks[i], segment)
    return count


@njit()
def _byte_mask(offset, width):
    """Return the bits [offset, offset + width) of a 128-bit mask as two words."""
    ones = (_ONE << np.uint64(width)) - _ONE
    if offset >= 64:
        return np.uint64(0), ones << np.uint64(offset - 64)
    low = ones << np.uint64(offset)
    high = ones >> np.uint64(64 - offset) if offset + width > 64 else np.uint64(0)
    return low, high


@njit()
def coalesce_atomic(lanes, width, sectors_per_line, out):
    """Pack the lanes of an atomic greedily into accesses without byte overlap; return their number or STRADDLES."""
    segment = segment_bytes(width, sectors_per_line)
    keep = ~np.uint64(segment - 1)
    block, chunks = np.empty(32, np.uint64), np.zeros(32, np.int64)
    low, high = np.empty(32, np.uint64), np.empty(32, np.uint64)
    count = 0
    for address in lanes:
        home = address & keep
        if (address + np.uint64(width - 1)) & keep != home:
            return STRADDLES
        a, b = _byte_mask(np.int64(address & _SEVEN), width)
        i = 0
        while i < count and (block[i] != home or (low[i] & a) | (high[i] & b)):
            i += 1
        if i == count:
            block[i], low[i], high[i] = home, np.uint64(0), np.uint64(0)
            count += 1
        low[i], high[i] = low[i] | a, high[i] | b
        chunks[i] |= 1 << np.int64((address & _SEVEN) >> _FIVE)
    order = np.argsort(block[:count], kind="mergesort")
    for i in range(count):
        out[i] = _reduced(block[order[i]], chunks[order[i]], segment)
    return count

"""Compiled heart of the cache simulation: a CTA's accesses, and lock-step rounds over the resident CTAs."""

from typing import NamedTuple

import numpy as np

from dse.base.compiled_loops import njit
from dse.traces.coalescing import STRADDLES, coalesce, coalesce_atomic
from dse.traces.sectored_cache import Caches, Hash, hash_index, slice_and_partition, touch
from dse.traces.stack_distance import FIRST, MOST_SECTORS, STORE


class CtaMemory(NamedTuple):
    """A CTA's loads and stores of global and local memory, warp by warp.

    ``table`` [n + 1, 4]: index in the warp, first access, row of the counts, 1 for a store; ``warps`` [w + 1, 2]: first
    row of the table, instructions; ``access``: addresses.
    """

    table: np.ndarray
    warps: np.ndarray
    access: np.ndarray


class Counters(NamedTuple):
    """Open-addressed table from (program counter, index) to the row of its counts; ``size`` holds the rows used."""

    pc: np.ndarray
    place: np.ndarray
    row: np.ndarray
    size: np.ndarray


class Hardware(NamedTuple):
    """Caches, their hashes and geometry; ``sliced`` tells whether the L2 is simulated, else only its requests kept."""

    l1: Caches
    l2: Caches
    l1_hash: Hash
    l2_hash: Hash
    l1_line: int
    l2_line: int
    sectors: int
    channels: int
    slices: int
    sliced: bool


@njit()
def _counter(counters, pc, index):
    """Return the row of (pc, index), a new one where there is none."""
    mask = counters.row.size - 1
    h = (pc * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(index) * np.uint64(0xC2B2AE3D27D4EB4F))
    slot = np.int64((h >> np.uint64(20)) & np.uint64(mask))
    while counters.row[slot] >= 0:
        if counters.pc[slot] == pc and counters.place[slot] == index:
            return counters.row[slot]
        slot = (slot + 1) & mask
    counters.pc[slot], counters.place[slot], counters.row[slot] = pc, index, counters.size[0]
    counters.size[0] += 1
    return counters.row[slot]


@njit()
def rehash(old, new):
    """Enter the old table's pairs into the larger one with the rows they have."""
    mask = new.row.size - 1
    for i in range(old.row.size):
        if old.row[i] < 0:
            continue
        h = (old.pc[i] * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(old.place[i]) * np.uint64(0xC2B2AE3D27D4EB4F))
        slot = np.int64((h >> np.uint64(20)) & np.uint64(mask))
        while new.row[slot] >= 0:
            slot = (slot + 1) & mask
        new.pc[slot], new.place[slot], new.row[slot] = old.pc[i], old.place[i], old.row[i]
    new.size[0] = old.size[0]


@njit()
def _lanes(columns, row):
    """Return the addresses of the active lanes of a row."""
    mask, count = np.int64(columns.mask[row]), 0
    while mask:
        mask &= mask - 1
        count += 1
    at = columns.address_at[row]
    return columns.address[at : at + count] if at >= 0 else columns.address[:0]


@njit()
def _accesses(columns, row, width, atomic, sectors, out):
    """Coalesce one instruction; return the number of accesses, or STRADDLES."""
    lanes = _lanes(columns, row)
    if atomic[columns.opcode[row]]:
        return coalesce_atomic(lanes, width[columns.opcode[row]], sectors, out)
    return coalesce(lanes, width[columns.opcode[row]], columns.space[row] == 2, sectors, out)


@njit()
def gather(columns, warp_start, warp_count, width, atomic, store, sectors, counters, memory):
    """Fill ``memory`` with the CTA's loads and stores; return (their number, accesses), or (-1, row that straddles)."""
    n, used = 0, 0
    for w in range(warp_start.size):
        memory.warps[w, 0], memory.warps[w, 1] = n, warp_count[w]
        for i in range(warp_count[w]):
            row = warp_start[w] + i
            if columns.space[row] != 1 and columns.space[row] != 2:
                continue
            count = _accesses(columns, row, width, atomic, sectors, memory.access[used:])
            if count == STRADDLES:
                return -1, row
            memory.table[n, 0], memory.table[n, 1] = i, used
            memory.table[n, 2] = _counter(counters, columns.pc[row], i)
            memory.table[n, 3] = store[columns.opcode[row]]
            n, used = n + 1, used + count
    memory.warps[warp_start.size, 0], memory.table[n, 1] = n, used
    return n, used


@njit()
def _request(requests, address, row, store):
    """Keep a sector that misses the L1; ``store`` and whether it is its instruction's first become its flags."""
    at, kept_address, kept_row, flags = requests.used[0], requests.address, requests.row, requests.flags
    kept_address[at], kept_row[at], flags[at] = address, row, store
    requests.used[0] = at + 1


@njit()
def _execute(hw, sm, access, entry, start, stop, counts, own, m, counted, requests):
    """Send the accesses of one load or store through L1 and, where they miss, on to L2, and count them."""
    l1, l2 = hw.l1, hw.l2
    row, flags = entry[2], FIRST | (STORE * entry[3])
    kind, bins, offset, residues = hw.l1_hash
    two_kind, two_bins, two_offset, two_residues = hw.l2_hash
    l1_keep, l2_keep = ~np.uint64(hw.l1_line - 1), ~np.uint64(hw.l2_line - 1)
    one_line, one_node, one_sets = l1.line, l1.node, l1.sets
    two_line, two_node, two_sets = l2.line, l2.node, l2.sets
    missed_l1, missed_l2 = 0, 0
    for a in range(start, stop):
        address = access[a]
        line = address & l1_keep
        sector = 0 if hw.sectors == 1 else np.int64((address & np.uint64(127)) >> np.uint64(5))
        at = sm * bins + hash_index(line, kind, bins, offset, residues)
        if touch(l1.ways, one_line, one_node, one_sets, at, line, sector):
            own[m, 0] += counted
            continue
        missed_l1 = 1
        own[m, 1] += counted
        if requests.address.size:
            _request(requests, address, row, flags)
            flags &= STORE
        if not hw.sliced:
            continue
        line = address & l2_keep
        part, partition = slice_and_partition(address, line, hw.channels, hw.slices)
        at = part * two_bins + hash_index(partition, two_kind, two_bins, two_offset, two_residues)
        hit = touch(l2.ways, two_line, two_node, two_sets, at, line, sector)
        own[m, 2 if hit else 3] += counted
        missed_l2 |= 0 if hit else 1
    counts[missed_l1] += 1
    counts[2 + missed_l2] += 1


@njit()
def _step(hw, sm, slot, now, cursor, table, warps, access, counts, own, mine, requests):
    """Execute the instruction at a CTA's common index in each of its warps; tell whether all are past their end.

    ``mine`` is the representative warp where the CTA holds it, else -1.
    """
    done = True
    for w in range(warps.shape[0] - 1):
        if now >= warps[w, 1]:
            continue
        done = False
        m = cursor[slot, w]
        if m < warps[w + 1, 0] and table[m, 0] == now:
            counted = 1 if w == mine else 0
            row = m - warps[w, 0] if counted else 0
            start, stop = table[m, 1], table[m + 1, 1]
            _execute(hw, sm, access, table[m], start, stop, counts[table[m, 2]], own, row, counted, requests)
            cursor[slot, w] = m + 1
    return done


@njit()
def run_rounds(hw, order, resident, now, cursor, tables, warps, accesses, counts, own, own_slot, own_warp, requests):
    """Run rounds until one ends with finished CTAs, and free their slots; return how many finished.

    Stops early when the next round might not find room for its requests.
    """
    finished = 0
    room = requests.address.size - MOST_SECTORS * cursor.size
    while finished == 0 and (requests.address.size == 0 or requests.used[0] <= room):
        for sm in range(resident.size):
            kept = 0
            for k in range(resident[sm]):
                slot = order[sm, k]
                mine = own_warp if slot == own_slot else -1
                done = _step(
                    hw,
                    sm,
                    slot,
                    now[slot],
                    cursor,
                    tables[slot],
                    warps[slot],
                    accesses[slot],
                    counts,
                    own,
                    mine,
                    requests,
                )
                now[slot] += 1
                if done:
                    finished += 1
                    now[slot] = -1
                else:
                    order[sm, kept] = slot
                    kept += 1
            resident[sm] = kept
    return finished

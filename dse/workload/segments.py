"""A warp's instructions as segments: stretches that no stall can interrupt, whatever the latencies are.

Only an instruction that reads the result of an earlier one can stall, and only if no instruction before it has waited
for the same results; all others issue one cycle after their predecessor. So the recurrence over instructions
(spec/timing.md section 5) becomes one over segments, whose operands, counts and registers are known before any design
is: what depends on a design is the latency of each row of a table.
"""

from typing import NamedTuple

import numpy as np

COMPUTE, SHARED, GLOBAL = range(3)
"""What a dependent instruction waits for: a compute unit, shared memory, or global and local memory."""

NEVER = 0
"""The slot that holds a time before the first instruction: operands that are ready for sure."""

_SCRATCH = 1


class Segments(NamedTuple):
    """The segments of a warp, S of them, each with up to O operands of its first instruction.

    ``start`` [S]: first instruction; ``count`` [S]: instructions. An operand is done at T[slot] + offset +
    latency[row], where slot ``slot`` [S, O] holds the issue cycle of the segment of its producer; ``cause`` [S, O] is
    the producer's. Operands keep the instruction's order; slot NEVER marks one that is ready for sure. A segment's
    issue cycle goes to slot ``write`` [S] of ``slots``. The segment's instructions are done at the latest at T +
    ``finish_offset`` + latency[``finish_row``] (both [S, D]), of cause ``finish_cause``.
    """

    start: np.ndarray
    count: np.ndarray
    slot: np.ndarray
    offset: np.ndarray
    row: np.ndarray
    cause: np.ndarray
    write: np.ndarray
    slots: int
    finish_offset: np.ndarray
    finish_row: np.ndarray
    finish_cause: np.ndarray

    @property
    def instructions(self) -> int:
        """Instructions of the warp."""
        return int(self.count.sum())

    def total(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of per-instruction values [..., instructions] over the segments [..., S]."""
        return np.add.reduceat(values, self.start, axis=-1)


def make_segments(
    destination: np.ndarray, sources: np.ndarray, source_count: np.ndarray, row: np.ndarray, cause: np.ndarray
) -> Segments:
    """Return the segments of a warp.

    Arrays over its instructions: ``destination`` register or -1; ``sources`` [i, :] of which ``source_count`` count;
    ``row`` of the table of latencies; ``cause`` (COMPUTE, SHARED, GLOBAL) that a wait for its result has.
    """
    operands = _operands(destination, sources, source_count, row, cause)
    first = np.array([0, *(i for i in range(1, len(row)) if operands[i])])
    home = np.searchsorted(first, np.arange(len(row)), side="right") - 1
    at_start = [[(p, cause[p], live) for p, live in operands[i]] for i in first.tolist()]
    slot_of, write, slots = _slots(at_start, home.tolist())
    width = max(1, max(map(len, at_start)))
    table = np.zeros((4, len(first), width), np.int64)
    table[0] = NEVER
    for s, entries in enumerate(at_start):
        for o, (producer, producer_cause, live) in enumerate(entries):
            if live:
                table[:3, s, o] = slot_of[int(home[producer])], producer - first[home[producer]], row[producer]
            table[3, s, o] = producer_cause
    count = np.diff(first, append=len(row))
    finish_offset, finish_row, finish_cause = _finishes(first, count, row, cause)
    slot, offset, of_row, of_cause = table
    return Segments(first, count, slot, offset, of_row, of_cause, write, slots, finish_offset, finish_row, finish_cause)


def _operands(destination, sources, source_count, row, cause) -> list[list[tuple[int, bool]]]:
    """Return (producer, may stall) of each instruction's operands that matter; empty where none may stall.

    An operand matters when nothing has waited for it yet, or, for GCoM's order-dependent label, when it is global
    memory's and follows one that may stall. Of two producers of one row the later is done later.
    """
    writer: dict[int, int] = {}
    waited = np.zeros(len(row), bool)
    out: list[list[tuple[int, bool]]] = []
    for i in range(len(row)):
        producers = [writer[r] for r in sources[i, : source_count[i]].tolist() if r in writer]
        latest = {int(row[p]): p for p in sorted(producers)}
        entries: list[tuple[int, bool]] = []
        for p in producers:
            live = not waited[p] and latest[int(row[p])] == p and all(p != q for q, _ in entries)
            if live or (entries and cause[p] == GLOBAL):
                entries.append((p, live))
        waited[producers] = True
        out.append(entries)
        if destination[i] >= 0:
            writer[int(destination[i])] = i
    return out


def _slots(at_start: list, home: list[int]) -> tuple[dict[int, int], np.ndarray, int]:
    """Give the segments whose issue cycle is read later a slot for as long: (slot of segment, slot written, slots)."""
    last_use: dict[int, int] = {}
    for s, entries in enumerate(at_start):
        last_use.update({home[p]: s for p, _, live in entries if live})
    expires: dict[int, list[int]] = {}
    free: list[int] = []
    slot_of: dict[int, int] = {}
    write, slots = np.full(len(at_start), _SCRATCH), _SCRATCH + 1
    for s in range(len(at_start)):
        free += expires.pop(s, [])
        if s not in last_use:
            continue
        if not free:
            free.append(slots)
            slots += 1
        slot_of[s] = write[s] = free.pop()
        expires.setdefault(last_use[s], []).append(slot_of[s])
    return slot_of, write, slots


def _finishes(first: np.ndarray, count: np.ndarray, row: np.ndarray, cause: np.ndarray) -> np.ndarray:
    """Return offset, row and cause [3, S, D] of what may finish last in each segment: the last instruction of a row."""
    finishes = []
    for start, n in zip(first.tolist(), count.tolist(), strict=True):
        last = {(int(row[start + k]), int(cause[start + k])): k for k in range(n)}
        finishes.append([(k, r, c) for (r, c), k in last.items()])
    depth = max(map(len, finishes))
    return np.array([f + f[-1:] * (depth - len(f)) for f in finishes]).transpose(2, 0, 1)

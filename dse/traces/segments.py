"""A warp's instructions as segments: stretches that no stall can interrupt, whatever the latencies are.

Only an instruction that reads the result of an earlier one can stall, and only if no instruction before it has waited
for the same results; all others issue one cycle after their predecessor. So the recurrence over instructions
(docs/model/timing_traced.md 5) becomes one over segments, whose operands, counts and registers are known before any
design is: what depends on a design is the latency of each row of a table.
"""

from typing import NamedTuple

import numpy as np

COMPUTE, SHARED, GLOBAL = range(3)
"""What a dependent instruction waits for: a compute unit, shared memory, or global and local memory."""

NEVER = 0
"""The slot that holds a time before the first instruction: operands that are ready for sure."""

_SCRATCH = 1


class Last(NamedTuple):
    """The last instruction of each of D pairs of row and cause, arrays [D].

    ``instruction`` and its ``row`` and ``cause``; ``slot``: where the U of its segment stays until the warp's end.
    """

    instruction: np.ndarray
    row: np.ndarray
    cause: np.ndarray
    slot: np.ndarray


class Segments(NamedTuple):
    """The segments of a warp, S of them, each with up to O operands of its first instruction.

    Times are counted in cycles that the warp has stalled, U: instruction i of a segment issues at cycle i + U.
    ``start`` [S]: first instruction; ``length`` [S]: instructions. A segment stalls until U reaches U[slot] + offset +
    latency[row] of every operand, where slot ``slot`` [S, O] holds the U of the segment of its producer, and
    ``offset`` is how many instructions the producer lies back (negative); ``cause`` [S, O] is the producer's. Operands
    keep the instruction's order; slot NEVER marks one that is ready for sure. A segment's U goes to slot ``write`` [S]
    of ``slots``. Of each of D pairs of row and cause, ``last`` holds the last instruction.
    """

    start: np.ndarray
    length: np.ndarray
    slot: np.ndarray
    offset: np.ndarray
    row: np.ndarray
    cause: np.ndarray
    write: np.ndarray
    slots: int
    last: Last

    @property
    def instructions(self) -> int:
        """Instructions of the warp."""
        return int(self.length.sum())

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
    last = np.array(sorted({(int(r), int(c)): i for i, (r, c) in enumerate(zip(row, cause, strict=True))}.values()))
    slot_of, write, slots = _slots(at_start, home.tolist(), set(home[last].tolist()))
    width = max(1, max(map(len, at_start)))
    table = np.zeros((4, len(first), width), np.int64)
    table[0] = NEVER
    for s, entries in enumerate(at_start):
        for o, (producer, producer_cause, live) in enumerate(entries):
            if live:
                table[:3, s, o] = slot_of[int(home[producer])], producer - first[s], row[producer]
            table[3, s, o] = producer_cause
    count = np.diff(first, append=len(row))
    kept = Last(last, row[last], cause[last], np.array([slot_of[s] for s in home[last].tolist()]))
    slot, offset, of_row, of_cause = table
    return Segments(first, count, slot, offset, of_row, of_cause, write, slots, kept)


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


def _slots(at_start: list, home: list[int], to_the_end: set[int]) -> tuple[dict[int, int], np.ndarray, int]:
    """Give the segments whose U is read later a slot for as long: (slot of segment, slot written, slots).

    Those in ``to_the_end`` keep theirs.
    """
    last_use: dict[int, int] = {}
    for s, entries in enumerate(at_start):
        last_use.update({home[p]: s for p, _, live in entries if live})
    last_use.update(dict.fromkeys(to_the_end, len(at_start)))
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

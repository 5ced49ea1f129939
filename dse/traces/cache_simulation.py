"""Functional simulation of a trace's loads and stores through L1 and L2 (docs/model/timing_traced.md 3).

CTAs stream from the trace to the SMs' free slots; every SM's warps execute in lock step. Memory is bounded by the
CTAs that are resident at one time and by the distinct (program counter, index) pairs of loads and stores.
"""

import numpy as np

from dse.base.errors import InputError
from dse.base.extras import extra
from dse.traces.cache_rounds import Counters, CtaMemory, Hardware, gather, rehash, run_rounds
from dse.traces.curve_sizes import SIZES
from dse.traces.opcodes import AddressSpace, OpClass
from dse.traces.sectored_cache import make_caches, make_hash
from dse.traces.stack_distance import MOST_SECTORS, StackDistances, make_histograms, make_requests
from dse.traces.trace_files import KernelFile
from dse.traces.trace_reader import Cta, KernelStream
from dse.traces.warp_profile import LINEAR, CacheGeometry, Curves, Executed, WarpProfile

with extra("traces", "a recorded trace"):
    from numba.typed import List


_LINE = 128
_REQUESTS = 1 << 18


class _Simulation:
    """The caches, the resident CTAs and the counts of one kernel while its CTAs stream through."""

    def __init__(self, kernel: KernelFile, geometry: CacheGeometry, representative: int, curves: bool):
        g, warps = geometry, kernel.header.warps_per_cta
        self.geometry, self.stream = geometry, KernelStream(kernel)
        self.own_cta, self.own_warp = divmod(representative, warps)
        self.hardware = _hardware(g)
        slots = g.sms * g.ctas_per_sm
        self.order = np.zeros((g.sms, g.ctas_per_sm), np.int64)
        self.resident = np.zeros(g.sms, np.int64)
        self.now, self.cursor = np.full(slots, -1, np.int64), np.zeros((slots, warps), np.int64)
        self.tables, self.warps, self.accesses = (List() for _ in range(3))  # pyright: ignore[reportCallIssue]
        self.filled = 0
        self.next_sm, self.own_slot = 0, -1
        self.warp_counts: list[np.ndarray] = []
        self.counters, self.counts = _new_counters(1 << 10), np.zeros((1 << 9, 4), np.int64)
        self.own = np.zeros((1, 4), np.int64)
        self.requests = make_requests(2 * MOST_SECTORS * self.cursor.size + _REQUESTS if curves else 0)
        self.distances, self.histograms = StackDistances(), make_histograms(len(self.counts) if curves else 0)
        self.profile: dict[str, np.ndarray] = {}
        self.executed = np.zeros((4, 0), np.int64)
        self.sectors = np.zeros(2, np.int64)

    def free_sm(self) -> int:
        """Return the SM that takes the next CTA, round robin over those with a free slot; -1 where none has."""
        for j in range(self.geometry.sms):
            sm = (self.next_sm + j) % self.geometry.sms
            if self.resident[sm] < self.geometry.ctas_per_sm:
                return sm
        return -1

    def admit(self, cta: Cta, sm: int) -> None:
        """Place a CTA on an SM."""
        self.next_sm = (sm + 1) % self.geometry.sms
        memory = self._memory(cta)
        self._count(cta, memory)
        slot = self._slot(memory)
        self.order[sm, self.resident[sm]] = slot
        self.resident[sm] += 1
        self.now[slot] = 0
        self.cursor[slot] = memory.warps[:-1, 0]
        self.warp_counts.append(cta.warp_count.astype(np.int32))
        if cta.number == self.own_cta:
            self.own_slot, self.profile = slot, _own_rows(cta, self.own_warp, memory)
            self.own = np.zeros((max(len(self.profile["memory_row"]), 1), 4), np.int64)

    def _count(self, cta: Cta, memory: CtaMemory) -> None:
        """Add a CTA's instructions to those executed, and its sectors to those asked for."""
        c, rows, kinds = cta.columns, int(cta.warp_count.sum()), len(self.stream.opcodes)
        opcode = c.opcode[:rows]
        lanes, read = np.bitwise_count(c.mask[:rows]), c.source_count[:rows]
        weights = (None, lanes, read, (c.destination[:rows, 0] >= 0).astype(np.int64))
        counted = np.array([np.bincount(opcode, w, kinds) for w in weights], np.int64)
        counted[:, : self.executed.shape[1]] += self.executed
        self.executed = counted
        filled = int(memory.warps[-1, 0])
        wide = np.diff(memory.table[: filled + 1, 1])
        self.sectors += np.bincount(memory.table[:filled, 3], wide, 2).astype(np.int64)

    def _slot(self, memory: CtaMemory) -> int:
        if self.filled < len(self.now):
            self.tables.append(memory.table)
            self.warps.append(memory.warps)
            self.accesses.append(memory.access)
            self.filled += 1
            return self.filled - 1
        slot = int(np.flatnonzero(self.now < 0)[0])
        self.tables[slot], self.warps[slot], self.accesses[slot] = memory.table, memory.warps, memory.access
        return slot

    def _memory(self, cta: Cta) -> CtaMemory:
        columns, g = cta.columns, self.geometry
        rows = int(cta.warp_count.sum())
        space = columns.space[:rows]
        n = int(((space == AddressSpace.GLOBAL) | (space == AddressSpace.LOCAL)).sum())
        self._reserve(n)
        memory = CtaMemory(
            np.empty((n + 1, 4), np.int64),
            np.empty((len(cta.warp_count) + 1, 2), np.int64),
            np.empty(64 * (n + 1), np.uint64),
        )
        width = np.array([o.width for o in self.stream.opcodes] or [0], np.int64)
        atomic = np.array([o.atomic for o in self.stream.opcodes] or [0], np.bool_)
        store = np.array([o.op_class == OpClass.STORE for o in self.stream.opcodes] or [0], np.bool_)
        n, used = gather(
            columns, cta.warp_start, cta.warp_count, width, atomic, store, g.sectors, self.counters, memory
        )
        if n < 0:
            text = self.stream.opcodes[columns.opcode[used]].text
            where = f"{self.stream.kernel.path}: CTA {cta.number}, program counter {int(columns.pc[used]):#x}"
            raise InputError(
                f"{where}: {text!r} has a lane whose bytes lie in two {g.l1_line // g.sectors}-byte segments"
            )
        return memory._replace(access=memory.access[:used].copy())

    def _reserve(self, more: int) -> None:
        """Make room for so many further (program counter, index) pairs."""
        need = int(self.counters.size[0]) + more
        if 2 * need > len(self.counters.row):
            larger = _new_counters(1 << (2 * need).bit_length())
            rehash(self.counters, larger)
            self.counters = larger
        if need > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros((need, 4), np.int64)])
        if len(self.histograms.lines):
            self.histograms = self.histograms.reserve(len(self.counts))

    def run(self) -> int:
        """Run rounds until CTAs finish; return how many."""
        finished = run_rounds(
            self.hardware,
            self.order,
            self.resident,
            self.now,
            self.cursor,
            self.tables,
            self.warps,
            self.accesses,
            self.counts,
            self.own,
            self.own_slot,
            self.own_warp,
            self.requests,
        )
        self.distances.count(self.requests, self.histograms)
        if self.own_slot >= 0 and self.now[self.own_slot] < 0:
            self.own_slot = -1
        return finished


def simulate(kernel: KernelFile, geometry: CacheGeometry, representative: int, *, curves: bool = False) -> WarpProfile:
    """Run a kernel's trace through the caches and return the representative warp with what they did for it.

    ``representative`` is CTA index times warps per CTA plus warp; with ``curves`` the L2's misses are counted for every
    size at once. Raises InputError where the warp is not in the grid, or where the trace is broken.
    """
    header = kernel.header
    if not 0 <= representative < header.ctas * header.warps_per_cta:
        most = header.ctas * header.warps_per_cta - 1
        raise InputError(f"{kernel.path}: representative warp {representative} is not in the grid; 0 to {most} are")
    simulation = _Simulation(kernel, geometry, representative, curves)
    running = 0
    for cta in simulation.stream:
        while (sm := simulation.free_sm()) < 0:
            running -= simulation.run()
        simulation.admit(cta, sm)
        running += 1
    while running:
        running -= simulation.run()
    return _warp_profile(simulation, representative)


def _hardware(g: CacheGeometry) -> Hardware:
    if g.sectors not in (1, 4) or g.l1_line != _LINE:
        raise InputError(f"L1 lines of {g.l1_line} B in {g.sectors} sectors are not covered; 128 B in 4 or 1 are")
    if g.channels == 0:
        g = g._replace(slices_per_channel=1, l2_sets=1, l2_ways=1, l2_line=_LINE, l2_hash=LINEAR)
    if g.slices_per_channel not in (1, 2, 4, 8, 16):
        raise InputError(f"{g.slices_per_channel} L2 slices a channel are not covered; 1, 2, 4, 8 and 16 are")
    if g.l2_line < 32 or g.l2_line & (g.l2_line - 1):
        raise InputError(f"L2 lines of {g.l2_line} B are not covered; powers of two from 32 are")
    if min(g.l1_ways, g.l2_ways) < 1:
        raise InputError(f"caches of {g.l1_ways} (L1) and {g.l2_ways} (L2) ways are not covered; 1 and more are")
    l1, l2 = make_hash(g.l1_hash, g.l1_sets, g.l1_line, "L1"), make_hash(g.l2_hash, g.l2_sets, g.l2_line, "L2")
    return Hardware(
        make_caches(g.sms * g.l1_sets, g.l1_ways),
        make_caches(max(g.channels, 1) * g.slices_per_channel * g.l2_sets, g.l2_ways),
        l1,
        l2,
        g.l1_line,
        g.l2_line,
        g.sectors,
        g.channels,
        g.slices_per_channel,
        g.channels > 0,
    )


def _new_counters(size: int) -> Counters:
    return Counters(
        np.zeros(size, np.uint64), np.zeros(size, np.int64), np.full(size, -1, np.int64), np.zeros(1, np.int64)
    )


def _own_rows(cta: Cta, warp: int, memory: CtaMemory) -> dict[str, np.ndarray]:
    """Return copies of a warp's rows and of its part of the CTA's loads and stores."""
    c, rows = cta.columns, cta.warp(warp)
    first, last = int(memory.warps[warp, 0]), int(memory.warps[warp + 1, 0])
    table = memory.table[first : last + 1]
    return {
        "pc": c.pc[rows].copy(),
        "lanes": np.bitwise_count(c.mask[rows]).astype(np.int64),
        "opcode": c.opcode[rows].copy(),
        "space": c.space[rows].copy(),
        "destination": c.destination[rows, 0].copy(),
        "sources": c.sources[rows].copy(),
        "source_count": c.source_count[rows].copy(),
        "memory_row": table[:-1, 0].copy(),
        "counter": table[:-1, 2].copy(),
        "starts": table[:, 1] - table[0, 1],
        "access": memory.access[table[0, 1] : table[-1, 1]].copy(),
    }


def _warp_profile(simulation: _Simulation, representative: int) -> WarpProfile:
    rows: dict[str, np.ndarray] = dict(simulation.profile)
    n, memory_row = len(rows["pc"]), rows.pop("memory_row")
    counter, starts = rows.pop("counter"), rows.pop("starts")
    own, pooled = np.zeros((n, 4), np.int64), np.zeros((n, 4), np.int64)
    own[memory_row] = simulation.own[: len(memory_row)]
    pooled[memory_row] = simulation.counts[counter]
    number = np.zeros(n + 1, np.int64)
    number[memory_row + 1] = np.diff(starts)
    stream = simulation.stream
    warps, lanes, read, written = simulation.executed
    return WarpProfile(
        kernel=stream.kernel,
        warp=representative,
        thread_instructions=stream.thread_instructions,
        warp_counts=np.stack(simulation.warp_counts),
        opcodes=tuple(stream.opcodes),
        own=own,
        pooled=pooled,
        access_at=np.cumsum(number),
        executed=Executed(warps, lanes, read, written, simulation.sectors),
        curves=_curves(simulation, n, memory_row, counter),
        **rows,
    )


def _curves(simulation: _Simulation, n: int, memory_row: np.ndarray, counter: np.ndarray) -> Curves | None:
    histograms = simulation.histograms
    if not len(histograms.lines):
        return None
    wide, lines = np.zeros((2, n, len(SIZES) + 1), np.int64), np.zeros(n, np.int64)
    wide[:, memory_row] = histograms.sectors[counter], histograms.instructions[counter]
    lines[memory_row] = histograms.lines[counter]
    return Curves(wide[0], wide[1], lines, histograms.kernel, simulation.distances.footprint_bytes)

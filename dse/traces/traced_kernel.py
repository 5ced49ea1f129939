"""A traced kernel as the models see it: the representative warp in segments, its memory by cache size, the launch.

Where a :class:`~dse.workload.kernel.Kernel` states counts of a made-up warp, this holds those of a real one. What the
GPU decides (which sectors miss the L1, which sub-core is busiest) is held once for each profile: a GPU on which the
caches were simulated. Miss-rate curves hold for every L2 at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dse.base.errors import InputError
from dse.base.units import WARP_SIZE
from dse.traces.latency_forms import Forms, find_forms
from dse.traces.opcodes import AddressSpace, OpClass, Opcode, Unit, is_cached, needed_capability
from dse.traces.segments import COMPUTE, GLOBAL, SHARED, Segments, make_segments
from dse.traces.warp_profile import L1_HIT, L1_MISS, LINEAR, Curves, Executed, WarpProfile

SECTOR_BYTES = 32.0
L1_BANKS, L1_BANK_BYTES = 4, 32

INSTRUCTION_BYTES = 16
"""Bytes of a SASS instruction, since Volta."""

ROWS = ("alu", "fp64", "sfu", "texture", "control", "shared_load", "shared_store", "global_store")
"""Latencies that do not depend on the instruction beyond its kind; tensor classes and loads follow in the table."""

_KINDS = {
    OpClass.DP: "fp64",
    OpClass.SFU: "sfu",
    OpClass.TEXTURE: "texture",
    OpClass.BARRIER: "control",
    OpClass.EXIT: "control",
    OpClass.MEMORY_BARRIER: "control",
}
_PIPES = {Unit.SP: "fp32", Unit.INT: "int32", Unit.BRANCH: "int32", Unit.DP: "fp64", Unit.SFU: "sfu"}


class TensorClass(NamedTuple):
    """Tensor instructions of one kind: data type, FMAs [FMA/warp instruction], 1.0 where a warpgroup issues them."""

    dtype: str
    fma: float
    warpgroup: float


class Profile(NamedTuple):
    """What one GPU does to the kernel, S segments and M kinds of loads, G cache sizes.

    ``load_misses`` [M]: share of warp instructions that miss the L1 (mu1); ``load_l2_misses`` [M, G]: share of those
    that miss an L2 of each size (mu2). Means of a warp, by segment: ``load_sectors``, ``store_sectors`` [S] that miss
    the L1, ``dram_sectors`` [S, G] of the loads that miss the L2 too, ``load_lines``, ``store_lines`` [S] of 128
    bytes. Of the kernel: ``read_bytes``, ``write_bytes`` [G] of DRAM, ``l2_bytes`` between SMs and L2,
    ``l2_read_bytes`` of them loaded, ``footprint`` [B] touched. ``busiest`` and ``hosted``: instructions of the busiest
    sub-core and of the representative warp's.
    """

    load_misses: np.ndarray
    load_l2_misses: np.ndarray
    load_sectors: np.ndarray
    store_sectors: np.ndarray
    dram_sectors: np.ndarray
    load_lines: np.ndarray
    store_lines: np.ndarray
    read_bytes: np.ndarray
    write_bytes: np.ndarray
    l2_bytes: np.ndarray
    l2_read_bytes: np.ndarray
    footprint: np.ndarray
    busiest: np.ndarray
    hosted: np.ndarray


@dataclass(frozen=True)
class TracedKernel:
    """A kernel of a trace; launch facts are named as in Kernel.

    ``segments`` index latencies by ROWS, then ``tensor`` classes, then kinds of loads. ``counts`` [S] by name: all
    instructions, fp32, int32, fp64 and sfu instructions, and ``l1_bytes`` moved between registers, L1 and shared
    memory, of the representative warp; ``tensor_counts`` [classes, S] its tensor instructions. ``profiles`` holds a
    Profile with a leading axis of P profiles, made for GPUs whose attributes (in the order of ``keys``) are the rows of
    ``made_for`` [P, keys]. ``opcodes`` are those of all warps, ``executed`` what these did by them; ``code_bytes`` [B]
    of instructions that the representative warp fetches. ``compiled``: the same kernel with ``forms``, whose counts are
    by distinct interval.
    """

    name: str
    ctas: float
    warps: float
    registers: float
    shared_kib: float
    thread_instructions: int
    warp_instructions: int
    representative: int
    segments: Segments
    counts: dict[str, np.ndarray]
    tensor: tuple[TensorClass, ...]
    tensor_counts: np.ndarray
    keys: tuple[str, ...]
    made_for: np.ndarray
    profiles: Profile
    opcodes: tuple[Opcode, ...]
    executed: Executed
    code_bytes: float
    launches: float = 1.0
    compute_capability: float = 0.0
    forms: Forms | None = None
    compiled: "TracedKernel | None" = None

    @property
    def tensor_types(self) -> set[str]:
        """Data types of its tensor instructions."""
        return {kind.dtype for kind in self.tensor}

    @property
    def busiest_tensor_type(self) -> str | None:
        """Data type that does most of its multiply-adds; None without tensor instructions."""
        counts = [kind.fma * n.sum() for kind, n in zip(self.tensor, self.tensor_counts, strict=True)]
        return self.tensor[int(np.argmax(counts))].dtype if counts else None

    def arrays(self) -> Iterator[np.ndarray]:
        """Return every array that decides its results, for a hash."""
        counted = (
            self.segments,
            self.counts.values(),
            (self.tensor_counts, self.made_for),
            self.profiles,
            self.executed,
        )
        for part in counted:
            yield from map(np.asarray, part)
        yield np.array([self.ctas, self.warps, self.registers, self.shared_kib, self.launches, self.compute_capability])
        yield np.array([str(tuple(kind)) for kind in self.tensor], "U")
        yield np.array([opcode.text for opcode in self.opcodes], "U")

    @property
    def fma(self) -> float:
        """Multiply-adds of the tensor cores, all warps taken as the representative one [FMA]."""
        per_warp = sum(kind.fma * n.sum() for kind, n in zip(self.tensor, self.tensor_counts, strict=True))
        return float(per_warp * self.ctas * self.warps)


_BY_SEGMENT = ("load_sectors", "store_sectors", "dram_sectors", "load_lines", "store_lines")
"""Fields of a Profile that hold a value by segment, after the axis of profiles."""


def with_forms(kernel: TracedKernel, latency: np.ndarray, fresh: np.ndarray) -> TracedKernel:
    """Return a kernel with its compiled form for designs like those of ``latency`` [rows, designs], checked on
    ``fresh`` ones; without one where forms do not serve (:func:`dse.traces.latency_forms.find_forms`)."""
    of_profiles = [np.moveaxis(getattr(kernel.profiles, name), 1, 0) for name in _BY_SEGMENT]
    tables = [*(v[:, None] for v in kernel.counts.values()), kernel.tensor_counts.T, *of_profiles]
    steps = len(kernel.segments.length)
    forms = find_forms(kernel.segments, np.hstack([table.reshape(steps, -1) for table in tables]), latency, fresh)
    if forms is None:
        return replace(kernel, compiled=None)

    def over(values: np.ndarray, axis: int) -> np.ndarray:
        return np.stack([np.take(values, range(*span), axis).sum(axis) for span in forms.spans], axis)

    profiles = kernel.profiles._replace(**{name: over(getattr(kernel.profiles, name), 1) for name in _BY_SEGMENT})
    compiled = replace(
        kernel,
        forms=forms,
        counts={name: over(values, 0) for name, values in kernel.counts.items()},
        tensor_counts=over(kernel.tensor_counts, 1),
        profiles=profiles,
    )
    return replace(kernel, compiled=compiled)


def traced_kernel(
    runs: Sequence[WarpProfile], placed: Sequence[tuple[int, int]], keys: tuple[str, ...], made_for: np.ndarray
) -> TracedKernel:
    """Return the record of a kernel that was simulated, with curves, on P GPUs.

    ``placed`` [P]: SMs and sub-cores an SM of each GPU, for the instructions of its sub-cores; ``keys`` and
    ``made_for`` as in the record. Raises InputError where the representative warp is empty or an opcode is not covered.
    """
    run, header = runs[0], runs[0].kernel.header
    where = f"{run.kernel.path}: the representative warp {run.warp}"
    if len(run.pc) == 0:
        raise InputError(f"{where} has no instructions; choose another")
    opcodes = [run.opcodes[k] for k in run.opcode]
    tensor = tuple(sorted({_tensor_class(o, where) for o in run.opcodes if o.op_class == OpClass.TENSOR}))
    misses = [_load_misses(r) for r in runs]
    kinds, load_kind = _load_kinds(run, misses)
    row = _rows(run, opcodes, tensor, load_kind)
    cause = np.array([_cause(o, s) for o, s in zip(opcodes, run.space, strict=True)])
    segments = make_segments(run.destination, run.sources, run.source_count, row, cause)
    profiles = [_profile(r, segments, misses[p], kinds, _subcores(r, *placed[p])) for p, r in enumerate(runs)]
    tensor_counts = np.array(
        [[o.op_class == OpClass.TENSOR and _tensor_class(o, where) == t for o in opcodes] for t in tensor], float
    ).reshape(len(tensor), len(opcodes))
    return TracedKernel(
        name=header.name,
        ctas=float(header.ctas),
        warps=float(header.warps_per_cta),
        registers=float(header.registers),
        shared_kib=header.shared_bytes / 1024.0,
        thread_instructions=run.thread_instructions,
        warp_instructions=int(run.warp_counts.sum()),
        representative=run.warp,
        segments=segments,
        counts=_counts(run, opcodes, segments),
        tensor=tensor,
        tensor_counts=segments.total(tensor_counts),
        keys=keys,
        made_for=made_for,
        profiles=Profile(*(np.stack([getattr(p, field) for p in profiles]) for field in Profile._fields)),
        opcodes=run.opcodes,
        compute_capability=needed_capability(run.opcodes),
        executed=run.executed,
        code_bytes=float(INSTRUCTION_BYTES * len(np.unique(run.pc))),
    )


def _tensor_class(opcode: Opcode, where: str) -> TensorClass:
    if opcode.fma == 0:
        raise InputError(
            f"{where}: the shape of the tensor instruction {opcode.text!r} is not known, so neither its work"
        )
    return TensorClass(opcode.tensor_dtype, float(opcode.fma), float(opcode.text.split(".")[0].endswith("GMMA")))


def _load_misses(run: WarpProfile) -> np.ndarray:
    """Return mu1 and mu2 by cache size of each instruction [i, 1 + G]: conditional rates.

    docs/model/timing_amali.md 12.11.
    """
    curves = _curves(run)
    executed = np.maximum(run.pooled[:, L1_HIT] + run.pooled[:, L1_MISS], 1)
    missed = run.pooled[:, L1_MISS]
    beyond = _beyond(curves.instructions) / np.maximum(missed, 1)[:, None]
    return np.concatenate([(missed / executed)[:, None], beyond], axis=1)


def _beyond(histogram: np.ndarray) -> np.ndarray:
    """Return how many of a histogram by smallest size that holds them miss at each size [..., sizes]."""
    return np.cumsum(histogram[..., ::-1], axis=-1)[..., ::-1][..., 1:]


def _curves(run: WarpProfile) -> Curves:
    if run.curves is None:
        raise ValueError("the caches were simulated without curves")
    return run.curves


def _is_load(opcode: Opcode, space: int) -> bool:
    return opcode.op_class == OpClass.LOAD and is_cached(opcode.op_class, space)


def _load_kinds(run: WarpProfile, misses: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return an instruction of each distinct kind of load [M], and the kind of each instruction (-1: no load)."""
    executed = zip(run.opcode, run.space, run.lanes, strict=True)
    loads = np.flatnonzero([_is_load(run.opcodes[opcode], space) and lanes > 0 for opcode, space, lanes in executed])
    kind = np.full(len(run.pc), -1)
    if len(loads) == 0:
        return loads, kind
    _, first, inverse = np.unique(
        np.concatenate([m[loads] for m in misses], axis=1), axis=0, return_index=True, return_inverse=True
    )
    kind[loads] = inverse.reshape(-1)
    return loads[first], kind


def _rows(
    run: WarpProfile, opcodes: list[Opcode], tensor: tuple[TensorClass, ...], load_kind: np.ndarray
) -> np.ndarray:
    """Return the row of the latency table of each instruction; without active lanes it is over at once."""
    row = np.empty(len(opcodes), np.int64)
    for i, (opcode, space) in enumerate(zip(opcodes, run.space, strict=True)):
        if run.lanes[i] == 0:
            row[i] = ROWS.index("control")
        elif load_kind[i] >= 0:
            row[i] = len(ROWS) + len(tensor) + load_kind[i]
        elif opcode.op_class == OpClass.TENSOR:
            row[i] = len(ROWS) + tensor.index(_tensor_class(opcode, ""))
        else:
            row[i] = ROWS.index(_kind(opcode, space, bool(run.destination[i] >= 0)))
    return row


def _kind(opcode: Opcode, space: int, returns: bool) -> str:
    if opcode.op_class in (OpClass.LOAD, OpClass.STORE):
        if space == AddressSpace.SHARED:
            return "shared_load" if returns or opcode.op_class == OpClass.LOAD else "shared_store"
        off_chip = space in (AddressSpace.GLOBAL, AddressSpace.LOCAL)
        return "global_store" if off_chip else "alu"  # LDC and the like run as ALU
    return _KINDS.get(opcode.op_class, "alu")


def _cause(opcode: Opcode, space: int) -> int:
    if is_cached(opcode.op_class, space) or opcode.op_class == OpClass.TEXTURE:
        return GLOBAL
    return SHARED if space == AddressSpace.SHARED else COMPUTE


def _counts(run: WarpProfile, opcodes: list[Opcode], segments: Segments) -> dict[str, np.ndarray]:
    """Return the instructions of each pipe and the L1's bytes by segment; packed FP16 takes half an FP32 pass."""
    from dse.traces.sectored_cache import bank_cycles, make_hash  # compiled loops: only where there is a trace

    values = {name: np.zeros(len(opcodes)) for name in ("fp32", "int32", "fp64", "sfu", "l1_bytes")}
    banks = make_hash(LINEAR, L1_BANKS, L1_BANK_BYTES, "L1 banks")
    for i, opcode in enumerate(opcodes):
        if opcode.unit in _PIPES:
            values[_PIPES[opcode.unit]][i] = 0.5 if opcode.half else 1.0
        if is_cached(opcode.op_class, run.space[i]) and run.lanes[i]:
            b = bank_cycles(run.access[run.access_at[i] : run.access_at[i + 1]], banks)  # Eq. (11)'s b_k
            values["l1_bytes"][i] = b * L1_BANKS * L1_BANK_BYTES
        elif run.space[i] == AddressSpace.SHARED:
            values["l1_bytes"][i] = opcode.shared_bytes * run.lanes[i] / WARP_SIZE
    return {"instructions": segments.length.astype(float)} | {name: segments.total(v) for name, v in values.items()}


def _profile(
    run: WarpProfile, segments: Segments, misses: np.ndarray, kinds: np.ndarray, subcores: tuple[float, float]
) -> Profile:
    """Return what one GPU does to the kernel; misses at a (program counter, index) are the mean of all warps there."""
    curves = _curves(run)
    executed = np.maximum(run.pooled[:, L1_HIT] + run.pooled[:, L1_MISS], 1)
    loads = np.array([_is_load(run.opcodes[o], s) for o, s in zip(run.opcode, run.space, strict=True)])
    active = run.lanes > 0
    sectors, lines = curves.sectors.sum(axis=1) / executed, curves.lines / executed
    beyond = _beyond(curves.sectors) / executed[:, None] * (loads & active)[:, None]
    read, write = SECTOR_BYTES * _beyond(curves.kernel)
    return Profile(
        load_misses=misses[kinds, 0],
        load_l2_misses=misses[kinds, 1:],
        load_sectors=segments.total(sectors * (loads & active)),
        store_sectors=segments.total(sectors * (~loads & active)),
        dram_sectors=segments.total(beyond.T).T,
        load_lines=segments.total(lines * (loads & active)),
        store_lines=segments.total(lines * (~loads & active)),
        read_bytes=read,
        write_bytes=write,
        l2_bytes=np.asarray(SECTOR_BYTES * curves.kernel.sum()),
        l2_read_bytes=np.asarray(SECTOR_BYTES * curves.kernel[0].sum()),
        footprint=np.asarray(float(curves.footprint_bytes)),
        busiest=np.asarray(subcores[0]),
        hosted=np.asarray(subcores[1]),
    )


def _subcores(run: WarpProfile, sms: int, subcores: int) -> tuple[float, float]:
    """Return the instructions of the busiest sub-core and of the representative warp's, for AMALI's ID.

    The tracer does not record SMs: CTAs are dealt round robin. A warp's sub-core is its SM-wide slot mod the number of
    sub-cores (docs/model/timing_amali.md 12.18), where CTAs of an SM take slots one after another.
    """
    ctas, warps = run.warp_counts.shape
    cta = np.arange(ctas)
    sm, order = cta % sms, cta // sms
    slot = order[:, None] * warps + np.arange(warps)
    home = sm[:, None] * subcores + slot % subcores
    totals = np.bincount(home.reshape(-1), run.warp_counts.reshape(-1))
    return float(totals.max()), float(totals[home[divmod(run.warp, warps)]])

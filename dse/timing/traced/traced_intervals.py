"""What a batch of designs makes of a traced kernel: its latencies, and its intervals with their counts.

Designs are batched inside, in the minor axis (see :mod:`dse.timing.traced.scoreboard`): fields of a Gpu are scalars
or arrays of shape (designs,), and so is everything here after an axis of segments, rows or cache sizes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.timing.memory import MemoryPath, memory_terms
from dse.timing.tensor_core import FIXED_INTERVAL, busy_cycles, class_rate
from dse.timing.timing import Timing
from dse.timing.traced.by_latency_forms import by_forms, over_distinct
from dse.timing.traced.scoreboard import Lone, lone_warp, walk
from dse.traces.curve_sizes import LINE_BYTES, SIZES
from dse.traces.segments import Segments
from dse.traces.traced_kernel import ROWS, SECTOR_BYTES, TensorClass, TracedKernel
from dse.workload.kernel import Interval

CONTROL_CYCLES = constant("control_cycles")
"""Latency [cycle] of barriers, exit, fences and instructions without active lanes."""

TEXTURE_CYCLES = constant("texture_cycles")
"""Latency [cycle] of texture instructions: GCoM's RTX 2060; their addresses are not traced."""


class Segmented(NamedTuple):
    """Counts of the representative warp by segment, or by distinct interval; arrays (S,) or (S, *designs).

    ``instructions`` [warp instruction]; dispatch cycles [cycle] of ``tensor``, ``fp32``, ``int32``, ``sfu`` and
    ``fp64``; ``l1_bytes``, ``load_bytes``, ``store_bytes`` and ``dram_bytes`` (of loads) [B]; 128-byte requests
    ``load_line_bytes`` and ``store_line_bytes`` [B].
    """

    instructions: Array
    tensor: Array
    fp32: Array
    int32: Array
    sfu: Array
    fp64: Array
    l1_bytes: Array
    load_bytes: Array
    store_bytes: Array
    dram_bytes: Array
    load_line_bytes: Array
    store_line_bytes: Array

    @property
    def busiest_pipe(self) -> Array:
        """Dispatch cycles on the math pipe that is busiest [cycle], Eq. (10)."""
        most = self.tensor
        for pipe in (self.fp32, self.int32, self.sfu, self.fp64):
            most = jnp.maximum(most, pipe)
        return most

    @property
    def interval(self) -> Interval:
        """What the interval model asks of an interval; its stalls and dispatch are told apart."""
        return Interval(
            repeats=1.0,
            instructions=self.instructions,
            shared_bytes=self.l1_bytes,
            load_bytes=self.load_bytes,
            store_bytes=self.store_bytes,
        )

    @property
    def dram_share(self) -> Array:
        """Share of the loads' bytes that miss in the L2."""
        return safe_div(self.dram_bytes, self.load_bytes)


class View(NamedTuple):
    """A traced kernel on designs: memory terms, latency of each row (rows, *designs), and counts by segment.

    ``l2_bytes`` [B] pass between SMs and L2; ``busiest`` and ``hosted`` are instructions of sub-cores (ID).
    """

    memory: MemoryPath
    latency: Array
    counts: Segmented
    l2_bytes: Array
    busiest: Array
    hosted: Array


def designs_shape(gpu: Gpu) -> tuple[int, ...]:
    """Return the shape of a batch of designs."""
    return jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in jax.tree.leaves(gpu)))


def trace_clock(kernel: TracedKernel, gpu: Gpu) -> Array:
    """Return the clock of a traced kernel [GHz]: the tensor clock where it uses tensor cores, but boost for FP64."""
    return gpu.tensor_clock_ghz if kernel.tensor_types - {"fp64"} else gpu.boost_clock_ghz


def view(
    kernel: TracedKernel,
    gpu: Gpu,
    clock_ghz: Array,
    *,
    tensor_modifiers: bool = True,
    tensor_latency_measured: bool = False,
    latency_is_total: bool = False,
) -> View:
    """Return a traced kernel as designs see it; the switches are those of :class:`dse.timing.amali.Amali`."""
    designs = designs_shape(gpu)
    at, p = _Profiles(kernel, gpu, designs), kernel.profiles
    dram_bytes = at.sized(p.read_bytes + p.write_bytes)
    memory = memory_terms(gpu, clock_ghz, at.plain(p.footprint), jnp.zeros(()), dram_bytes, latency_is_total)
    load_latency = memory.l1 + at.plain(p.load_misses) * (memory.l2 + at.sized(p.load_l2_misses) * memory.dram)
    intervals = _tensor_intervals(kernel, gpu, tensor_modifiers)
    latency = jnp.concatenate(
        [
            _fixed_latencies(gpu, memory, designs),
            _tensor_latencies(intervals, gpu, designs, tensor_latency_measured),
            load_latency,  # AMAT
        ]
    )
    passes = gpu.warp_passes
    counts = Segmented(
        instructions=jnp.asarray(kernel.counts["instructions"], float),
        tensor=_tensor_dispatch(kernel, intervals, designs),
        **{pipe: _outer(kernel.counts[pipe], passes[pipe], designs) for pipe in ("fp32", "int32", "sfu", "fp64")},
        l1_bytes=jnp.asarray(kernel.counts["l1_bytes"], float),
        load_bytes=SECTOR_BYTES * at.plain(p.load_sectors),
        store_bytes=SECTOR_BYTES * at.plain(p.store_sectors),
        dram_bytes=SECTOR_BYTES * at.sized(p.dram_sectors),
        load_line_bytes=LINE_BYTES * at.plain(p.load_lines),
        store_line_bytes=LINE_BYTES * at.plain(p.store_lines),
    )
    return View(memory, latency, counts, at.plain(p.l2_bytes), at.plain(p.busiest), at.plain(p.hosted))


def trace_l2_bytes(kernel: TracedKernel, gpu: Gpu) -> Array:
    """Return the bytes between SMs and L2 of a traced kernel [B], of the profile that each design has."""
    return _Profiles(kernel, gpu, designs_shape(gpu)).plain(kernel.profiles.l2_bytes)


class TraceTraffic(NamedTuple):
    """Bytes of a traced launch [B]: between SMs and L2, and between L2 and DRAM, each loaded and stored."""

    read: Array
    write: Array
    dram_read: Array
    dram_write: Array


def trace_traffic(kernel: TracedKernel, gpu: Gpu) -> TraceTraffic:
    """Return the bytes of a traced kernel on designs, at each one's L2."""
    at, p = _Profiles(kernel, gpu, designs_shape(gpu)), kernel.profiles
    read = at.plain(p.l2_read_bytes)
    return TraceTraffic(read, at.plain(p.l2_bytes) - read, at.sized(p.read_bytes), at.sized(p.write_bytes))


class _Profiles:
    """Values by profile, and by cache size, to those of each design.

    A design has the profile that was made for a GPU with its attributes: the nearest, since 32 bits round. Between two
    sizes a curve is linear in the logarithm of the size; beyond its ends it is constant.
    """

    def __init__(self, kernel: TracedKernel, gpu: Gpu, designs: tuple[int, ...]) -> None:
        self._ones = (1,) * len(designs)
        self._weights = self._nearest(kernel, gpu, designs) if len(kernel.made_for) > 1 else None
        place = jnp.clip(jnp.log2(gpu.l2_bytes / float(SIZES[0])) / _OCTAVES, 0.0, len(SIZES) - 1.0)
        grid = jnp.arange(len(SIZES), dtype=float).reshape(-1, *self._ones)
        self._sizes = jnp.maximum(0.0, 1.0 - jnp.abs(jnp.broadcast_to(place, designs) - grid))

    def _nearest(self, kernel: TracedKernel, gpu: Gpu, designs: tuple[int, ...]) -> Array:
        """Return 1 for each design's profile, else 0 [P, *designs]."""
        wanted = jnp.stack([jnp.broadcast_to(gpu.attribute(key), designs) for key in kernel.keys])
        made_for = jnp.asarray(kernel.made_for, float).reshape(*kernel.made_for.shape, *self._ones)
        distance = jnp.sum(jnp.abs(made_for - wanted) / jnp.maximum(jnp.abs(made_for), 1.0), axis=1)
        number = jnp.argmin(distance, axis=0)
        return jnp.stack([jnp.where(number == p, 1.0, 0.0) for p in range(len(made_for))])

    def plain(self, values: np.ndarray) -> Array:
        """Return values [P, ...] as [..., *designs], or [..., 1] where no design differs."""
        return self._pick(jnp.asarray(values, float).reshape(*values.shape, *self._ones))

    def sized(self, values: np.ndarray) -> Array:
        """Return values [P, ..., sizes] as [..., *designs], at each design's L2."""
        return self._pick(jnp.tensordot(jnp.asarray(values, float), self._sizes, axes=1))

    def _pick(self, values: Array) -> Array:
        if self._weights is None:
            return values[0]
        middle = (1,) * (values.ndim - self._weights.ndim)
        weights = self._weights.reshape(len(values), *middle, *self._weights.shape[1:])
        return jnp.sum(values * weights, axis=0)


_OCTAVES = float(np.log2(SIZES[1] / SIZES[0]))


def _tensor_intervals(kernel: TracedKernel, gpu: Gpu, modifiers: bool) -> list[Array]:
    """Return II_TC of each tensor class [cycle], Eq. (25); GCoM's fixed one without modifiers."""
    if not modifiers:
        return [jnp.asarray(FIXED_INTERVAL) for _ in kernel.tensor]
    return [busy_cycles(jnp.asarray(kind.fma), _rate(kind, gpu)) for kind in kernel.tensor]


def _rate(kind: TensorClass, gpu: Gpu) -> Array:
    return class_rate(jnp.asarray(TENSOR_DTYPES.index(kind.dtype)), jnp.asarray(kind.warpgroup), gpu)


def has_tensor_types(kernel: TracedKernel, gpu: Gpu) -> Array:
    """Return 1 where the GPU has a rate for every tensor class of the trace, and its instructions, else 0.

    SASS runs on one generation alone; as in AMALI, a trace stands for the same program on any GPU that could run it.
    """
    has = jnp.where(gpu.compute_capability + 0.01 >= kernel.compute_capability, 1.0, 0.0)  # 32 bits round 8.6
    for kind in kernel.tensor:
        has = has * jnp.where(_rate(kind, gpu) > 0, 1.0, 0.0)
    return has


def _fixed_latencies(gpu: Gpu, memory: MemoryPath, designs: tuple[int, ...]) -> Array:
    """Return the latencies of ROWS [cycle], shape (rows, *designs)."""
    by_kind = {
        "alu": gpu.alu_latency_cycles,
        "fp64": gpu.fp64_latency_cycles,
        "sfu": gpu.sfu_latency_cycles,
        "texture": TEXTURE_CYCLES,
        "control": CONTROL_CYCLES,
        "shared_load": gpu.shared_load_latency_cycles,
        "shared_store": gpu.shared_store_latency_cycles,
        "global_store": memory.l1 + memory.l2,
    }
    return jnp.stack([jnp.broadcast_to(jnp.asarray(by_kind[row], float), designs) for row in ROWS])


def _tensor_latencies(intervals: list[Array], gpu: Gpu, designs: tuple[int, ...], measured: bool) -> Array:
    """Return L_TC of each tensor class [cycle]: II_TC (Eq. 26), or the measured latency where that is longer."""
    if not intervals:
        return jnp.zeros((0, *designs))
    latencies = [jnp.maximum(ii, gpu.mma_latency_cycles) if measured else ii for ii in intervals]
    return jnp.stack([jnp.broadcast_to(latency, designs) for latency in latencies])


def _tensor_dispatch(kernel: TracedKernel, intervals: list[Array], designs: tuple[int, ...]) -> Array:
    """Return the dispatch cycles of the tensor core by segment: the sum of the instructions' own II_TC."""
    total = jnp.zeros((len(kernel.counts["instructions"]), *(1 for _ in designs)))
    for count, ii in zip(kernel.tensor_counts, intervals, strict=True):
        total = total + _outer(count, ii, designs)
    return total


def _outer(by_segment: np.ndarray, by_design: Array, designs: tuple[int, ...]) -> Array:
    """Return the products of values by segment and by design: [S, *designs], or [S, 1] where no design differs."""
    return jnp.asarray(by_segment, float).reshape(-1, *(1 for _ in designs)) * by_design


class Warp(NamedTuple):
    """The representative warp of a traced kernel on a batch of designs.

    ``lone``: in time, by itself; ``over_intervals(close)``: the sum of ``close(counts, stall, cause)`` over its
    intervals, each of which ends in that stall [cycle]; ``exact``: whether both are right, (*designs,).
    """

    lone: Lone
    over_intervals: Callable[[Callable[[Segmented, Array, Array], Any]], Any]
    exact: Array


def warp(kernel: TracedKernel, seen: View) -> Warp:
    """Return the representative warp: by its forms where the kernel has them, else by the recurrence."""
    if kernel.forms is None:
        segments, latency = kernel.segments, seen.latency
        by_step = partial(over_intervals, segments, latency, seen.counts)
        return Warp(lone_warp(segments, latency), by_step, jnp.ones(latency.shape[1:], bool))
    found = by_forms(kernel.forms, seen.latency)
    return Warp(found.lone, partial(over_distinct, kernel.forms, found, seen.counts), found.exact)


def timed(kernel: TracedKernel, time: Callable[[TracedKernel], tuple[Timing, Array]]) -> Timing:
    """Return the timing of a kernel by its compiled form, and by the recurrence on designs that no form covers.

    ``time`` returns a timing and where it is exact. What a design gets does not depend on the others: they only decide
    whether the recurrence runs at all.
    """
    if kernel.compiled is None:
        return time(kernel)[0]
    quick, exact = time(kernel.compiled)

    def scanned() -> Timing:
        return jax.tree.map(lambda q, s: jnp.where(exact, q, s), quick, time(kernel)[0])

    return jax.lax.cond(jnp.all(exact), lambda: quick, scanned)


def over_intervals(
    segments: Segments,
    latency: Array,
    counts: Any,
    close: Callable[[Any, Array, Array], Any],
    last: Callable[[Any], Any] | None = None,
    *,
    by_operand_order: bool = False,
) -> Any:
    """Return the sum of ``close`` over the intervals of every design; a record of arrays of shape (*designs).

    ``close(counts, stall, cause)`` returns the cycles of one interval that ends in that stall. An interval ends where
    a segment stalls, which differs from design to design: counts add up until it does. The last interval is given to
    ``last``; without it, it is closed without a stall, and its drain is the caller's.
    """
    designs, nothing = latency.shape[1:], jnp.zeros_like(latency[0])
    by_segment = jax.tree.map(lambda x: jnp.reshape(x, (*x.shape, *(1 for _ in designs[x.ndim - 1 :]))), counts)
    first = jax.tree.map(lambda x: jnp.broadcast_to(x[0], designs).astype(latency.dtype), by_segment)
    later = jax.tree.map(lambda x: x.at[0].set(0.0), by_segment)
    none = jax.tree.map(jnp.zeros_like, jax.eval_shape(close, first, nothing, nothing))

    def follow(state: Any, stall: Array, cause: Array, here: Any) -> Any:
        open_, total = state
        closes = stall > 0
        total = jax.tree.map(lambda t, c: t + jnp.where(closes, c, 0.0), total, close(open_, stall, cause))
        return jax.tree.map(lambda o, h: jnp.where(closes, h, o + h), open_, here), total

    _, (open_, total) = walk(segments, latency, (first, none), follow, later, by_operand_order=by_operand_order)
    ended = last(open_) if last else close(open_, nothing, nothing)
    return jax.tree.map(lambda t, c: t + c, total, ended)

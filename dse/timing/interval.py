"""One interval of the representative warp, for the warps that share its sub-core and SM.

docs/model/timing_amali.md 4 and 5, with the readings of its section 12;
GCoM's forms stand in docs/model/timing_traced.md 6.
"""

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dse.base.numerics import few_ceil_div, safe_div
from dse.hardware.gpu import Gpu
from dse.timing.contention import queueing
from dse.timing.memory import MemoryPath
from dse.timing.tensor_core import busy_cycles
from dse.traces.segments import COMPUTE, GLOBAL, SHARED
from dse.workload.kernel import Interval, Kernel


class Latencies(NamedTuple):
    """Latencies of the representative warp's instructions [cycle]."""

    alu: Array
    sfu: Array
    tensor: Array
    shared: Array

    @classmethod
    def on(cls, gpu: Gpu, tensor: Array) -> "Latencies":
        """Return those of a GPU, where a tensor instruction takes ``tensor``."""
        return cls(gpu.alu_latency_cycles, gpu.sfu_latency_cycles, tensor, gpu.shared_load_latency_cycles)


class Resident(NamedTuple):
    """Warps of a wave: ``subcore`` on the representative's sub-core, ``sm`` on its SM; ``sms`` SMs hold CTAs."""

    subcore: Array
    sm: Array
    sms: Array


def resident_warps(gpu: Gpu, ctas: Array, all_ctas: Array, warps: Any) -> Resident:
    """Return the warps of a wave of ``ctas`` CTAs on this SM and ``all_ctas`` on the GPU."""
    on_sm = ctas * warps
    subcore = few_ceil_div(on_sm, gpu.subcores_per_sm)  # X: sub-core of a warp = SM-wide slot mod Q (12.18)
    return Resident(subcore, on_sm, all_ctas / jnp.maximum(ctas, 1.0))


class Hiding(NamedTuple):
    """What other warps can issue meanwhile: issue probability p = I/(I+S) and mean interval length nbar = I/K.

    ``share`` of the other warps that are not waiting at the same place themselves (1 as published).
    """

    probability: Array
    length: Array
    share: Array | float = 1.0


class Causes(NamedTuple):
    """Cycles in which no instruction issues, by cause [cycle]: S_I without S_selected, then S_IP."""

    wait: Array
    short_scoreboard: Array
    long_scoreboard: Array
    math_pipe_throttle: Array
    lg_throttle: Array
    mio_throttle: Array


class IntervalCycles(NamedTuple):
    """Cycles of an interval, all its repeats together [cycle].

    ``stalled`` is what its ``causes`` add up to, computed without them: where nobody asks for causes, the program that
    is compiled holds none of their terms.
    """

    issue: Array
    stalled: Array
    causes: Causes

    @classmethod
    def of(cls, issue: Array, causes: Causes) -> "IntervalCycles":
        """Return those of causes that were added up one by one."""
        return cls(issue, sum(causes[1:], causes[0]), causes)

    def __add__(self, other: "IntervalCycles") -> "IntervalCycles":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Cause by cause."""
        return jax.tree.map(operator.add, self, other)

    @property
    def total(self) -> Array:
        """All cycles together."""
        return self.issue + self.stalled

    def scaled(self, factor: Array | float) -> "IntervalCycles":
        """Every cause times ``factor``."""
        return jax.tree.map(lambda cycles: cycles * factor, self)

    def later(self, cycles: Array | float) -> "IntervalCycles":
        """With ``cycles`` more of latency."""
        causes = self.causes._replace(long_scoreboard=self.causes.long_scoreboard + cycles)
        return IntervalCycles(self.issue, self.stalled + cycles, causes)

    def exposed(self, more: "Stalls") -> "IntervalCycles":
        """With further stalls that nothing hides."""
        causes = self.causes._replace(
            wait=self.causes.wait + more.compute,
            short_scoreboard=self.causes.short_scoreboard + more.shared,
            long_scoreboard=self.causes.long_scoreboard + more.memory,
        )
        return IntervalCycles(self.issue, self.stalled + sum(more[1:], more.compute), causes)


def add_up(parts: Iterable[IntervalCycles]) -> IntervalCycles:
    """Return the sum of intervals or waves, cause by cause."""
    first, *others = parts
    return sum(others, first)


class Stalls(NamedTuple):
    """Stalls of a lone warp by what it waits for [cycle]."""

    compute: Array
    shared: Array
    memory: Array

    @classmethod
    def of(cls, cycles: Array, cause: Array) -> "Stalls":
        """Return one stall, booked under its cause (COMPUTE, SHARED, GLOBAL)."""
        return cls(*(jnp.where(cause == c, cycles, 0.0) for c in (COMPUTE, SHARED, GLOBAL)))


def own_stalls(interval: Interval, latencies: Latencies, memory: MemoryPath, pipelined: Array) -> Stalls:
    """Return the stalls of a lone warp in an interval of a generated kernel.

    The global stall of a ``pipelined`` interval is what is left of the latency after the interval's own instructions.
    """
    compute = (
        interval.alu_waits * latencies.alu
        + interval.sfu_waits * latencies.sfu
        + interval.tensor_waits * latencies.tensor
    )
    shared = interval.shared_waits * latencies.shared
    latency = interval.global_waits * memory.amat
    ahead = jnp.maximum(latency - interval.instructions, 0.0)
    return Stalls(compute, shared, jnp.where(pipelined > 0, ahead, latency))


def with_pipelining(kernel: Kernel) -> list[tuple[Interval, Array]]:
    """Return the intervals with whether their loads run ahead: only the loop's can."""
    zero = jnp.zeros_like(jnp.asarray(kernel.pipelined))
    return [(kernel.start, zero), (kernel.loop, jnp.asarray(kernel.pipelined)), (kernel.end, zero)]


def hiding_of(kernel: Kernel, latencies: Latencies, memory: MemoryPath) -> Hiding:
    """Return p = I/(I+S) and nbar = I/K of a generated kernel's representative warp (docs/model/timing_traced.md 5)."""
    issued = jnp.asarray(kernel.per_warp("instructions"))
    count = sum(interval.repeats for interval in kernel.intervals)
    stalled = sum(i.repeats * sum(own_stalls(i, latencies, memory, p)) for i, p in with_pipelining(kernel))
    return Hiding(issued / (issued + stalled), issued / count)


def busiest_pipe(
    interval: Interval, gpu: Gpu, tensor_rate: Array, lanes: Array | float = 1.0, mixed: Array | float = 0.0
) -> Array:
    """Return the dispatch cycles of one warp on the math pipe that it keeps busiest [cycle], Eq. (10).

    ``lanes``: share of the CUDA cores' and SFUs' rate that is sustained; ``mixed``: what the shorter of tensor and
    CUDA-core time adds to the longer where both are equal, since products wait for the softmax and it for them.
    """
    passes = gpu.warp_passes
    tensor = busy_cycles(jnp.asarray(interval.tensor_fma), tensor_rate)
    cores = jnp.maximum(interval.fp32 * passes["fp32"], interval.int32 * passes["int32"])
    cores = jnp.maximum(cores, interval.sfu * passes["sfu"]) / lanes
    shorter, longer = jnp.minimum(tensor, cores), jnp.maximum(tensor, cores)
    return longer + mixed * shorter * shorter / jnp.maximum(longer, 1.0)


def structural(interval: Interval, gpu: Gpu, resident: Resident, busiest: Array) -> tuple[Array, Array]:
    """Return the cycles that the busiest unit adds to issuing [cycle], and those of them that are a math pipe's.

    Eq. (8)-(13): the unit with the most dispatch cycles bounds the interval. As the paper prints it all of that excess
    is booked under the unit, so that the cause of a rate that is no longer the slowest vanishes. Here units share it in
    the order in which they bind (a departure): what only the busiest exceeds is its own, the rest is half of each that
    reaches it. A unit's share so grows with its own cycles, without a jump. GCoM's code shares by sums over units and
    credits its queues with stall cycles that other warps have hidden already, so that a shorter latency could cost
    time; left out. A math pipe is compared with its own sub-core's issuing, the SM's path with the mean sub-core's.
    """
    lone = interval.instructions / gpu.issue_rate  # Eq. (9) of one warp
    math = resident.subcore * jnp.maximum(busiest - lone, 0.0)
    # Eq. (11) in bytes: the SM's L1 and shared memory on one side, its port to the L2 on the other.
    port = (interval.load_bytes + interval.store_bytes) / gpu.l2_port_bytes_per_cycle
    path = resident.sm * jnp.maximum(interval.shared_bytes / gpu.l1_bytes_per_cycle, port)
    mean_subcore = jnp.maximum(resident.sm / gpu.subcores_per_sm, 1.0)
    lg = jnp.maximum(path - mean_subcore * lone, 0.0)
    excess = jnp.where(math >= lg, math, lg)  # Eq. (8); of two zeros the slope is math's
    return excess, jnp.where(math >= lg, math - 0.5 * lg, 0.5 * math)


def interval_cycles(
    interval: Interval,
    stalls: Stalls,
    busiest: Array,
    gpu: Gpu,
    resident: Resident,
    hiding: Hiding,
    memory: MemoryPath,
    pipelined: Array,
    *,
    single_warp_literal: bool,
    queued: Array | float = 1.0,
) -> IntervalCycles:
    """Return the cycles of one interval for a wave's warps, times its repeats.

    ``queued``: share of the queueing that shows (all of it as published).

    ``stalls`` are those of a lone warp; ``busiest`` [cycle] is its math pipe's dispatch (:func:`busiest_pipe`).
    ``pipelined``: loads are issued iterations ahead, so whatever keeps the SM busy in an iteration covers their latency
    and their queueing; only the rest stalls (a departure: the papers know no asynchronous copies).
    """
    ahead = pipelined > 0
    literal = jnp.where(ahead, 0.0, stalls.memory)
    stall = stalls.compute + stalls.shared + literal
    issue, left = _hidden(jnp.asarray(interval.instructions), stall, gpu, resident, hiding, single_warp_literal)
    excess, of_math = structural(interval, gpu, resident, busiest)
    queue = _queue(interval, gpu, resident, memory) * queued
    busy = left + excess
    late = jnp.maximum(interval.global_waits * (memory.amat + queue) - (issue + busy), 0.0)
    late_latency = jnp.maximum(interval.global_waits * memory.amat - (issue + busy), 0.0)
    share = safe_div(left, stall)
    causes = Causes(
        wait=share * stalls.compute,
        short_scoreboard=share * stalls.shared,
        long_scoreboard=jnp.where(ahead, late_latency, share * literal),
        math_pipe_throttle=of_math,  # Eq. (12), (22)
        lg_throttle=excess - of_math,  # Eq. (13), (23)
        mio_throttle=jnp.where(ahead, late - late_latency, queue),  # Eq. (24)
    )
    cycles = IntervalCycles(issue, busy + jnp.where(ahead, late, queue), causes)
    return cycles.scaled(jnp.asarray(interval.repeats))


def _queue(interval: Interval, gpu: Gpu, resident: Resident, memory: MemoryPath) -> Array:
    """Return the queueing of an interval's requests [cycle]."""
    loads, stores = interval.load_bytes * resident.sm, interval.store_bytes * resident.sm
    return queueing(loads, stores, resident.sms, gpu.l1_mshr_entries * gpu.sector_bytes, memory)


def _hidden(
    n: Array, stall: Array, gpu: Gpu, resident: Resident, hiding: Hiding, single_warp_literal: bool
) -> tuple[Array, Array]:
    """Return the issue cycles of the sub-core's warps and the stall that they do not hide.

    docs/model/timing_traced.md 6.2.
    """
    if single_warp_literal:  # Eq. (17)-(20) as printed
        return n / gpu.issue_rate, stall
    others = jnp.maximum(resident.subcore - 1.0, 0.0) * hiding.length / gpu.issue_rate  # O
    hidden = jnp.minimum(stall * hiding.probability, 1.0) * others * hiding.share  # V / r
    return n / gpu.issue_rate + others, jnp.maximum(stall - hidden, 0.0)  # Z

"""One interval of the representative warp, for the warps that share its sub-core and SM.

docs/model/timing_amali.md 4 and 5, with the readings of its section 12;
GCoM's forms stand in docs/model/timing_traced.md 6.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

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


class IntervalCycles(NamedTuple):
    """Cycles of an interval by cause, all its repeats together [cycle]."""

    issue: Array
    wait: Array
    short_scoreboard: Array
    long_scoreboard: Array
    math_pipe_throttle: Array
    lg_throttle: Array
    mio_throttle: Array

    def __add__(self, other: "IntervalCycles") -> "IntervalCycles":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Cause by cause."""
        return IntervalCycles(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def total(self) -> Array:
        """All causes together."""
        return sum(self[1:], self.issue)

    def scaled(self, factor: Array | float) -> "IntervalCycles":
        """Every cause times ``factor``."""
        return IntervalCycles(*(a * factor for a in self))

    def later(self, cycles: Array) -> "IntervalCycles":
        """With ``cycles`` more of latency."""
        return self._replace(long_scoreboard=self.long_scoreboard + cycles)

    def stalled(self, more: "Stalls") -> "IntervalCycles":
        """With further stalls that nothing hides."""
        return self._replace(
            wait=self.wait + more.compute,
            short_scoreboard=self.short_scoreboard + more.shared,
            long_scoreboard=self.long_scoreboard + more.memory,
        )


class IntervalTotal(NamedTuple):
    """Cycles of an interval where nobody asks for the causes of its stalls, all its repeats together [cycle]."""

    issue: Array
    stalled: Array

    def __add__(self, other: "IntervalTotal") -> "IntervalTotal":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Issuing and stalls."""
        return IntervalTotal(self.issue + other.issue, self.stalled + other.stalled)

    @property
    def total(self) -> Array:
        """Both together."""
        return self.issue + self.stalled

    def scaled(self, factor: Array | float) -> "IntervalTotal":
        """Both times ``factor``."""
        return IntervalTotal(self.issue * factor, self.stalled * factor)

    def later(self, cycles: Array) -> "IntervalTotal":
        """With ``cycles`` more of latency."""
        return IntervalTotal(self.issue, self.stalled + cycles)


Cycles = TypeVar("Cycles", IntervalCycles, IntervalTotal)


def add_up(parts: Iterable[Cycles]) -> Cycles:
    """Return the sum of intervals or waves, cause by cause."""
    first, *others = parts
    for part in others:
        first = first + part
    return first


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
    """Return the cycles that the math pipes and the L1 path add to issuing [cycle]: one of the two is 0.

    Eq. (8)-(13): the unit with the most dispatch cycles bounds the interval, and all of its excess over issuing is
    booked under it, as the paper prints it. GCoM's code shares the excess out between compute and memory, which books
    memory time where compute binds, and credits its queues with stall cycles that other warps have hidden already, so
    that a shorter latency could cost time; both are left out here (departures). A math pipe is compared with its own
    sub-core's issuing, the path of the SM with the mean sub-core's.
    """
    math, lg = _excess(interval, gpu, resident, busiest)
    # Eq. (8); a design may balance the two, and rounding must not choose the name.
    math_binds = math * (1.0 + 1e-5) >= lg
    return jnp.where(math_binds, math, 0.0), jnp.where(math_binds, 0.0, lg)  # Eq. (12), (13)


def _excess(interval: Interval, gpu: Gpu, resident: Resident, busiest: Array) -> tuple[Array, Array]:
    """Return by how much the math pipes and the L1 path are busier than issuing [cycle]."""
    lone = interval.instructions / gpu.issue_rate  # Eq. (9) of one warp
    math = resident.subcore * jnp.maximum(busiest - lone, 0.0)
    # Eq. (11) in bytes: the SM's L1 and shared memory on one side, its port to the L2 on the other.
    port = (interval.load_bytes + interval.store_bytes) / gpu.l2_port_bytes_per_cycle
    path = resident.sm * jnp.maximum(interval.shared_bytes / gpu.l1_bytes_per_cycle, port)
    mean_subcore = jnp.maximum(resident.sm / gpu.subcores_per_sm, 1.0)
    return math, jnp.maximum(path - mean_subcore * lone, 0.0)


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
    literal = jnp.where(pipelined > 0, 0.0, stalls.memory)
    stall = stalls.compute + stalls.shared + literal
    issue, left = _hidden(jnp.asarray(interval.instructions), stall, gpu, resident, hiding, single_warp_literal)
    share = safe_div(left, stall)
    math, lg = structural(interval, gpu, resident, busiest)
    queue = _queue(interval, gpu, resident, memory) * queued
    covered = issue + left + math + lg
    late = jnp.maximum(interval.global_waits * memory.amat - covered, 0.0)
    late_queue = jnp.maximum(interval.global_waits * (memory.amat + queue) - covered, 0.0) - late
    cycles = IntervalCycles(
        issue=issue,
        wait=share * stalls.compute,
        short_scoreboard=share * stalls.shared,
        long_scoreboard=jnp.where(pipelined > 0, late, share * literal),
        math_pipe_throttle=math,
        lg_throttle=lg,
        mio_throttle=jnp.where(pipelined > 0, late_queue, queue),
    )
    return cycles.scaled(jnp.asarray(interval.repeats))


def interval_total(
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
) -> IntervalTotal:
    """Return what :func:`interval_cycles` adds up to, in half the operations: to compare candidates."""
    stall = stalls.compute + stalls.shared + jnp.where(pipelined > 0, 0.0, stalls.memory)
    issue, left = _hidden(jnp.asarray(interval.instructions), stall, gpu, resident, hiding, single_warp_literal)
    busy = left + jnp.maximum(*_excess(interval, gpu, resident, busiest))
    queue = _queue(interval, gpu, resident, memory) * queued
    late = jnp.maximum(interval.global_waits * (memory.amat + queue) - (issue + busy), 0.0)
    total = IntervalTotal(issue, busy + jnp.where(pipelined > 0, late, queue))
    return total.scaled(jnp.asarray(interval.repeats))


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

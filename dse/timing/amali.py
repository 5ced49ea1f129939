"""AMALI: interval model of GPU kernels for LLM inference (Cao, Wu, Chen, An, Yu; ISCA 2025) on generated kernels.

C = S_I + S_IP + KLL + ID (Eq. 16), composed as spec AMALI section 11 recommends; PAPERS.md lists every departure.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.numerics import ceil_div
from dse.timing.interval import Hiding, IntervalCycles, Latencies, Resident, interval_cycles, own_stalls
from dse.timing.launch import LaunchLatency
from dse.timing.memory import Memory, link_cycles, memory
from dse.timing.occupancy import Waves, waves
from dse.timing.tensor_core import busy_cycles, fixed_interval_rate, supported, tensor_rate
from dse.timing.timing import Timing, TimingModel, kernel_clock
from dse.workload.kernel import Interval, Kernel


class Amali(TimingModel):
    """AMALI's interval model with its switches (spec AMALI section 10; the defaults are the recommended readings).

    ``launch``: coefficients of KLL. ``tensor_modifiers``: II_TC from the opcode's FMA count (off: GCoM's fixed unit).
    ``tensor_latency_measured``: L_TC = max(II_TC, measured completion) instead of Eq. (26). ``launch_in_ns``: KLL's
    unit. ``launch_overlapped``: the grid's CTA launches overlap execution (max instead of sum). ``latency_is_total``:
    latencies of the record are end to end. ``roofline_floor``: never below the bytes' time. ``single_warp_literal``:
    Eq. (17)-(20) as printed, without the other warps. ``with_launch`` and ``with_divergence`` leave out a term of
    Eq. (16) for ablations.
    """

    launch: LaunchLatency = eqx.field(default_factory=LaunchLatency)
    tensor_modifiers: bool = eqx.field(default=True, static=True)
    tensor_latency_measured: bool = eqx.field(default=False, static=True)
    launch_in_ns: bool = eqx.field(default=False, static=True)
    launch_overlapped: bool = eqx.field(default=False, static=True)
    latency_is_total: bool = eqx.field(default=False, static=True)
    roofline_floor: bool = eqx.field(default=True, static=True)
    single_warp_literal: bool = eqx.field(default=False, static=True)
    with_launch: bool = eqx.field(default=True, static=True)
    with_divergence: bool = eqx.field(default=True, static=True)

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars)."""
        clock = kernel_clock(kernel, gpu)
        mem = memory(kernel, gpu, clock, self.latency_is_total)
        grid = waves(kernel, gpu)
        on_sm = self._waves_cycles(kernel, gpu, grid, mem)  # S_I + S_IP on the busiest SM
        drain = mem.l1 + mem.l2  # the last stores, once: those of earlier waves overlap the next (item 3)
        stalls = on_sm._replace(long_scoreboard=on_sm.long_scoreboard + drain)
        executed = sum(stalls[1:], stalls.issue)
        stalls, dram_bandwidth, l2_bandwidth = self._floor(kernel, mem, stalls, executed)
        selected, divergence = self._divergence(kernel, gpu, stalls.issue)
        return Timing(
            selected=selected,
            wait=stalls.wait,
            short_scoreboard=stalls.short_scoreboard,
            long_scoreboard=stalls.long_scoreboard,
            math_pipe_throttle=stalls.math_pipe_throttle,
            lg_throttle=stalls.lg_throttle,
            mio_throttle=stalls.mio_throttle,
            launch=self._launch(kernel, clock, sum(stalls[1:], stalls.issue) + dram_bandwidth + l2_bandwidth),
            divergence=divergence,
            dram_bandwidth=dram_bandwidth,
            l2_bandwidth=l2_bandwidth,
            interconnect=link_cycles(kernel, gpu, clock),
            clock_ghz=clock,
            feasible=grid.fits * supported(kernel, gpu),
            dram_bytes=mem.dram_bytes,
        )

    def _waves_cycles(self, kernel: Kernel, gpu: Gpu, grid: Waves, mem: Memory) -> IntervalCycles:
        """Full waves, then the rest: C = F Cyc(full) + Cyc(rest), section 11."""
        full = self._wave(kernel, gpu, grid.resident, grid.full_ctas, mem)
        rest = self._wave(kernel, gpu, grid.rest, grid.rest_ctas, mem)
        return full.scaled(grid.full) + rest.scaled(jnp.where(grid.rest > 0, 1.0, 0.0))

    def _wave(self, kernel: Kernel, gpu: Gpu, ctas: Array, all_ctas: Array, mem: Memory) -> IntervalCycles:
        """Cycles of one wave of ``ctas`` CTAs on this SM and ``all_ctas`` on the GPU."""
        warps = ctas * kernel.warps
        subcore = ceil_div(warps, gpu.subcores_per_sm)  # X: sub-core of a warp = SM-wide slot mod Q (item 18)
        resident = Resident(subcore, warps, all_ctas / jnp.maximum(ctas, 1.0))
        rate = tensor_rate(kernel, gpu) if self.tensor_modifiers else fixed_interval_rate(kernel)
        latencies = self._latencies(kernel, gpu, rate)
        hiding = self._hiding(kernel, latencies, mem)
        return _sum(
            interval_cycles(
                interval, gpu, resident, hiding, latencies, mem, rate, pipelined,
                single_warp_literal=self.single_warp_literal,
            )
            for interval, pipelined in _with_pipelining(kernel)
        )  # fmt: skip

    def _latencies(self, kernel: Kernel, gpu: Gpu, rate: Array) -> Latencies:
        fma = jnp.asarray(kernel.tensor_instruction_fma)
        interval = busy_cycles(fma, rate)  # Eq. (26): L_TC = II_TC
        tensor = jnp.maximum(interval, gpu.mma_latency_cycles) if self.tensor_latency_measured else interval
        return Latencies(gpu.alu_latency_cycles, gpu.sfu_latency_cycles, tensor, gpu.shared_load_latency_cycles)

    def _hiding(self, kernel: Kernel, latencies: Latencies, mem: Memory) -> Hiding:
        """p = I/(I+S) and nbar = I/K of the representative warp (section 5)."""
        issued = jnp.asarray(kernel.per_warp("instructions"))
        count = sum(interval.repeats for interval in kernel.intervals)
        stalled = sum(i.repeats * sum(own_stalls(i, latencies, mem, p)) for i, p in _with_pipelining(kernel))
        return Hiding(issued / (issued + stalled), issued / count)

    def _divergence(self, kernel: Kernel, gpu: Gpu, issue: Array) -> tuple[Array, Array]:
        """ID = (instructions of the busiest sub-core - those of the representative's) / r, Eq. (29).

        The representative warp of a generated kernel stands on a sub-core with its fair share of the grid, so ID is
        what partly filled waves cost in issue cycles; the sum of both is the busiest sub-core's.
        """
        if not self.with_divergence:
            return issue, jnp.zeros_like(issue)
        per_warp = kernel.per_warp("instructions")
        subcores = gpu.sm_count * gpu.subcores_per_sm
        fair = kernel.ctas * kernel.warps * per_warp / (subcores * gpu.issue_rate)
        divergence = jnp.maximum(issue - fair, 0.0)
        return issue - divergence, divergence

    def _floor(
        self, kernel: Kernel, mem: Memory, stalls: IntervalCycles, executed: Array
    ) -> tuple[IntervalCycles, Array, Array]:
        """C >= bytes / bandwidth, of DRAM and of the L2 (item 10), with the stalls that remain visible.

        Where the bytes bind, warps wait for bytes: every other stall happens in that shadow, and mending it would gain
        nothing, so all but the issue cycles is booked under the bandwidth that binds.
        """
        zero = jnp.zeros_like(executed)
        if not self.roofline_floor:
            return stalls, zero, zero
        dram = mem.dram_bytes * mem.dram_byte
        l2 = jnp.asarray(kernel.l2_bytes) * mem.l2_byte
        floor = jnp.maximum(dram, l2)
        binds = floor > executed
        waiting = jnp.where(binds, floor - stalls.issue, 0.0)
        visible = stalls.scaled(jnp.where(binds, 0.0, 1.0))._replace(issue=stalls.issue)
        return visible, jnp.where(dram >= l2, waiting, 0.0), jnp.where(dram >= l2, 0.0, waiting)

    def _launch(self, kernel: Kernel, clock_ghz: Array, executed: Array) -> Array:
        if not self.with_launch:
            return jnp.zeros_like(executed)
        unit = clock_ghz if self.launch_in_ns else 1.0
        grid, launches = self.launch.per_grid(kernel) * unit, self.launch.per_launch(kernel) * unit  # Eq. (27)
        return launches + (jnp.maximum(grid - executed, 0.0) if self.launch_overlapped else grid)  # item 14


def _with_pipelining(kernel: Kernel) -> list[tuple[Interval, Array]]:
    """The intervals with whether their loads run ahead: only the loop's can."""
    zero = jnp.zeros_like(jnp.asarray(kernel.pipelined))
    return [(kernel.start, zero), (kernel.loop, jnp.asarray(kernel.pipelined)), (kernel.end, zero)]


def _sum(parts) -> IntervalCycles:
    first, *others = parts
    for part in others:
        first = first + part
    return first

"""AMALI: interval model of GPU kernels for LLM inference (Cao, Wu, Chen, An, Yu; ISCA 2025) on generated kernels.

C = S_I + S_IP + KLL + ID (Eq. 16), composed as in docs/model/timing_amali.md 3; PAPERS.md lists every departure.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.base.error_interval import SHARE, ErrorInterval
from dse.base.numerics import INFEASIBLE, safe_div
from dse.hardware.gpu import Gpu
from dse.timing.discrepancy import Discrepancy, stretch_of, within_peaks
from dse.timing.floor import Floored, floored
from dse.timing.interval import (
    Cycles,
    IntervalCycles,
    Latencies,
    add_up,
    busiest_pipe,
    hiding_of,
    interval_cycles,
    interval_total,
    own_stalls,
    resident_warps,
    with_pipelining,
)
from dse.timing.launch import LaunchLatency
from dse.timing.links import link_cycles
from dse.timing.memory import MemoryPath, memory
from dse.timing.occupancy import Waves, waves
from dse.timing.schedule import busiest_sm, rounds
from dse.timing.sustained import Sustained
from dse.timing.tensor_core import busy_cycles, fixed_interval_rate, supported, tensor_rate
from dse.timing.timing import Timing, TimingModel, expect_records, kernel_clock
from dse.workload.kernel import AnyKernel, Kernel
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED, Library


class Amali(TimingModel):
    """AMALI's interval model with its switches (docs/model/timing_amali.md 12; the defaults are its readings).

    ``launch``: coefficients of KLL. ``sustained``: fitted shares of rates and costs (neutral unless calibrated), and
    ``discrepancy``: what these leave of a library's kernels, by the calibration named ``calibrated_on``; its
    ``errors`` on what it was not fitted on are the model's error interval.
    ``tensor_modifiers``: II_TC from the opcode's FMA count (off: a fixed unit). ``tensor_latency_measured``: L_TC =
    max(II_TC, measured completion) instead of Eq. (26). ``launch_in_ns``: KLL's unit. ``launch_overlapped``: the grid's
    CTA launches overlap execution (max instead of sum). ``latency_is_total``: latencies of the record are end to end.
    ``roofline_floor``: never below the bytes' time. ``single_warp_literal``: Eq. (17)-(20) as printed, without the
    other warps. For ablations of Eq. (16), ``with_launch`` leaves out KLL, and ``with_divergence`` ID: every warp is
    then like the representative, and partly filled waves show in ``selected``.
    """

    launch: LaunchLatency = eqx.field(default_factory=LaunchLatency)
    sustained: Sustained = eqx.field(default_factory=Sustained)
    discrepancy: Discrepancy | None = None
    calibrated_on: str = eqx.field(default="", static=True)
    errors: ErrorInterval | None = eqx.field(default=None, static=True)
    tensor_modifiers: bool = eqx.field(default=True, static=True)
    tensor_latency_measured: bool = eqx.field(default=False, static=True)
    launch_in_ns: bool = eqx.field(default=False, static=True)
    launch_overlapped: bool = eqx.field(default=False, static=True)
    latency_is_total: bool = eqx.field(default=False, static=True)
    roofline_floor: bool = eqx.field(default=True, static=True)
    single_warp_literal: bool = eqx.field(default=False, static=True)
    with_launch: bool = eqx.field(default=True, static=True)
    with_divergence: bool = eqx.field(default=True, static=True)

    def __repr__(self) -> str:
        if not self.calibrated_on:
            return super().__repr__()
        told = [f"calibrated_on={self.calibrated_on!r}"]
        if (known := self.errors) is not None:
            told += [f"{100 * SHARE:.0f} % of times within {known.low:.3g} to {known.high:.3g} times what it says"]
        switches = [(f.name, getattr(self, f.name)) for f in fields(self) if isinstance(f.default, bool)]
        told += [f"{name}={value}" for name, value in switches if value != getattr(Amali, name)]
        return f"Amali({', '.join(told)})"

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars); InputError where they are no records."""
        expect_records(kernel, gpu)
        return self.of(kernel.implementation)._generated(kernel, gpu)

    def of(self, implementation: Any) -> "Amali":
        """The model with the coefficients of one implementation."""
        launch, sustained = self.launch.of(implementation), self.sustained.of(implementation)
        discrepancy = None if self.discrepancy is None else self.discrepancy.of(implementation)
        return replace(self, launch=launch, sustained=sustained, discrepancy=discrepancy)

    def _generated(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """The timing of a generated kernel, with the coefficients of its implementation."""
        gpu, clock = self.sustained.derated(gpu), kernel_clock(kernel, gpu)
        mem, grid, stalls, after = self._on_sm(kernel, gpu, clock, interval_cycles)
        fair = kernel.ctas * kernel.warps * kernel.per_warp("instructions") / gpu.issue_rate
        fair = fair / (gpu.sm_count * gpu.subcores_per_sm)
        timing = self.compose(
            kernel,
            gpu,
            clock,
            mem,
            stalls,
            jnp.asarray(kernel.l2_bytes),
            divergence=jnp.maximum(stalls.issue - fair, 0.0),
            after=after,
            interconnect=link_cycles(kernel, gpu, clock),
            feasible=grid.fits * supported(kernel, gpu),
        )
        return timing.stretched(self._stretch(kernel, gpu, clock, mem, timing.cycles))

    def _stretch(self, kernel: Kernel, gpu: Gpu, clock: Array, mem: MemoryPath, cycles: Array) -> Array:
        """How many times as long as Eq. (16) says a kernel takes, by the discrepancy: within the data sheet's peaks."""
        rate = tensor_rate(kernel, gpu) * gpu.subcores_per_sm * gpu.sm_count / self.sustained.tensor  # not derated
        least = jnp.maximum(mem.moved / gpu.dram_bandwidth_gbs * clock, safe_div(kernel.fma, rate))
        return within_peaks(stretch_of(self.discrepancy, kernel), least / cycles)

    def nanoseconds(self, kernel: Kernel, gpu: Gpu) -> Array:
        """Return the time of one kernel on one GPU [ns] and nothing else, in half the operations."""
        if not self.roofline_floor:
            return super().nanoseconds(kernel, gpu)
        return self.of(kernel.implementation)._total(kernel, gpu)

    def _total(self, kernel: Kernel, gpu: Gpu) -> Array:
        """The causes of :meth:`_generated` together, in :meth:`_floored` too."""
        gpu = self.sustained.derated(gpu)
        clock = kernel_clock(kernel, gpu)
        mem, grid, stalls, after = self._on_sm(kernel, gpu, clock, interval_total)
        dram, l2 = self.sustained.bytes_cycles(gpu, mem, jnp.asarray(kernel.l2_bytes))
        floor, total = jnp.maximum(dram, l2), stalls.total
        executed = jnp.maximum(total, floor)
        executed = executed + self.sustained.beside(total, floor, mem.dram_writes * mem.dram_byte)
        cycles = executed + after + self._launch(kernel, clock, executed)
        cycles = cycles + self.sustained.copying_cycles(kernel, gpu, mem) + link_cycles(kernel, gpu, clock)
        cycles = cycles * self._stretch(kernel, gpu, clock, mem, cycles)
        runs = grid.fits * supported(kernel, gpu) > 0
        return jnp.where(runs, cycles / clock, INFEASIBLE)

    def _on_sm(
        self, kernel: Kernel, gpu: Gpu, clock: Array, of_interval: Callable[..., Cycles]
    ) -> tuple[MemoryPath, Waves, Cycles, Array]:
        """Return memory and waves, the cycles of the busiest SM, and those that nothing overlaps."""
        mem = memory(kernel, gpu, clock, self.latency_is_total, self.sustained.kept, self.sustained.streams)
        grid = waves(kernel, gpu)
        uneven = rounds(kernel, gpu, grid, self.sustained.tail)
        filled = replace(kernel, loop=replace(kernel.loop, repeats=kernel.loop.repeats + self.sustained.filling))
        wave = partial(self._wave, gpu=gpu, mem=mem, of_interval=of_interval)
        on_sm = busiest_sm(filled, grid, uneven, self.sustained.alone, wave)  # S_I + S_IP
        on_sm = self.sustained.started(on_sm, grid.full + jnp.where(grid.rest > 0, 1.0, 0.0))
        drain = mem.l1 + mem.l2  # the last stores, once: those of earlier waves overlap the next (12.3)
        drain = drain + jnp.asarray(kernel.serial_waits) * mem.amat
        # Every CTA's own cost on its SM: at least one, and as many as the schedule gives the busiest.
        ctas = self.sustained.cta * jnp.maximum(uneven * grid.resident, 1.0)
        beside = (1.0 - self.sustained.exposed) * ctas
        return mem, grid, on_sm.later(drain + beside), ctas - beside

    def anonymous(self) -> "Amali":
        """Return the model with its numbers as arrays and without a name: one compiled program serves all of them."""
        return super(Amali, replace(self, calibrated_on="", errors=None)).anonymous()

    @property
    def calibration(self) -> str:
        """Name of the calibration that the coefficients come from."""
        return self.calibrated_on or "uncalibrated"

    @property
    def error_interval(self) -> ErrorInterval | None:
        """How far off a time may be; None where no calibration says so."""
        return self.errors

    @property
    def library(self) -> Library:
        """Library of matrix products that the coefficients were fitted with, or that stands for any."""
        return TUNED if self.calibrated_on else REPRESENTATIVE

    def compose(
        self,
        kernel: AnyKernel,
        gpu: Gpu,
        clock: Array,
        mem: MemoryPath,
        stalls: IntervalCycles,
        l2_bytes: Array,
        *,
        divergence: Array,
        after: Array,
        interconnect: Array,
        feasible: Array,
    ) -> Timing:
        """Compose Eq. (16) from what the busiest SM executes; ``divergence`` is the part of its issue cycles for ID.

        ``after`` [cycle]: latency that nothing overlaps.
        """
        worked = jnp.maximum(stalls.total, l2_bytes * mem.l2_byte)  # both follow the clock, the bytes of DRAM do not
        stalls, dram_bandwidth, l2_bandwidth, beside = self._floored(stalls, gpu, mem, l2_bytes)
        copied = self.sustained.copying_cycles(kernel, gpu, mem)
        divergence = divergence if self.with_divergence else jnp.zeros_like(divergence)
        return Timing(
            selected=stalls.issue - divergence,
            wait=stalls.wait,
            short_scoreboard=stalls.short_scoreboard,
            long_scoreboard=stalls.long_scoreboard + after,
            math_pipe_throttle=stalls.math_pipe_throttle,
            lg_throttle=stalls.lg_throttle,
            mio_throttle=stalls.mio_throttle,
            launch=self._launch(kernel, clock, stalls.total + dram_bandwidth + l2_bandwidth),
            divergence=divergence,
            dram_bandwidth=dram_bandwidth + copied,
            l2_bandwidth=l2_bandwidth,
            interconnect=interconnect,
            clock_ghz=clock,
            feasible=feasible,
            dram_bytes=mem.moved + self.sustained.copied_dram_bytes(kernel),
            hidden=jnp.where(dram_bandwidth > 0, worked, 0.0),
            beside=jnp.where(dram_bandwidth > 0, beside, 0.0) + copied,
        )

    def _wave(
        self,
        kernel: Kernel,
        ctas: Array,
        all_ctas: Array,
        *,
        gpu: Gpu,
        mem: MemoryPath,
        of_interval: Callable[..., Cycles],
    ) -> Cycles:
        """Cycles of one wave of ``ctas`` CTAs on this SM and ``all_ctas`` on the GPU."""
        resident = resident_warps(gpu, ctas, all_ctas, kernel.warps)
        rate = tensor_rate(kernel, gpu) if self.tensor_modifiers else fixed_interval_rate(kernel)
        latencies = Latencies.on(gpu, self._tensor_latency(kernel, gpu, rate))
        # In CTAs: ``ctas`` where sub-cores share them evenly; where not, one CTA fewer may leave the busiest as it was.
        shared = resident.subcore * gpu.subcores_per_sm / kernel.warps
        hiding = hiding_of(kernel, latencies, mem)._replace(share=self.sustained.apart(shared))
        pipes = {"lanes": self.sustained.lanes, "mixed": self.sustained.mixed}
        return add_up(
            of_interval(
                interval,
                own_stalls(interval, latencies, mem, pipelined),
                busiest_pipe(interval, gpu, rate, **pipes),
                gpu,
                resident,
                hiding,
                mem,
                pipelined,
                single_warp_literal=self.single_warp_literal,
                queued=self.sustained.queued,
            ).scaled(self.sustained.epilogue if interval is kernel.end else 1.0)
            for interval, pipelined in with_pipelining(kernel)
        )

    def _tensor_latency(self, kernel: Kernel, gpu: Gpu, rate: Array) -> Array:
        interval = busy_cycles(jnp.asarray(kernel.tensor_instruction_fma), rate)  # Eq. (26): L_TC = II_TC
        return jnp.maximum(interval, gpu.mma_latency_cycles) if self.tensor_latency_measured else interval

    def _floored(self, stalls: IntervalCycles, gpu: Gpu, mem: MemoryPath, l2_bytes: Array) -> Floored:
        """C >= bytes / bandwidth on the busiest SM."""
        zero = jnp.zeros_like(stalls.issue)
        if not self.roofline_floor:
            return Floored(stalls, zero, zero, zero)
        dram, l2 = self.sustained.bytes_cycles(gpu, mem, l2_bytes)
        beside = self.sustained.beside(stalls.total, jnp.maximum(dram, l2), mem.dram_writes * mem.dram_byte)
        return floored(stalls, dram, l2, beside)

    def _launch(self, kernel: AnyKernel, clock_ghz: Array, executed: Array) -> Array:
        if not self.with_launch:
            return jnp.zeros_like(executed)
        unit = clock_ghz if self.launch_in_ns else 1.0
        grid, launches = self.launch.per_grid(kernel) * unit, self.launch.per_launch(kernel) * unit  # Eq. (27)
        launches = self.sustained.further_kernels(launches, kernel, clock_ghz)
        return launches + (jnp.maximum(grid - executed, 0.0) if self.launch_overlapped else grid)  # 12.14

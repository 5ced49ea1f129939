"""AMALI: interval model of GPU kernels for LLM inference (Cao, Wu, Chen, An, Yu; ISCA 2025) on generated kernels.

C = S_I + S_IP + KLL + ID (Eq. 16), composed as in docs/model/timing_amali.md 3; PAPERS.md lists every departure.
"""

from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.base.error_interval import SHARE, ErrorInterval
from dse.base.numerics import INFEASIBLE
from dse.hardware.gpu import Gpu
from dse.timing.discrepancy import Discrepancy, limited_by_peaks, stretch_of
from dse.timing.floor import floored
from dse.timing.interval import (
    IntervalCycles,
    Latencies,
    add_up,
    busiest_pipe,
    hiding_of,
    interval_cycles,
    own_stalls,
    resident_warps,
    with_pipelining,
)
from dse.timing.launch import LaunchLatency
from dse.timing.links import link_cycles
from dse.timing.memory import MemoryPath, memory
from dse.timing.occupancy import waves
from dse.timing.schedule import busiest_sm, fair_issue, rounds
from dse.timing.sustained import Costs, Sustained
from dse.timing.tensor_core import busy_cycles, fixed_interval_rate, supported, tensor_rate
from dse.timing.timing import Timing, TimingModel, expect_records, kernel_clock
from dse.timing.work import Work, executed
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED, Library


class Terms(NamedTuple):
    """The terms of Eq. (16) for one launch, on the SM with the most CTAs."""

    on_sm: IntervalCycles  # [cycle] S_I + S_IP with the drain of the last stores
    grid: Array  # s GS of KLL, in its unit
    launch: Array  # k of KLL, in its unit
    divergence: Array  # [cycle] ID, a part of the issue cycles on the SM
    messages: Array  # [cycle] between GPUs
    clock: Array  # [GHz]
    feasible: Array  # 1 where the kernel can run, else 0


def _switch(default: bool) -> Any:
    return eqx.field(default=default, static=True)


class Amali(TimingModel):
    """AMALI's interval model: its coefficients, what is fitted beside them (neutral unless calibrated), and switches
    between readings of the paper (docs/model/timing_amali.md 12)."""

    launch: LaunchLatency = eqx.field(default_factory=LaunchLatency)  # coefficients of KLL
    sustained: Sustained = eqx.field(default_factory=Sustained)  # fitted shares of rates, and costs
    discrepancy: Discrepancy | None = None  # what these leave of a library's kernels
    work: Work | None = None  # instructions that a profiler counted of a library's kernels
    calibrated_on: str = eqx.field(default="", static=True)  # name of the calibration that both come from
    errors: ErrorInterval | None = eqx.field(default=None, static=True)  # of its times, where it was not fitted
    tensor_modifiers: bool = _switch(True)  # II_TC from the opcode's FMA count (off: a fixed unit)
    tensor_latency_measured: bool = _switch(False)  # L_TC = max(II_TC, measured completion) instead of Eq. (26)
    launch_in_ns: bool = _switch(False)  # the unit of KLL
    launch_overlapped: bool = _switch(False)  # the grid's CTA launches overlap execution (max instead of sum)
    latency_is_total: bool = _switch(False)  # latencies of the record are end to end
    roofline_floor: bool = _switch(True)  # never below the bytes' time
    single_warp_literal: bool = _switch(False)  # Eq. (17)-(20) as printed, without the other warps
    with_launch: bool = _switch(True)  # off: an ablation of Eq. (16) without KLL
    with_divergence: bool = _switch(True)  # off: without ID, so that partly filled waves show in ``selected``

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars); InputError where they are no records."""
        expect_records(kernel, gpu)
        return self._launched(kernel, gpu)[1]

    def nanoseconds(self, kernel: Kernel, gpu: Gpu) -> Array:
        """Return the time of one kernel on one GPU [ns]: of a program that asks for no more, only that is left."""
        cycles, timing = self._launched(kernel, gpu)
        return jnp.where(timing.feasible > 0, cycles / timing.clock_ghz, INFEASIBLE)

    def _launched(self, kernel: Kernel, gpu: Gpu) -> tuple[Array, Timing]:
        """Return the cycles of a generated kernel in all, and by cause: the terms of Eq. (16), then what is fitted."""
        model = self.of(kernel.implementation)
        fitted = model.sustained
        kernel, gpu = executed(model.work, kernel), fitted.derated(gpu)
        clock, grid = kernel_clock(kernel, gpu), waves(kernel, gpu)
        mem = memory(kernel, gpu, clock, self.latency_is_total, fitted.kept, fitted.streams)
        uneven = rounds(kernel, gpu, grid, fitted.tail)
        wave = partial(model._wave, gpu=gpu, mem=mem)
        on_sm = busiest_sm(fitted.filled(kernel), grid, uneven, fitted.alone, wave)
        on_sm = on_sm.later(mem.l1 + mem.l2 + jnp.asarray(kernel.serial_waits) * mem.amat)  # the drain, once (12.3)
        terms = Terms(
            on_sm,  # S_I + S_IP, Eq. (18), (21)
            grid=model.launch.per_grid(kernel),  # KLL, Eq. (27), (28)
            launch=model.launch.per_launch(kernel),
            divergence=jnp.maximum(on_sm.issue - fair_issue(kernel, gpu), 0.0),  # ID, Eq. (29)
            messages=link_cycles(kernel, gpu, clock),
            clock=clock,
            feasible=grid.fits * supported(kernel, gpu),
        )
        costs = fitted.costs(kernel, gpu, clock, mem, grid, uneven)
        cycles, timing = model.equation_16(terms, costs, gpu, mem, jnp.asarray(kernel.l2_bytes))
        stretch = stretch_of(model.discrepancy, kernel)
        stretch = limited_by_peaks(stretch, fitted.least_cycles(kernel, gpu, clock, mem) / cycles)
        return cycles * stretch, timing.stretched(stretch)

    def equation_16(
        self, terms: Terms, costs: Costs, gpu: Gpu, mem: MemoryPath, l2_bytes: Array
    ) -> tuple[Array, Timing]:
        """Return C = S_I + S_IP + KLL + ID, no less than the bytes take, in all and by cause; ``costs`` on top."""
        on_sm = terms.on_sm.later(costs.on_sm)
        dram, l2 = self.sustained.bytes_cycles(gpu, mem, l2_bytes)
        link = mem.across.cycles(l2_bytes)
        longest = jnp.maximum(jnp.maximum(dram, l2), link)
        loss = self.sustained.overlap_loss(on_sm.total, longest, mem.dram_writes * mem.dram_byte)
        if not self.roofline_floor:
            dram = l2 = link = loss = jnp.zeros_like(on_sm.issue)
        sm = floored(on_sm, dram, l2, link, loss)
        unit = (terms.clock if self.launch_in_ns else 1.0) * self.with_launch
        grid = terms.grid * unit
        grid = jnp.maximum(grid - sm.executed, 0.0) if self.launch_overlapped else grid  # 12.14
        launch = terms.launch * unit + grid + costs.kernels * self.with_launch
        divergence = terms.divergence * self.with_divergence
        timing = Timing(
            selected=on_sm.issue - divergence,
            **sm.causes._replace(long_scoreboard=sm.causes.long_scoreboard + costs.after_bytes)._asdict(),
            launch=launch,
            divergence=divergence,
            dram_bandwidth=sm.dram + costs.copies,
            l2_bandwidth=sm.l2,
            die_link=sm.link,
            interconnect=terms.messages,
            clock_ghz=terms.clock,
            feasible=terms.feasible,
            dram_bytes=mem.passed_bytes + costs.copied_bytes,
            hidden=sm.hidden,
            exposed=sm.exposed + costs.copies,
        )
        return sm.executed + costs.after_bytes + launch + costs.copies + terms.messages, timing

    def _wave(self, kernel: Kernel, ctas: Array, all_ctas: Array, *, gpu: Gpu, mem: MemoryPath) -> IntervalCycles:
        """Return the cycles of one wave of ``ctas`` CTAs on this SM and ``all_ctas`` on the GPU, Eq. (8)-(26)."""
        fitted, resident = self.sustained, resident_warps(gpu, ctas, all_ctas, kernel.warps)
        rate = tensor_rate(kernel, gpu) if self.tensor_modifiers else fixed_interval_rate(kernel)
        tensor = busy_cycles(jnp.asarray(kernel.tensor_instruction_fma), rate)  # Eq. (26): L_TC = II_TC
        if self.tensor_latency_measured:
            tensor = jnp.maximum(tensor, gpu.mma_latency_cycles)
        latencies = Latencies.on(gpu, tensor)
        # In CTAs: ``ctas`` where sub-cores share them evenly; where not, one CTA fewer may leave the busiest as it was.
        shared = resident.subcore * gpu.subcores_per_sm / kernel.warps
        hiding = hiding_of(kernel, latencies, mem)._replace(share=fitted.apart(shared))
        return add_up(
            interval_cycles(
                interval,
                own_stalls(interval, latencies, mem, pipelined),
                busiest_pipe(interval, gpu, rate, fitted.lanes, fitted.mixed),
                gpu,
                resident,
                hiding,
                mem,
                pipelined,
                single_warp_literal=self.single_warp_literal,
                queued=fitted.queued,
            ).scaled(fitted.epilogue if interval is kernel.end else 1.0)
            for interval, pipelined in with_pipelining(kernel)
        )

    def of(self, implementation: Any) -> "Amali":
        """The model with the coefficients of one implementation."""
        launch, sustained = self.launch.of(implementation), self.sustained.of(implementation)
        discrepancy = None if self.discrepancy is None else self.discrepancy.of(implementation)
        work = None if self.work is None else self.work.of(implementation)
        return replace(self, launch=launch, sustained=sustained, discrepancy=discrepancy, work=work)

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

    def __repr__(self) -> str:
        if not self.calibrated_on:
            return super().__repr__()
        stated = [f"calibrated_on={self.calibrated_on!r}"]
        if (errors := self.errors) is not None:
            stated += [f"{100 * SHARE:.0f} % of times within {errors.low:.3g} to {errors.high:.3g} times what it says"]
        switches = [(f.name, getattr(self, f.name)) for f in fields(self) if isinstance(f.default, bool)]
        stated += [f"{name}={value}" for name, value in switches if value != getattr(Amali, name)]
        return f"Amali({', '.join(stated)})"

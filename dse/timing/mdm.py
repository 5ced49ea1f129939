"""MDM: the GPU memory divergence model (Wang, Jahre, Adileh, Eeckhout; MICRO 2020), which papers compare with.

As docs/model/timing_traced.md 10 defines it: an SM is one scheduler with all its warps; intervals overlap with the
other warps' instructions; requests of 128 bytes queue for one combined service time. No sub-cores, no structural
stalls, no L1 banks, no launch.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.numerics import ceil_div, safe_div
from dse.hardware.gpu import Gpu
from dse.timing.contention import PHI
from dse.timing.interval import (
    Causes,
    Hiding,
    IntervalCycles,
    Latencies,
    Stalls,
    add_up,
    hiding_of,
    own_stalls,
    with_pipelining,
)
from dse.timing.links import link_cycles
from dse.timing.memory import MemoryPath, memory
from dse.timing.occupancy import Waves, waves
from dse.timing.tensor_core import FIXED_INTERVAL, supported
from dse.timing.timing import Timing, TimingModel, kernel_clock
from dse.workload.kernel import Interval, Kernel


class ResidentWave(NamedTuple):
    """``warps`` resident on this SM, ``sms`` SMs with work, and how many such waves run."""

    warps: Array
    sms: Array
    times: Array


class Demand(NamedTuple):
    """What one warp asks for in an interval: instructions, bytes loaded from and stored to the L2."""

    instructions: Array
    load_bytes: Array
    store_bytes: Array


class Mdm(TimingModel):
    """Per interval n_k + max(s_k, V/r) and queueing; the SM's scheduler issues what its sub-cores issue together.

    Tensor cores are units of fixed latency, as in the models that AMALI extends.
    """

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars)."""
        clock = kernel_clock(kernel, gpu)
        mem = memory(kernel, gpu, clock, latency_is_total=False)
        grid = waves(kernel, gpu)
        latencies = Latencies.on(gpu, jnp.asarray(FIXED_INTERVAL))
        parts = [(i, own_stalls(i, latencies, mem, p)) for i, p in with_pipelining(kernel)]
        hiding = hiding_of(kernel, latencies, mem)

        def demand(i: Interval) -> Demand:
            return Demand(*map(jnp.asarray, (i.instructions, i.load_bytes, i.store_bytes)))

        cycles = [
            interval_cycles(demand(i), s, gpu, wave, hiding, mem).scaled(i.repeats * wave.times)
            for wave in resident_waves(gpu, grid, kernel.warps)
            for i, s in parts
        ]
        feasible = grid.fits * supported(kernel, gpu)
        return composed(add_up(cycles), clock, mem, link_cycles(kernel, gpu, clock), feasible)


def resident_waves(gpu: Gpu, grid: Waves, warps: Array | float) -> list[ResidentWave]:
    """Full waves, then the rest, of the SM with the most CTAs; as many SMs compete throughout as the CTAs in flight
    would fill (a departure: all active SMs, GCoM's form, would count the CTAs of unevenly filled ones twice)."""
    full = grid.full_ctas / jnp.maximum(grid.resident, 1.0)
    rest = jnp.where(grid.rest > 0, 1.0, 0.0)
    return [ResidentWave(grid.resident * warps, full, grid.full), ResidentWave(grid.rest * warps, full, rest)]


def interval_cycles(
    demand: Demand, stalls: Stalls, gpu: Gpu, wave: ResidentWave, hiding: Hiding, mem: MemoryPath
) -> IntervalCycles:
    """Return the cycles of one interval: n_k + max(s_k, V/r), then MSHR batches and queueing under mio_throttle."""
    r = gpu.issue_rate * gpu.subcores_per_sm
    stall = sum(stalls[1:], stalls.compute)
    others = jnp.maximum(wave.warps - 1.0, 0.0) * hiding.length
    hidden = jnp.minimum(stall * hiding.probability, 1.0) * others / r  # V / r
    share = safe_div(jnp.maximum(stall - hidden, 0.0), stall)
    zero = jnp.zeros_like(share)
    causes = Causes(
        wait=share * stalls.compute,
        short_scoreboard=share * stalls.shared,
        long_scoreboard=share * stalls.memory,
        math_pipe_throttle=zero,
        lg_throttle=zero,
        mio_throttle=_queueing(demand.load_bytes * wave.warps, demand.store_bytes * wave.warps, gpu, wave, mem),
    )
    return IntervalCycles.of(demand.instructions + hidden, causes)  # n + max(s, V/r) = n + V/r + max(s - V/r, 0)


def _queueing(reads: Array, writes: Array, gpu: Gpu, wave: ResidentWave, mem: MemoryPath) -> Array:
    """Return the queueing of an SM's bytes: one service time t_N + m t_D, repeated in every batch of the MSHRs."""
    room = gpu.l1_mshr_entries * gpu.sector_bytes
    batches = jnp.maximum(ceil_div(reads, room) - 1.0, 0.0)
    service = mem.l2_byte + mem.dram_share * mem.dram_byte
    queue = PHI * wave.sms * (jnp.minimum(reads, room) + writes) * service
    amat = mem.l1 + mem.l2 + mem.dram_share * mem.dram
    return queue + batches * (amat + queue)


def composed(cycles: IntervalCycles, clock: Array, mem: MemoryPath, links: Array, feasible: Array) -> Timing:
    """Return the stack of the SM's ``cycles`` and of the messages' ``links`` [cycle]."""
    zero = jnp.zeros_like(cycles.issue)
    return Timing(
        selected=cycles.issue,
        **cycles.causes._asdict(),
        launch=zero,
        divergence=zero,
        dram_bandwidth=zero,
        hidden=zero,
        l2_bandwidth=zero,
        die_link=zero,
        interconnect=links,
        clock_ghz=clock,
        feasible=feasible,
        dram_bytes=mem.passed_bytes,
    )

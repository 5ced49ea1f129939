"""The datasheet roofline: the larger of arithmetic and memory time, plus launch latency."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.timing.launch import LaunchLatency
from dse.timing.links import link_cycles
from dse.timing.memory import MemoryPath, memory
from dse.timing.occupancy import waves
from dse.timing.tensor_core import busy_cycles, supported, tensor_rate
from dse.timing.timing import Timing, TimingModel, expect_records, kernel_clock
from dse.workload.kernel import AnyKernel, Kernel


class Roofline(TimingModel):
    """Time = max(multiply-adds / peak, bytes / bandwidth of DRAM, of L2 and between dies) + KLL's constant.

    The baseline that every other model is put beside. Arithmetic is booked under ``math_pipe_throttle``, what memory
    adds under the floors.
    """

    launch: LaunchLatency = eqx.field(default_factory=LaunchLatency)

    def __call__(self, kernel: Kernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of one kernel on one GPU (scalars); InputError where they are no records."""
        expect_records(kernel, gpu)
        clock = kernel_clock(kernel, gpu)
        mem = memory(kernel, gpu, clock, latency_is_total=False)
        tensor = tensor_rate(kernel, gpu) * gpu.subcores_per_sm
        rate = jnp.where(jnp.asarray(kernel.fma_lanes) > 0, gpu.fp32_lanes, tensor) * gpu.sm_count
        arithmetic = busy_cycles(jnp.asarray(kernel.fma), rate)
        feasible = waves(kernel, gpu).fits * supported(kernel, gpu)
        l2_bytes, links = jnp.asarray(kernel.l2_bytes), link_cycles(kernel, gpu, clock)
        return self.compose(kernel, clock, mem, arithmetic, l2_bytes, links, feasible)

    def compose(
        self,
        kernel: AnyKernel,
        clock: Array,
        mem: MemoryPath,
        arithmetic: Array,
        l2_bytes: Array,
        interconnect: Array,
        feasible: Array,
    ) -> Timing:
        """Return the stack of ``arithmetic`` [cycle] and of what bytes of DRAM, L2 and between dies take beyond it."""
        dram, l2 = mem.passed_bytes * mem.dram_byte, l2_bytes * mem.l2_byte
        link = mem.across.cycles(l2_bytes)
        on_chip = jnp.maximum(l2, link)
        missing = jnp.maximum(jnp.maximum(dram, on_chip) - arithmetic, 0.0)
        zero: Array = jnp.zeros_like(missing)
        return Timing(
            selected=zero,
            wait=zero,
            short_scoreboard=zero,
            long_scoreboard=zero,
            math_pipe_throttle=arithmetic,
            lg_throttle=zero,
            mio_throttle=zero,
            launch=self.launch.per_launch(kernel),
            divergence=zero,
            dram_bandwidth=jnp.where(dram >= on_chip, missing, zero),
            hidden=zero,
            l2_bandwidth=jnp.where((dram >= on_chip) | (link > l2), zero, missing),
            die_link=jnp.where((dram < on_chip) & (link > l2), missing, zero),
            interconnect=interconnect,
            clock_ghz=clock,
            feasible=feasible,
            dram_bytes=mem.passed_bytes,
        )

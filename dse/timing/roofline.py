"""The datasheet roofline: the larger of arithmetic and memory time, plus launch latency."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.timing.launch import LaunchLatency
from dse.timing.links import link_cycles
from dse.timing.memory import MemoryPath, memory
from dse.timing.occupancy import waves
from dse.timing.tensor_core import busy_cycles, supported, tensor_rate
from dse.timing.timing import Timing, TimingModel, expect_records, kernel_clock
from dse.timing.traced.traced_intervals import designs_shape, has_tensor_types, trace_clock, view
from dse.traces.traced_kernel import TracedKernel
from dse.workload.kernel import Kernel


class Roofline(TimingModel):
    """Time = max(multiply-adds / peak, DRAM bytes / bandwidth, L2 bytes / bandwidth) + KLL's constant.

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
        return self._timing(kernel, clock, mem, arithmetic, l2_bytes, links, feasible)

    def on_trace(self, kernel: TracedKernel, gpu: Gpu) -> Timing:
        """Return the cycles by cause of a traced kernel on a batch of designs: the busiest math pipe of all its warps.

        The warps are taken as the representative one, in a grid that fills the GPU evenly.
        """
        clock = trace_clock(kernel, gpu)
        seen = view(kernel, gpu, clock)
        whole = jax.tree.map(lambda x: jnp.sum(x, axis=0), seen.counts)
        arithmetic = whole.busiest_pipe * kernel.ctas * kernel.warps / (gpu.sm_count * gpu.subcores_per_sm)
        feasible = waves(kernel, gpu).fits * has_tensor_types(kernel, gpu)
        timing = self._timing(kernel, clock, seen.memory, arithmetic, seen.l2_bytes, jnp.zeros(()), feasible)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, designs_shape(gpu)), timing)

    def _timing(
        self,
        kernel: Kernel | TracedKernel,
        clock: Array,
        mem: MemoryPath,
        arithmetic: Array,
        l2_bytes: Array,
        interconnect: Array,
        feasible: Array,
    ) -> Timing:
        dram, l2 = mem.moved * mem.dram_byte, l2_bytes * mem.l2_byte
        missing = jnp.maximum(jnp.maximum(dram, l2) - arithmetic, 0.0)
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
            dram_bandwidth=jnp.where(dram >= l2, missing, zero),
            hidden=zero,
            l2_bandwidth=jnp.where(dram >= l2, zero, missing),
            interconnect=interconnect,
            clock_ghz=clock,
            feasible=feasible,
            dram_bytes=mem.moved,
        )

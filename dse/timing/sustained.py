"""What tuned kernels sustain of a GPU's rates, and what they cost beyond the interval model.

docs/model/timing_amali.md 10.
"""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.numerics import safe_div
from dse.hardware.gpu import Gpu
from dse.timing.memory import MemoryPath
from dse.timing.occupancy import Waves
from dse.timing.tensor_core import tensor_rate
from dse.workload.implementation import PerImplementation
from dse.workload.kernel import Kernel


class Costs(NamedTuple):
    """What a launch costs beyond Eq. (16); nothing by default."""

    on_sm: Array | float = 0.0  # [cycle] of starting waves and CTAs, while the bytes are on their way
    after_bytes: Array | float = 0.0  # [cycle] of CTAs whose bytes have arrived
    kernels: Array | float = 0.0  # [cycle] of further kernels, which add up partial results or copy operands
    copies: Array | float = 0.0  # [cycle] of the bytes that these copy
    copied_bytes: Array | float = 0.0  # [B] of them that reach DRAM: no more than take its time


class Sustained(PerImplementation):
    """Fitted shares of rates and fitted costs; the defaults leave the published model as it is, bit for bit.

    Each field is a number, or an array with one for each of IMPLEMENTATIONS (:meth:`of` takes one's). A share of
    ``dram`` above 1 says that a microbenchmark fell short of what its GPU gives; no kernel's bytes are faster than the
    sheet's bandwidth (:meth:`bytes_cycles`).
    """

    # Shares of the record's rates, and what kernels cost on the SM.
    tensor: Array | float = 1.0  # [1] of the tensor cores'
    dram: Array | float = 1.0  # [1] of what a streaming read sustains
    l2: Array | float = 1.0  # [1] of what slices and network pass
    l2_port: Array | float = 1.0  # [1] of an SM's port to the L2
    shared: Array | float = 1.0  # [1] of the shared memory's
    prologue: Array | float = 0.0  # [cycle] until the first product, beyond the latencies of the first loads
    wave: Array | float = 0.0  # [cycle] between a wave of CTAs and the next
    epilogue: Array | float = 1.0  # [1] the last interval, relative to its instructions' time
    # Between SM and memory.
    overlap: Array | float = 0.0  # [1] that the shorter of SM and bytes' time adds to the longer where they are equal
    write: Array | float = 0.0  # [1] of the results' DRAM time that follows the products instead of overlapping them
    kept: Array | float | None = None  # [1] of the L2 that survives a launch; 0: by a law, None: as within one
    split: Array | float = 0.0  # [ns] of each kernel after the first, which adds up partial results
    streams: Array | float = 0.0  # [1] above 0.5 the exponent of a stream's hits in the L2 (between_launches), 0: none
    queued: Array | float = 1.0  # [1] of the queueing behind other SMs that shows
    turnaround: Array | float = 0.0  # [1] that a byte written to DRAM costs more than one read
    lockstep: Array | float = 0.0  # [1] of a CTA's warps that wait together, so that only other CTAs' hide their stalls
    # Attention.
    lanes: Array | float = 1.0  # [1] of the CUDA cores' and SFUs' rate
    mixed: Array | float = 0.0  # [1] that the shorter of tensor and CUDA-core time adds to the longer, as overlap
    filling: Array | float = 0.0  # [1] further iterations of the loop until a CTA's pipeline is full
    alone: Array | float = 1.0  # [1] a lone CTA's loop, relative to its pipes' time
    cta: Array | float = 0.0  # [cycle] of its SM for every CTA
    exposed: Array | float = 0.0  # [1] of these that follow the bytes instead of overlapping them
    tail: Array | float = 1.0  # [1] of a list schedule's uneven end that shows
    copy: Array | float = 0.0  # [ns] of each kernel that copies operands
    copied: Array | float = 1.0  # [1] times its bytes
    copied_row: Array | float = 0.0  # [cycle] of an SM for each of its rows

    def derated(self, gpu: Gpu) -> Gpu:
        """Return the GPU with the rates that kernels sustain."""
        return replace(
            gpu,
            tensor_cores_per_sm=gpu.tensor_cores_per_sm * self.tensor,  # one product for the rates of all types
            dram_sustained_fraction=gpu.dram_sustained_fraction * self.dram,
            l2_slice_bytes_per_cycle=gpu.l2_slice_bytes_per_cycle * self.l2,
            l2_port_bytes_per_cycle=gpu.l2_port_bytes_per_cycle * self.l2_port,
            l2_crossbar_bytes_per_cycle=gpu.l2_crossbar_bytes_per_cycle * self.l2,
            l1_bytes_per_cycle=gpu.l1_bytes_per_cycle * self.shared,
        )

    def filled(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the iterations that fill a CTA's pipeline."""
        return replace(kernel, loop=replace(kernel.loop, repeats=kernel.loop.repeats + self.filling))

    def apart(self, ctas: Array) -> Array:
        """Return the share of an SM's warps that can hide a stall of one of them, where it holds ``ctas`` CTAs."""
        return 1.0 - self.lockstep / jnp.maximum(ctas, 1.0)

    def bytes_cycles(self, gpu: Gpu, mem: MemoryPath, l2_bytes: Array) -> tuple[Array, Array]:
        """Return the time of the bytes of DRAM and of the L2 [cycle] on a derated GPU.

        A fitted share of what a GPU sustains may be more than its sheet has; no kernel's bytes are faster than that.
        """
        at_sheet = mem.dram_bytes * gpu.dram_sustained_fraction
        dram = jnp.maximum(mem.dram_bytes + self.turnaround * mem.dram_writes, at_sheet) * mem.dram_byte
        return dram, l2_bytes * mem.l2_byte

    def least_cycles(self, kernel: Kernel, gpu: Gpu, clock_ghz: Array, mem: MemoryPath) -> Array:
        """Return the cycles that the data sheet's peaks allow a kernel at least, on a derated GPU."""
        rate = tensor_rate(kernel, gpu) * gpu.subcores_per_sm * gpu.sm_count / self.tensor
        return jnp.maximum(mem.passed_bytes / gpu.dram_bandwidth_gbs * clock_ghz, safe_div(kernel.fma, rate))

    def overlap_loss(self, on_sm: Array, bytes_time: Array, writes: Array) -> Array:
        """Return what bytes add to SM time, or it to them, where the two overlap imperfectly [cycle].

        ``on_sm``, ``bytes_time`` and ``writes`` (of the results to DRAM) [cycle]. t = max + overlap min^2 / max +
        write min(SM, writes): of two equal times a share ``overlap`` shows, of unequal ones less.
        """
        shorter, longer = jnp.minimum(bytes_time, on_sm), jnp.maximum(bytes_time, on_sm)
        excess = self.overlap * shorter * shorter / jnp.maximum(longer, 1.0)
        return excess + self.write * jnp.minimum(writes, on_sm)

    def costs(self, kernel: Kernel, gpu: Gpu, clock_ghz: Array, mem: MemoryPath, grid: Waves, uneven: Array) -> Costs:
        """Return the costs of a launch on a derated GPU; ``uneven`` as :func:`dse.timing.schedule.rounds` has it."""
        later_waves = jnp.maximum(grid.full + jnp.where(grid.rest > 0, 1.0, 0.0) - 1.0, 0.0)
        # Every CTA's own cost on its SM: at least one, and as many as the schedule gives the busiest.
        ctas = self.cta * jnp.maximum(uneven * grid.resident, 1.0)
        hidden = (1.0 - self.exposed) * ctas
        further = self.split * (jnp.asarray(kernel.launches) - 1.0) + self.copy * jnp.asarray(kernel.copies)
        rows = self.copied_row * jnp.asarray(kernel.copied_rows) / gpu.sm_count
        copied = jnp.asarray(kernel.copied_bytes)
        return Costs(
            on_sm=self.prologue + self.wave * later_waves + hidden,
            after_bytes=ctas - hidden,
            kernels=further * clock_ghz,
            copies=rows + self.copied * copied * mem.dram_byte,
            copied_bytes=jnp.minimum(self.copied, 1.0) * copied,
        )

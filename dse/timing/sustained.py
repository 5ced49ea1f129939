"""What tuned kernels sustain of a GPU's rates, and what they cost beyond the interval model.

docs/model/timing_amali.md 10.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.timing.interval import Cycles
from dse.timing.memory import MemoryPath
from dse.workload.implementation import PerImplementation
from dse.workload.kernel import AnyKernel


class Sustained(PerImplementation):
    """Fitted shares of rates and fitted costs; the defaults leave the published model as it is, bit for bit.

    Each field is a number, or an array with one for each of IMPLEMENTATIONS (:meth:`of` takes one's).

    Shares of the record's rates [1]: ``tensor`` of the tensor cores', ``dram`` of what a streaming read sustains,
    ``l2`` of the slices', ``l2_port`` of an SM's port to the L2, ``shared`` of the shared memory's. (A share of
    ``dram`` above 1 says that a microbenchmark fell short of what its GPU gives; no kernel's bytes are faster than the
    sheet's bandwidth, see :meth:`bytes_cycles`.)

    Costs on the SM: ``prologue`` [cycle] until the first product, beyond the latencies of the first loads; ``wave``
    [cycle] between a wave of CTAs and the next; ``epilogue`` [1], the last interval relative to its instructions' time.

    Between SM and memory: ``overlap`` [1], what the shorter of SM time and bytes' time adds to the longer where both
    are equal; ``write`` [1], share of the results' DRAM time that follows the products instead of running beside them;
    ``kept`` [1], share of the L2 that survives between launches (None: :func:`dse.workload.reuse.miss_fraction`);
    ``split`` [ns] of each kernel after the first, which adds up partial results.

    ``streams`` [1], above 0.5 the exponent of what a stream through all buffers finds in the L2, 0: as products
    (:func:`dse.workload.reuse.between_launches`). ``queued`` [1], share of the queueing behind other SMs that shows;
    ``turnaround`` [1], what a byte written to DRAM costs more than one read; ``lockstep`` [1], share of a CTA's warps
    that wait together, so that only other CTAs' hide their stalls.

    Attention: ``lanes`` [1], share of the CUDA cores' and SFUs' rate; ``mixed`` [1], what the shorter of tensor and
    CUDA-core time of an interval adds to the longer where both are equal; ``filling`` [1], further iterations of the
    loop until a CTA's pipeline is full; ``alone`` [1], a lone CTA's loop relative to its pipes' time; ``cta`` [cycle]
    of its SM for every CTA, of which the share ``exposed`` [1] follows the bytes instead of running beside them;
    ``tail`` [1], share of a list schedule's uneven end that shows; ``copy`` [ns] of each kernel that copies operands,
    ``copied`` [1] times its bytes, and ``copied_row`` [cycle] of an SM for each of its rows.
    """

    tensor: Array | float = 1.0
    dram: Array | float = 1.0
    l2: Array | float = 1.0
    l2_port: Array | float = 1.0
    shared: Array | float = 1.0
    prologue: Array | float = 0.0
    wave: Array | float = 0.0
    epilogue: Array | float = 1.0
    overlap: Array | float = 0.0
    write: Array | float = 0.0
    kept: Array | float | None = None
    split: Array | float = 0.0
    streams: Array | float = 0.0
    queued: Array | float = 1.0
    turnaround: Array | float = 0.0
    lockstep: Array | float = 0.0
    lanes: Array | float = 1.0
    mixed: Array | float = 0.0
    filling: Array | float = 0.0
    alone: Array | float = 1.0
    cta: Array | float = 0.0
    exposed: Array | float = 0.0
    tail: Array | float = 1.0
    copy: Array | float = 0.0
    copied: Array | float = 1.0
    copied_row: Array | float = 0.0

    def derated(self, gpu: Gpu) -> Gpu:
        """Return the GPU with the rates that kernels sustain."""
        return replace(
            gpu,
            tensor_cores_per_sm=gpu.tensor_cores_per_sm * self.tensor,  # one product for the rates of all types
            dram_sustained_fraction=gpu.dram_sustained_fraction * self.dram,
            l2_slice_bytes_per_cycle=gpu.l2_slice_bytes_per_cycle * self.l2,
            l2_port_bytes_per_cycle=gpu.l2_port_bytes_per_cycle * self.l2_port,
            l1_bytes_per_cycle=gpu.l1_bytes_per_cycle * self.shared,
        )

    def started(self, on_sm: Cycles, waves: Array) -> Cycles:
        """Return the cycles of ``waves`` waves with what starting them costs, booked under latency."""
        starts = self.prologue + self.wave * jnp.maximum(waves - 1.0, 0.0)
        return on_sm.later(starts)

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

    def further_kernels(self, launches: Array, kernel: AnyKernel, clock_ghz: Array) -> Array:
        """Return ``launches`` [cycle] with what the kernels cost that add up partial results and copy operands."""
        launches = launches + self.split * clock_ghz * (jnp.asarray(kernel.launches) - 1.0)
        return launches + self.copy * clock_ghz * jnp.asarray(kernel.copies)

    def copying_cycles(self, kernel: AnyKernel, gpu: Gpu, mem: MemoryPath) -> Array:
        """Return the cycles of the bytes that kernels beside this one copy; a trace holds every kernel itself."""
        rows = self.copied_row * jnp.asarray(kernel.copied_rows) / gpu.sm_count
        return rows + self.copied * jnp.asarray(kernel.copied_bytes) * mem.dram_byte

    def copied_dram_bytes(self, kernel: AnyKernel) -> Array:
        """Return those of these bytes that reach DRAM [B]: no more than take its time."""
        return jnp.minimum(self.copied, 1.0) * jnp.asarray(kernel.copied_bytes)

    def beside(self, on_sm: Array, bytes_time: Array, writes: Array) -> Array:
        """Return what bytes add to SM time, or it to them, where the two overlap imperfectly [cycle].

        ``on_sm``, ``bytes_time`` and ``writes`` (of the results to DRAM) [cycle]. t = max + overlap min^2 / max +
        write min(SM, writes): of two equal times a share ``overlap`` shows, of unequal ones less.
        """
        shorter, longer = jnp.minimum(bytes_time, on_sm), jnp.maximum(bytes_time, on_sm)
        excess = self.overlap * shorter * shorter / jnp.maximum(longer, 1.0)
        return excess + self.write * jnp.minimum(writes, on_sm)

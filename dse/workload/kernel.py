"""The record of what a kernel demands, as independent of the GPU as it can be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from dse.base.brief import brief
from dse.hardware.capability import ANY_NEWER
from dse.hardware.data_types import TENSOR_DTYPES

Number: TypeAlias = Any
"""A float while kernels are built, an array inside a program."""

PROBLEM = 5
"""Numbers of a problem's size."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Interval:
    """A stretch of the representative warp's instructions that ends in at most one stall; counts a warp and a repeat.

    In a loop whose loads are issued d iterations ahead, ``global_waits`` is 1/d.
    """

    repeats: Number = 0.0  # [1] how often it runs
    instructions: Number = 0.0  # [warp instruction] issued in all
    fp32: Number = 0.0  # [warp instruction] of these, on FP32 lanes
    int32: Number = 0.0  # [warp instruction] on INT32 lanes
    sfu: Number = 0.0  # [warp instruction] on special-function units
    tensor_fma: Number = 0.0  # [FMA] by tensor instructions
    shared_bytes: Number = 0.0  # [B] between registers, L1 and shared memory
    load_bytes: Number = 0.0  # [B] loaded from the L2
    store_bytes: Number = 0.0  # [B] stored to the L2
    global_waits: Number = 0.0  # [1] latencies of global memory waited for
    shared_waits: Number = 0.0  # [1] of shared memory
    alu_waits: Number = 0.0  # [1] of dependent ALU instructions
    sfu_waits: Number = 0.0  # [1] of special functions
    tensor_waits: Number = 0.0  # [1] of tensor instructions


SHOWN = ("ctas", "warps", "registers", "shared_kib", "fma", "cold_bytes", "warm_bytes", "write_bytes", "l2_bytes")
"""Fields by which a kernel is told at a glance."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kernel:
    """What one kernel launch demands; every field a scalar, or an array of shape (kernels,) in a batch.

    DRAM traffic stands by reuse class, each with its reuse distance: the bytes touched between two uses
    (:mod:`dse.workload.l2_hit_rate`). CTAs of unequal length are handed out one by one (:mod:`dse.timing.schedule`).

    ``problem`` is the size of what is asked for, by which a library's own ways are known
    (:mod:`dse.timing.discrepancy`): of a plain product in 16 bits m, n, k; of attention in 16 bits the heads of all
    requests, queries, keys, head dimension, and query heads that share keys; of a vector kernel the number of its
    operator, rows, columns and bytes of an element. Zeros of anything else.
    """

    start: Interval  # once: fills the pipeline
    loop: Interval  # the main loop
    end: Interval  # once: the epilogue
    ctas: Number = 1.0  # [CTA] of the grid
    warps: Number = 4.0  # [warp/CTA]
    registers: Number = 32.0  # [register/thread]
    shared_kib: Number = 0.0  # [KiB/CTA] of shared memory
    cluster: Number = 1.0  # [CTA] that share multicast loads
    launches: Number = 1.0  # [1] kernels: 2 where a reduction kernel follows
    compute_capability: Number = 0.0  # [1] at least
    capability_end: Number = ANY_NEWER  # [1] below this compute capability
    warpgroup: Number = 0.0  # 1: needs warpgroup-level tensor instructions
    tensor_dtype: Number = 0.0  # index into TENSOR_DTYPES
    uses_tensor: Number = 0.0  # 1: uses tensor cores
    tensor_instruction_fma: Number = 1.0  # [FMA/warp instruction]
    pipelined: Number = 0.0  # 1: loads are issued ahead of their use, so an iteration covers their latency
    cold_bytes: Number = 0.0  # [B] read whose last use lies far back (weights, caches)
    cold_distance: Number = 1.0  # [B] touched since that use
    warm_bytes: Number = 0.0  # [B] read whose last use is recent (activations)
    warm_distance: Number = 1.0  # [B] touched since that use
    write_bytes: Number = 0.0  # [B] written
    result_bytes: Number = 0.0  # [B] of those written that are the result; the rest are partial sums (0: all are)
    result_distance: Number = 0.0  # [B] until the result is read (0: write_distance)
    write_distance: Number = 1.0  # [B] until what is written is used again
    a_bytes: Number = 0.0  # [B] of operand A, which the tiles of a wave read again
    b_bytes: Number = 0.0  # [B] of operand B
    m_tiles: Number = 1.0  # [1] tiles of the grid along m
    n_tiles: Number = 1.0  # [1] along n
    tile_aspect: Number = 1.0  # [1] tile_n / tile_m
    reread_distance: Number = 1.0  # [B] touched between two readings by tiles
    l2_bytes: Number = 0.0  # [B] between the L2 and the SMs
    link_bytes: Number = 0.0  # [B] that a GPU sends to others
    link_messages: Number = 0.0  # [1] messages one after the other
    link_gpus: Number = 1.0  # [GPU] that take part
    link_tier: Number = 0.0  # 1: over NVLink alone, -1: over PCIe alone, 0: over the faster that serves
    fma: Number = 0.0  # [FMA] useful multiply-adds, for rooflines and reports
    fma_lanes: Number = 0.0  # 1: these run on CUDA cores
    masked_fma: Number = 0.0  # [FMA] of scores between operands of the problem, which a mask then removes
    problem: tuple[Number, ...] = (0.0,) * PROBLEM  # size of what is asked for
    implementation: Number = 0.0  # index into IMPLEMENTATIONS, whose fitted costs apply
    again_bytes: Number = 0.0  # [B] read again by the CTA that read them
    again_distance: Number = 1.0  # [B] of the CTA's own between the two
    serial_waits: Number = 0.0  # [1] latencies of global memory that pass once in a launch
    longest: Number = 0.0  # [1] the longest CTA's time over the mean's (0: all alike, in waves)
    longest_first: Number = 0.0  # 1: handed out in that order; 0: the longest of each tile last
    copies: Number = 0.0  # [1] copies of operands in kernels of their own
    copied_bytes: Number = 0.0  # [B] that they move
    copied_rows: Number = 0.0  # [1] their rows, a CTA each
    unless_warpgroup_kib: Number = 0.0  # [KiB] runs only where no warpgroup kernel that needs so much does
    unless_kib: Number = 0.0  # [KiB] the same of any kernel of its library
    read_share: Number = 1.0  # [1] of what counts as read that really passes: a slow access counts for its time
    stretch: Number = 1.0  # [1] measured time over the equations', of its problem

    def __repr__(self) -> str:
        return brief(self, {name: getattr(self, name) for name in SHOWN})

    @property
    def intervals(self) -> tuple[Interval, Interval, Interval]:
        """The three stretches in the order they run."""
        return self.start, self.loop, self.end

    @property
    def tensor_types(self) -> set[str]:
        """Data types of the tensor instructions of one kernel."""
        return {TENSOR_DTYPES[int(self.tensor_dtype)]} if float(self.uses_tensor) > 0 else set()

    def per_warp(self, count: str) -> Number:
        """Return a count of the intervals (``instructions``, ``load_bytes`` ...) over all their repeats."""
        return sum(interval.repeats * getattr(interval, count) for interval in self.intervals)

    def as_arrays(self) -> "Kernel":
        """Return the same kernel with every number an array of JAX's default float type."""
        return jax.tree.map(lambda x: jnp.asarray(x, dtype=float), self)

    @staticmethod
    def stack(kernels: Sequence[Any]) -> "Kernel":
        """Return one batched record of shape (kernels,), in NumPy 64-bit floats (cast where a program takes it)."""
        return jax.tree.map(lambda *column: np.asarray(column, dtype=float), *kernels)


@runtime_checkable
class RecordedKernel(Protocol):
    """A kernel that was recorded instead of generated: launch facts as in :class:`Kernel`, numbers of one kernel.

    Whoever holds one passes it on; :mod:`dse.timing.traced` alone knows what else a recording has.
    """

    @property
    def name(self) -> str: ...
    @property
    def ctas(self) -> float: ...
    @property
    def warps(self) -> float: ...
    @property
    def registers(self) -> float: ...
    @property
    def shared_kib(self) -> float: ...
    @property
    def launches(self) -> float: ...
    @property
    def compute_capability(self) -> float: ...
    @property
    def fma(self) -> float: ...
    @property
    def tensor_types(self) -> set[str]: ...
    @property
    def busiest_tensor_type(self) -> str | None: ...

    def arrays(self) -> Iterator[np.ndarray]:
        """Return every array that decides its results, for a hash."""
        ...


AnyKernel: TypeAlias = Kernel | RecordedKernel
"""A kernel of either sort: what a launch needs to know is the same of both."""

"""The record of what a kernel demands, as independent of the GPU as it can be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from dse.base.brief import brief
from dse.hardware.data_types import TENSOR_DTYPES

Number: TypeAlias = Any
"""A float while kernels are built, an array inside a program."""

ANY_NEWER = 99.0
"""A compute capability beyond all that there are."""

PROBLEM = 5
"""Numbers of a problem's size."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Interval:
    """A stretch of the representative warp's instructions that ends in at most one stall, and how often it runs.

    Counts are per warp and per repeat: ``instructions`` [warp instruction] issued in all, of which ``fp32``, ``int32``
    and ``sfu`` go to the CUDA cores; ``tensor_fma`` [FMA] done by tensor instructions; ``shared_bytes`` [B] moved
    between registers, L1 and shared memory; ``load_bytes`` and ``store_bytes`` [B] exchanged with the L2.
    ``*_waits`` count the latencies that the warp waits for: global memory, shared memory, dependent ALU, SFU and tensor
    instructions. In a loop whose loads are issued d iterations ahead, ``global_waits`` is 1/d.
    """

    repeats: Number = 0.0
    instructions: Number = 0.0
    fp32: Number = 0.0
    int32: Number = 0.0
    sfu: Number = 0.0
    tensor_fma: Number = 0.0
    shared_bytes: Number = 0.0
    load_bytes: Number = 0.0
    store_bytes: Number = 0.0
    global_waits: Number = 0.0
    shared_waits: Number = 0.0
    alu_waits: Number = 0.0
    sfu_waits: Number = 0.0
    tensor_waits: Number = 0.0


SHOWN = ("ctas", "warps", "registers", "shared_kib", "fma", "cold_bytes", "warm_bytes", "write_bytes", "l2_bytes")
"""Fields by which a kernel is told at a glance."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Kernel:
    """What one kernel launch demands; every field a scalar, or an array of shape (kernels,) in a batch.

    Grid and resources: ``ctas``; ``warps`` [warp/CTA]; ``registers`` [register/thread]; ``shared_kib`` [KiB/CTA];
    ``cluster`` [CTA] sharing multicast loads; ``launches`` of kernels (2 where a reduction kernel follows).

    Requirements: ``compute_capability`` (at least, and below ``capability_end``); ``warpgroup`` (1: needs
    warpgroup-level tensor instructions); ``unless_warpgroup_kib`` and ``unless_kib`` [KiB]: does not run where
    a kernel of its library that needs so much shared memory does, one with such instructions or any (0: none does);
    ``tensor_dtype`` (index into TENSOR_DTYPES); ``uses_tensor``;
    ``tensor_instruction_fma`` [FMA/warp instruction].

    Work of a warp: ``start`` (once, fills the pipeline), ``loop``, ``end`` (once, the epilogue); ``pipelined`` (1: the
    loop's loads are issued ahead of their use, so that everything an iteration does covers their latency).

    DRAM traffic by reuse class (:mod:`dse.workload.l2_hit_rate`): ``cold_bytes``, ``warm_bytes`` and ``write_bytes``
    [B], each with the bytes touched between two uses (``*_distance`` [B]); tiles of a wave re-read the operands ``a_bytes``
    and ``b_bytes`` [B] of a grid of ``m_tiles`` x ``n_tiles`` tiles whose aspect is ``tile_aspect`` = tile_n / tile_m,
    after ``reread_distance`` [B] touched in between. ``read_share`` [1] of what is so counted as read really passes:
    where an access is slower than a stream, its bytes count for the time they take. ``result_bytes`` [B] of those
    written are the result, the rest partial sums (0: all of them are), which is read after ``result_distance`` [B]
    (0: after ``write_distance``).
    ``l2_bytes`` [B] pass between the L2 and the SMs. ``again_bytes`` [B] are read again by the CTA that read them,
    after ``again_distance`` [B] of its own; ``serial_waits`` counts latencies of global memory that pass once in a
    launch, whatever its waves.

    CTAs of unequal length that the GPU hands out one by one (:mod:`dse.timing.schedule`): ``longest`` [1], the longest
    CTA's time over the mean CTA's (0: all alike, in waves); ``longest_first`` (1: handed out in that order, else as
    they stand in the grid, the longest of each tile last). ``copies`` of operands in kernels of their own, before or
    after this one, which move ``copied_bytes`` [B] in
    ``copied_rows``, a CTA each (of a full size).

    Between ``link_gpus`` GPUs: ``link_bytes`` [B] a GPU sends, in ``link_messages`` one after the other, to all
    others at once or (``link_ring`` 1) to its neighbour. For rooflines and reports: ``fma`` [FMA], useful
    multiply-adds, and ``fma_lanes``: 1 where they run on CUDA cores instead of tensor cores.

    ``problem``: the size of what is asked for, by which a library's own ways are known
    (:mod:`dse.timing.discrepancy`): of a plain product in 16 bits m, n, k; of attention in 16 bits the heads of all
    requests, queries, keys, head dimension, and query heads that share keys; of a vector kernel the number of its
    operator, rows, columns and bytes of an element. Zeros of anything else.

    ``implementation``: index into :data:`dse.workload.implementation.IMPLEMENTATIONS`, whose fitted costs apply.
    ``stretch``: how many times as long as a model's equations say a kernel takes, by what measurements of its problem
    left of them (:meth:`dse.timing.timing.TimingModel.told`).
    """

    start: Interval
    loop: Interval
    end: Interval
    ctas: Number = 1.0
    warps: Number = 4.0
    registers: Number = 32.0
    shared_kib: Number = 0.0
    cluster: Number = 1.0
    launches: Number = 1.0
    compute_capability: Number = 0.0
    capability_end: Number = ANY_NEWER
    warpgroup: Number = 0.0
    tensor_dtype: Number = 0.0
    uses_tensor: Number = 0.0
    tensor_instruction_fma: Number = 1.0
    pipelined: Number = 0.0
    cold_bytes: Number = 0.0
    cold_distance: Number = 1.0
    warm_bytes: Number = 0.0
    warm_distance: Number = 1.0
    write_bytes: Number = 0.0
    result_bytes: Number = 0.0
    result_distance: Number = 0.0
    write_distance: Number = 1.0
    a_bytes: Number = 0.0
    b_bytes: Number = 0.0
    m_tiles: Number = 1.0
    n_tiles: Number = 1.0
    tile_aspect: Number = 1.0
    reread_distance: Number = 1.0
    l2_bytes: Number = 0.0
    link_bytes: Number = 0.0
    link_messages: Number = 0.0
    link_gpus: Number = 1.0
    link_ring: Number = 0.0
    fma: Number = 0.0
    fma_lanes: Number = 0.0
    problem: tuple[Number, ...] = (0.0,) * PROBLEM
    implementation: Number = 0.0
    again_bytes: Number = 0.0
    again_distance: Number = 1.0
    serial_waits: Number = 0.0
    longest: Number = 0.0
    longest_first: Number = 0.0
    copies: Number = 0.0
    copied_bytes: Number = 0.0
    copied_rows: Number = 0.0
    unless_warpgroup_kib: Number = 0.0
    unless_kib: Number = 0.0
    read_share: Number = 1.0
    stretch: Number = 1.0

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

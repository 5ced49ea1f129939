"""What a kernel launch makes a GPU do: operations and bytes by component, and the time they take.

The counts come from the same record that is timed: a :class:`~dse.workload.kernel.Kernel` that was generated, or the
:class:`~dse.timing.traced.operation_counts.OperationCounts` of one that was recorded.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.units import WARP_SIZE
from dse.hardware.gpu import Gpu
from dse.timing.timing import Timing
from dse.timing.traced.operation_counts import OperationCounts
from dse.workload.kernel import Kernel

OPERAND_BYTES = constant("operand_bytes")
"""Register bytes of a CUDA-core operation of one thread: three operands read and one written, 32 bits each."""


class Activity(NamedTuple):
    """Counts of one launch on the whole GPU; scalars, or arrays of one shape in a batch.

    ``nanoseconds`` [ns] the launch takes and ``clock_ghz`` [GHz] it runs at; ``busy``: share of the SMs that have work.

    Tensor cores compute in ``tensor_dtype`` (index into TENSOR_DTYPES): ``tensor_fma`` useful ones, ``softmax_fma``
    those of loops that also take exponentials (attention: one operand is a row of probabilities), scores that a mask
    then removes among them, ``padding_fma`` those whose operands do not change: rows and columns that nobody asked for
    and masked probabilities, all zeros. All in [FMA].

    CUDA cores: ``fp32``, ``int32``, ``sfu`` [thread operation]; ``instructions`` [warp instruction] of every kind.

    Bytes [B]: ``register_bytes`` of CUDA-core operands and of what shared memory and L1 exchange with registers;
    ``shared_bytes`` through shared memory and L1 data; ``l1_bytes`` between SMs and the network on chip; ``l2_bytes``
    in and out of the L2, to both sides; ``dram_bytes``; ``link_bytes`` sent to other GPUs.
    """

    nanoseconds: Array
    clock_ghz: Array
    busy: Array
    tensor_dtype: Array
    tensor_fma: Array
    softmax_fma: Array
    padding_fma: Array
    fp32: Array
    int32: Array
    sfu: Array
    instructions: Array
    register_bytes: Array
    shared_bytes: Array
    l1_bytes: Array
    l2_bytes: Array
    dram_bytes: Array
    link_bytes: Array


def activity(kernel: Kernel, timing: Timing, gpu: Gpu) -> Activity:
    """Return the activity of one launch of a kernel on one GPU (scalars)."""
    warps = jnp.asarray(kernel.ctas) * kernel.warps

    def counted(name: str) -> Array:
        return jnp.asarray(kernel.per_warp(name)) * warps

    tensor, softmax, padding = _tensor(kernel, counted("tensor_fma"))
    threads = [WARP_SIZE * counted(name) for name in ("fp32", "int32", "sfu")]
    shared, port = counted("shared_bytes"), counted("load_bytes") + counted("store_bytes")
    return Activity(
        nanoseconds=jnp.maximum(timing.nanoseconds, 1.0),  # no launch is shorter; a batch must not divide by zero
        clock_ghz=timing.clock_ghz,
        # Not by waves: one CTA more must never draw less in the same time.
        busy=jnp.minimum(jnp.asarray(kernel.ctas) / gpu.sm_count, 1.0),
        tensor_dtype=jnp.asarray(kernel.tensor_dtype),
        tensor_fma=tensor,
        softmax_fma=softmax,
        padding_fma=padding,
        fp32=threads[0],
        int32=threads[1],
        sfu=threads[2],
        instructions=counted("instructions"),
        register_bytes=OPERAND_BYTES * sum(threads[1:], threads[0]) + shared,
        shared_bytes=shared,
        l1_bytes=port,
        l2_bytes=jnp.asarray(kernel.l2_bytes) + timing.dram_bytes,
        dram_bytes=timing.dram_bytes,
        link_bytes=jnp.asarray(kernel.link_bytes),
    )


def _tensor(kernel: Kernel, executed: Array) -> tuple[Array, Array, Array]:
    """Split the executed tensor FMAs into useful ones, useful ones of a softmax loop, and padding.

    Padded rows and columns are zeros: their multipliers hardly toggle. Scores that a mask removes are products like
    others, of a query and a key; the probabilities that they leave are zeros, as padding is. A kernel that does not say
    what is useful (``fma`` is 0) is taken to pad nothing.
    """
    stated = jnp.asarray(kernel.fma)
    useful = jnp.where(stated > 0, jnp.minimum(stated + jnp.asarray(kernel.masked_fma), executed), executed)
    in_softmax = (jnp.asarray(kernel.loop.sfu) > 0) & (jnp.asarray(kernel.loop.tensor_fma) > 0)
    return jnp.where(in_softmax, 0.0, useful), jnp.where(in_softmax, useful, 0.0), executed - useful


def with_still_operands(counts: Activity, attention: Array, others: Array) -> Activity:
    """Return the activity of launches of whose products a share has operands that do not change, as padding's do not.

    ``attention``: share of the products in loops that take exponentials, ``others``: of all others [1].
    """
    softmax, tensor = attention * counts.softmax_fma, others * counts.tensor_fma
    return counts._replace(
        softmax_fma=counts.softmax_fma - softmax,
        tensor_fma=counts.tensor_fma - tensor,
        padding_fma=counts.padding_fma + softmax + tensor,
    )


def recorded_activity(counts: OperationCounts, timing: Timing, gpu: Gpu) -> Activity:
    """Return the activity of one launch of a recorded kernel, from its counts on the whole GPU.

    Fields of ``gpu`` and ``timing`` are scalars or of shape (designs,). Padding and softmax loops cannot be told from a
    recording: every tensor FMA is a useful one.
    """
    zero = jnp.zeros_like(timing.nanoseconds)
    threads = counts.fp32 + counts.int32 + counts.sfu + counts.fp64
    return Activity(
        nanoseconds=jnp.maximum(timing.nanoseconds, 1.0),
        clock_ghz=timing.clock_ghz,
        busy=jnp.minimum(counts.ctas / gpu.sm_count, 1.0) + zero,
        tensor_dtype=counts.tensor_dtype,
        tensor_fma=counts.tensor_fma + zero,
        softmax_fma=zero,
        padding_fma=zero,
        fp32=counts.fp32 + counts.fp64 + zero,  # an FP64 operation is booked as FP32: no coefficient is known
        int32=counts.int32 + zero,
        sfu=counts.sfu + zero,
        instructions=counts.instructions + zero,
        register_bytes=OPERAND_BYTES * threads + counts.l1_bytes + zero,
        shared_bytes=counts.l1_bytes + zero,
        l1_bytes=counts.l2_bytes + zero,
        l2_bytes=counts.l2_bytes + timing.dram_bytes,
        dram_bytes=timing.dram_bytes,
        link_bytes=zero,
    )

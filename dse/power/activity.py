"""What a kernel launch makes a GPU do: operations and bytes by component, and the time they take.

The counts come from the same record that is timed: a :class:`~dse.workload.kernel.Kernel` that was generated, or a
:class:`~dse.traces.traced_kernel.TracedKernel`.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.units import WARP_SIZE
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.timing.timing import Timing
from dse.timing.traced.traced_intervals import trace_l2_bytes
from dse.traces.traced_kernel import TracedKernel
from dse.workload.kernel import Kernel

OPERAND_BYTES = constant("operand_bytes")
"""Register bytes of a CUDA-core operation of one thread: three operands read and one written, 32 bits each."""


class Activity(NamedTuple):
    """Counts of one launch on the whole GPU; scalars, or arrays of one shape in a batch.

    ``nanoseconds`` [ns] the launch takes and ``clock_ghz`` [GHz] it runs at; ``busy``: share of the SMs that have work.

    Tensor cores compute in ``tensor_dtype`` (index into TENSOR_DTYPES): ``tensor_fma`` useful ones, ``softmax_fma``
    useful ones in loops that also take exponentials (attention: one operand is a row of probabilities),
    ``padding_fma`` those of rows, columns and masked scores that nobody asked for. All in [FMA].

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

    Padded rows and columns are zeros: their multipliers hardly toggle. A kernel that does not say what is useful
    (``fma`` is 0) is taken to pad nothing.
    """
    stated = jnp.asarray(kernel.fma)
    useful = jnp.where(stated > 0, jnp.minimum(stated, executed), executed)
    in_softmax = (jnp.asarray(kernel.loop.sfu) > 0) & (jnp.asarray(kernel.loop.tensor_fma) > 0)
    return jnp.where(in_softmax, 0.0, useful), jnp.where(in_softmax, useful, 0.0), executed - useful


def traced_activity(kernel: TracedKernel, timing: Timing, gpu: Gpu) -> Activity:
    """Return the activity of one launch of a traced kernel, its warps taken as the representative one.

    Fields of ``gpu`` and ``timing`` are scalars or of shape (designs,). Padding and softmax loops cannot be told from a
    trace: every tensor FMA is a useful one. Its energy is that of the data type that does most of them.
    """
    warps = kernel.ctas * kernel.warps
    lanes = {
        name: WARP_SIZE * warps * jnp.asarray(kernel.counts[name].sum()) for name in ("fp32", "int32", "sfu", "fp64")
    }
    by_class = [kind.fma * count.sum() * warps for kind, count in zip(kernel.tensor, kernel.tensor_counts, strict=True)]
    most = kernel.tensor[int(np.argmax(by_class))].dtype if by_class else TENSOR_DTYPES[0]
    shared = jnp.asarray(kernel.counts["l1_bytes"].sum() * warps)
    l2_bytes = trace_l2_bytes(kernel, gpu)
    zero = jnp.zeros_like(timing.nanoseconds)
    threads = lanes["fp32"] + lanes["int32"] + lanes["sfu"] + lanes["fp64"]
    return Activity(
        nanoseconds=jnp.maximum(timing.nanoseconds, 1.0),
        clock_ghz=timing.clock_ghz,
        busy=jnp.minimum(kernel.ctas / gpu.sm_count, 1.0) + zero,
        tensor_dtype=jnp.asarray(TENSOR_DTYPES.index(most), float),
        tensor_fma=sum(by_class, 0.0) + zero,
        softmax_fma=zero,
        padding_fma=zero,
        fp32=lanes["fp32"] + lanes["fp64"] + zero,  # an FP64 operation is booked as FP32: no coefficient is known
        int32=lanes["int32"] + zero,
        sfu=lanes["sfu"] + zero,
        instructions=float(kernel.warp_instructions) + zero,
        register_bytes=OPERAND_BYTES * threads + shared + zero,
        shared_bytes=shared + zero,
        l1_bytes=l2_bytes + zero,
        l2_bytes=l2_bytes + timing.dram_bytes,
        dram_bytes=timing.dram_bytes,
        link_bytes=zero,
    )

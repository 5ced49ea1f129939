"""Operations and bytes of a traced kernel on the whole GPU: what a power model charges for."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.units import WARP_SIZE
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.timing.traced.traced_intervals import trace_l2_bytes
from dse.traces.traced_kernel import TracedKernel
from dse.workload.kernel import RecordedKernel


class OperationCounts(NamedTuple):
    """Counts of one launch, its warps taken as the representative one; scalars or arrays (designs,)."""

    ctas: float
    """[CTA]"""
    tensor_dtype: Array
    """Type that does most of the multiply-adds, as an index into TENSOR_DTYPES."""
    tensor_fma: Array | float
    """[FMA]"""
    fp32: Array
    """[thread operation], as are the next three."""
    int32: Array
    sfu: Array
    fp64: Array
    instructions: float
    """[warp instruction]"""
    l1_bytes: Array
    """Between registers, L1 and shared memory [B]."""
    l2_bytes: Array
    """Between SMs and L2 [B]."""


def operation_counts(kernel: RecordedKernel, gpu: Gpu) -> OperationCounts:
    """Return the counts of a traced kernel on designs; fields of ``gpu`` are scalars or of shape (designs,)."""
    assert isinstance(kernel, TracedKernel)  # the one sort of recording that there is
    warps = kernel.ctas * kernel.warps
    lanes = ("fp32", "int32", "sfu", "fp64")
    threads = {name: WARP_SIZE * warps * jnp.asarray(kernel.counts[name].sum()) for name in lanes}
    by_class = [kind.fma * count.sum() * warps for kind, count in zip(kernel.tensor, kernel.tensor_counts, strict=True)]
    return OperationCounts(
        ctas=kernel.ctas,
        tensor_dtype=jnp.asarray(TENSOR_DTYPES.index(kernel.busiest_tensor_type or TENSOR_DTYPES[0]), float),
        tensor_fma=sum(by_class, 0.0),
        **threads,
        instructions=float(kernel.warp_instructions),
        l1_bytes=jnp.asarray(kernel.counts["l1_bytes"].sum() * warps),
        l2_bytes=trace_l2_bytes(kernel, gpu),
    )

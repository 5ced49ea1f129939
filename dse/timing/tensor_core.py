"""Tensor cores: initiation interval from the opcode's FMA count, and the rate each instruction class reaches."""

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.timing.links import reachable
from dse.workload.kernel import Kernel
from dse.workload.operators.matrix_instructions import TCGEN05, WGMMA

FIXED_INTERVAL = constant("gcom_tensor_interval")
"""Initiation interval [cycle] of GCoM's tensor core, whatever the instruction and the GPU (its RTX 2060 file)."""

SLOWEST = 1e-3
"""Rate [FMA/cycle] below which a sub-core counts as having none, so that cycles stay finite in 32 bits."""

WARPGROUP_FROM, WARPGROUP_BELOW = WGMMA.compute_capability, TCGEN05.capability_end
"""Compute capabilities that have warpgroup instructions."""


def tensor_rate(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the rate TP_dt of one sub-core for this kernel's instructions [FMA/cycle]."""
    return class_rate(jnp.asarray(kernel.tensor_dtype), jnp.asarray(kernel.warpgroup), gpu)


def class_rate(index: Array, warpgroup: Array, gpu: Gpu) -> Array:
    """Return the rate TP_dt of one sub-core for a data type (of TENSOR_DTYPES) and instruction class [FMA/cycle].

    Warp-level instructions on a GPU with warpgroup ones reach only ``warp_mma_fraction`` of the rate (H100: 1365 of
    2048 FMA/cycle/SM), except in FP64, which has no warpgroup instruction.
    """
    rates = (jnp.where(index == i, gpu.tensor_fma[dtype], 0.0) for i, dtype in enumerate(TENSOR_DTYPES))
    rate = sum(rates, jnp.zeros_like(gpu.tensor_cores_per_sm))
    whole = (warpgroup > 0) | (index == TENSOR_DTYPES.index("fp64"))
    share = jnp.where(whole, 1.0, gpu.warp_mma_fraction)
    rate = rate * share * gpu.tensor_cores_per_sm / gpu.subcores_per_sm
    return jnp.where(rate < SLOWEST, 0.0, rate)


def supported(kernel: Kernel, gpu: Gpu) -> Array:
    """Return 1 where the GPU has the kernel's instructions (compute capability, class, a rate for the data type) and
    the links that its messages take."""
    tensor = jnp.asarray(kernel.uses_tensor) > 0
    has_type = jnp.logical_or(jnp.logical_not(tensor), tensor_rate(kernel, gpu) > 0)
    has_class = jnp.asarray(kernel.warpgroup) <= gpu.warpgroup_mma
    capability = gpu.compute_capability
    has_capability = (jnp.asarray(kernel.compute_capability) <= capability) & (capability < kernel.capability_end)
    has_cluster = jnp.asarray(kernel.cluster) <= gpu.cluster_size
    chosen = ~_replaced(kernel, gpu)
    can_run = has_type & has_class & has_capability & has_cluster & reachable(kernel, gpu)
    return jnp.where(can_run & chosen, 1.0, 0.0)


def _replaced(kernel: Kernel, gpu: Gpu) -> Array:
    """Whether the library has a better kernel here: with warpgroup instructions, or with larger tiles."""
    room = gpu.shared_memory_kib - gpu.shared_reserved_kib
    warpgroup, larger = jnp.asarray(kernel.unless_warpgroup_kib), jnp.asarray(kernel.unless_kib)
    has_them = (gpu.warpgroup_mma > 0) & (gpu.compute_capability >= WARPGROUP_FROM)
    has_them = has_them & (gpu.compute_capability < WARPGROUP_BELOW)
    return ((warpgroup > 0) & has_them & (room >= warpgroup)) | ((larger > 0) & (room >= larger))


def fixed_interval_rate(kernel: Kernel) -> Array:
    """Return the rate of a functional unit of fixed initiation interval, as GCoM has it [FMA/cycle]."""
    return jnp.asarray(kernel.tensor_instruction_fma) / FIXED_INTERVAL


def busy_cycles(fma: Array, rate: Array) -> Array:
    """Return the cycles that ``fma`` multiply-adds keep a tensor core busy [cycle].

    The sum of II_TC = FMA_count / TP_dt over the instructions (AMALI Eq. 25).
    """
    return safe_div(fma, rate)

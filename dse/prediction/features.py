"""Features of a kernel on a GPU: its demands as cycles of the GPU's parts, and the analytical prediction.

Demands are the same for every candidate kernel of an operator, so that a predictor does not depend on choices (tile,
split, instruction) whose meaning changes from one generation to the next.
"""

import jax.numpy as jnp
from jax import Array

from dse.base.units import KILO
from dse.hardware.gpu import Gpu
from dse.timing.tensor_core import busy_cycles, class_rate
from dse.timing.timing import Timing, kernel_clock
from dse.workload.kernel import Kernel
from dse.workload.l2_hit_rate import miss_fraction

DEMANDS = {
    "arithmetic": "multiply-adds at the peak rate of their type",
    "cold": "bytes read that are weights or keys, as far as the L2 misses, at the DRAM's bandwidth",
    "warm": "bytes read that are activations or queries, as far as the L2 misses, at the DRAM's bandwidth",
    "written": "bytes written, as far as the L2 misses, at the DRAM's bandwidth",
    "operands": "all operands once at the L2's bandwidth",
    "roofline": "the larger of arithmetic and DRAM time",
    "launch": "a thousand cycles: what every launch takes",
}
"""Feature -> meaning; each in cycles of the kernel's clock."""

ANALYTICAL = "analytical"
"""The feature that holds the analytical model's cycles."""

MODES = {
    "plain": "demands and data sheet alone",
    "analytical": "the analytical model's prediction as one more feature",
    "residual": "measured over analytical is learned",
}


def demands(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the features of DEMANDS of one kernel on one GPU [cycle], shape (features,)."""
    clock = kernel_clock(kernel, gpu)
    lanes = jnp.where(jnp.asarray(kernel.fma_lanes) > 0, gpu.fp32_lanes, _tensor_rate(kernel, gpu))
    arithmetic = busy_cycles(jnp.asarray(kernel.fma), lanes * gpu.sm_count)
    dram = clock / gpu.dram_bytes_per_ns
    out, out_distance = _result(kernel)
    used = ((kernel.cold_bytes, kernel.cold_distance), (kernel.warm_bytes, kernel.warm_distance), (out, out_distance))
    dram_cycles = [dram * count * miss_fraction(jnp.asarray(distance), gpu.l2_bytes) for count, distance in used]
    operands = operand_bytes(kernel) * clock / gpu.l2_bytes_per_ns
    roofline = jnp.maximum(arithmetic, sum(dram_cycles))
    return jnp.stack([arithmetic, *dram_cycles, operands, roofline, jnp.full_like(roofline, KILO)])


def features(kernel: Kernel, gpu: Gpu, timing: Timing) -> Array:
    """Return DEMANDS and the analytical model's cycles, shape (features + 1,)."""
    return jnp.append(demands(kernel, gpu), timing.cycles)


def _tensor_rate(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the full tensor rate of an SM for the kernel's type [FMA/cycle], whatever instructions it uses."""
    return class_rate(jnp.asarray(kernel.tensor_dtype), jnp.ones(()), gpu) * gpu.subcores_per_sm


def operand_bytes(kernel: Kernel) -> Array:
    """Return the least bytes that an operator reads and writes [B]: every operand once, no partial sums."""
    return kernel.cold_bytes + kernel.warm_bytes + _result(kernel)[0]


def _result(kernel: Kernel) -> tuple[Array, Array]:
    """Return the bytes of the result and their reuse distance [B], without the partial sums of a split."""
    whole = jnp.asarray(kernel.result_bytes)
    own = jnp.asarray(kernel.result_distance)
    distance = jnp.where(own > 0, own, kernel.write_distance)
    return jnp.where(whole > 0, whole, kernel.write_bytes), distance

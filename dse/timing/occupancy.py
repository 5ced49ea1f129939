"""How many CTAs an SM holds, and in which waves a grid runs (docs/model/timing_traced.md 2)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.numerics import ceil_div, few_floor_div, floor_div
from dse.base.units import WARP_SIZE
from dse.hardware.gpu import Gpu
from dse.workload.kernel import AnyKernel

UNLIMITED = 1e9
"""CTAs an SM could hold where a resource does not limit them: finite, since batches are compiled with fast-math."""


class Waves(NamedTuple):
    """The waves on the SM that holds the most CTAs.

    ``full`` waves of ``resident`` CTAs, then one of ``rest`` CTAs (0: none). ``full_ctas`` (a mean) and ``rest_ctas``
    run on the whole GPU in each. ``fits``: 1 where at least one CTA fits an SM.
    """

    full: Array
    resident: Array
    rest: Array
    full_ctas: Array
    rest_ctas: Array
    fits: Array


class Launch(NamedTuple):
    """What a CTA needs, where there is no kernel record yet: warps, registers a thread, shared memory [KiB]."""

    warps: Any
    registers: Any
    shared_kib: Any


class Limits(NamedTuple):
    """What an SM has, where there is no GPU record: the attributes of that name."""

    threads_per_sm: Any
    ctas_per_sm: Any
    registers_per_sm: Any
    shared_memory_kib: Any
    shared_reserved_kib: Any


def ctas_per_sm(kernel: AnyKernel | Launch, gpu: Gpu | Limits) -> Array:
    """Return how many CTAs fit an SM at once [CTA/SM]: threads, CTA slots, shared memory and registers (0: none fits).

    B = min(floor(T_max/th), B_max, floor(SH/shmem), floor(R_SM/(th 4 ceil(nregs/4)))), docs/model/timing_traced.md 2.
    """
    threads = WARP_SIZE * jnp.asarray(kernel.warps)
    registers = threads * 4.0 * jnp.ceil(jnp.asarray(kernel.registers) / 4.0)
    # In 1/8 KiB, so that both sides are whole numbers (the exact division needs them).
    shared = jnp.ceil(8.0 * (jnp.asarray(kernel.shared_kib) + gpu.shared_reserved_kib))
    by_shared = jnp.where(shared > 0, floor_div(8.0 * gpu.shared_memory_kib, jnp.maximum(shared, 1.0)), UNLIMITED)
    by_registers = floor_div(gpu.registers_per_sm, jnp.maximum(registers, 1.0))  # a trace may state none
    by_threads = floor_div(gpu.threads_per_sm, threads)
    return jnp.minimum(jnp.minimum(by_threads, gpu.ctas_per_sm), jnp.minimum(by_shared, by_registers))


def waves(kernel: AnyKernel, gpu: Gpu) -> Waves:
    """Return the waves of the SM that gets the most CTAs (docs/model/timing_amali.md 3)."""
    fit = ctas_per_sm(kernel, gpu)
    grid = jnp.asarray(kernel.ctas)
    most = ceil_div(grid, gpu.sm_count)
    resident = jnp.minimum(jnp.maximum(fit, 1.0), most)
    full = few_floor_div(most, resident)
    rest = most - full * resident
    # The SMs that get one CTA fewer leave the last wave with holes: a full wave holds the mean, so that the waves
    # together hold the grid and no more.
    rest_ctas = jnp.where(rest > 0, grid - full * resident * gpu.sm_count, 0.0)
    full_ctas = (grid - rest_ctas) / full
    return Waves(full, resident, rest, full_ctas, rest_ctas, jnp.where(fit >= 1, 1.0, 0.0))

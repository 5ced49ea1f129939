"""What memory does to a kernel: average access time, service times of a byte, and the roofline of bytes."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.numerics import safe_div
from dse.hardware.gpu import Gpu
from dse.timing.dies import Crossing, crossing
from dse.timing.occupancy import ctas_per_sm
from dse.workload.kernel import Kernel
from dse.workload.l2_hit_rate import dram_bytes, fetched_apart, own_rereads


class MemoryPath(NamedTuple):
    """Memory as one kernel sees it, in cycles of the kernel's clock.

    ``amat`` [cycle] of an L1-missing load; ``l1``, ``l2`` and ``dram`` [cycle] add up along the path; ``dram_share`` of
    the loads that miss in the L2; ``dram_bytes`` [B] as they take time, ``dram_writes`` [B] of them written (0 where
    not told apart), ``passed_bytes`` [B] as they pass; ``l2_byte`` and ``dram_byte`` [cycle/B] service times;
    ``across`` what passes between the dies of a package.
    """

    amat: Array
    l1: Array
    l2: Array
    dram: Array
    dram_share: Array
    dram_bytes: Array
    l2_byte: Array
    dram_byte: Array
    passed_bytes: Array
    dram_writes: Array | float = 0.0
    across: Crossing = Crossing()


def memory(
    kernel: Kernel,
    gpu: Gpu,
    clock_ghz: Array,
    latency_is_total: bool,
    kept: Array | float | None = None,
    streams: Array | float = 0.0,
) -> MemoryPath:
    """Return the memory terms of a generated kernel.

    Every load of a generated kernel misses the L1 (mu1 = 1: it streams), and mu2 is the conditional share of its bytes
    that misses the L2 (docs/model/timing_amali.md 12.11); a CTA's further passes find their row in the L2, or wait for
    bytes. ``kept`` and ``streams``: what survives in the L2
    between launches (:func:`dse.workload.l2_hit_rate.between_launches`).
    """
    # Concurrency as the grid allows it: CTAs that fit, not CTAs that happen to be left, so that more SMs never re-read
    # more.
    resident = gpu.sm_count * jnp.maximum(ctas_per_sm(kernel, gpu), 1.0)
    reads, writes = dram_bytes(kernel, resident, gpu.l2_bytes, kept, streams, gpu.l2_parts)
    footprint = jnp.asarray(kernel.cold_bytes + kernel.warm_bytes)
    loaded = jnp.asarray(kernel.per_warp("load_bytes") * kernel.warps * kernel.ctas)
    dram_share = jnp.clip(safe_div(reads, loaded), 0.0, 1.0)
    again = own_rereads(kernel, gpu.dram_bytes_per_ns * lone_ns(kernel, gpu, clock_ghz), gpu.l2_bytes, kept)
    terms = memory_terms(gpu, clock_ghz, footprint, dram_share, reads + writes + again, latency_is_total)
    # Without what a CTA reads again: more DRAM bandwidth brings more of that, and must not cost time.
    across = terms.across._replace(fetched=fetched_apart(kernel, resident / gpu.dies), missed=reads + writes)
    return terms._replace(
        across=across, dram_writes=writes, passed_bytes=writes + jnp.asarray(kernel.read_share) * (reads + again)
    )


def lone_ns(kernel: Kernel, gpu: Gpu, clock_ghz: Array) -> Array:
    """Return the time that a CTA alone on the GPU takes over its loop [ns]: issue, and latencies of DRAM and ALU.

    With the DRAM's bandwidth it bounds what ages a CTA's row between its passes (Little's law). More CTAs than keep the
    DRAM busy hold more, and in hardware may thrash the L2; they are taken to gain nothing and to cost nothing, so that
    more SMs never cost time.
    """
    loop = kernel.loop
    latency = gpu.l1_latency_cycles + (gpu.l2_latency_ns + gpu.dram_latency_ns) * clock_ghz
    issue = loop.instructions * jnp.asarray(kernel.warps) / (gpu.subcores_per_sm * gpu.issue_rate)
    return loop.repeats * (loop.global_waits * latency + loop.alu_waits * gpu.alu_latency_cycles + issue) / clock_ghz


def memory_terms(
    gpu: Gpu, clock_ghz: Array, footprint: Array, dram_share: Array, dram_bytes: Array, latency_is_total: bool
) -> MemoryPath:
    """Return the memory of a kernel that touches ``footprint`` [B] and moves ``dram_bytes`` [B].

    With ``latency_is_total`` the record's L2 and DRAM latencies are read end to end instead of as increments
    (docs/model/timing_amali.md 12.4).
    """
    near = gpu.l2_bytes / gpu.l2_parts
    far_share = (1.0 - 1.0 / gpu.l2_parts) * jnp.maximum(0.0, 1.0 - safe_div(near, footprint))
    across = crossing(gpu, footprint, clock_ghz)
    beyond = jnp.maximum(gpu.die_link_latency_ns - gpu.l2_far_latency_ns, 0.0)  # another die's is a far partition, too
    far = far_share * gpu.l2_far_latency_ns + across.hits * beyond
    l1 = gpu.l1_latency_cycles
    l2 = (gpu.l2_latency_ns + far) * clock_ghz
    # A load crosses once: what of the misses does not on its way to the L2 does to the DRAM.
    dram = (gpu.dram_latency_ns + (across.misses - across.hits) * beyond) * clock_ghz
    if latency_is_total:
        to_l2 = jnp.maximum(l1, l2)
        l2, dram = to_l2 - l1, jnp.maximum(dram - to_l2, 0.0)
    return MemoryPath(
        amat=l1 + l2 + dram_share * dram,  # AMAT with mu1 = 1
        l1=l1,
        l2=l2,
        dram=dram,
        dram_share=dram_share,
        dram_bytes=dram_bytes,
        l2_byte=clock_ghz / gpu.l2_bytes_per_ns,  # t_N / sigma
        dram_byte=clock_ghz / gpu.dram_bytes_per_ns,  # t_D / sigma
        passed_bytes=dram_bytes,
        across=across._replace(missed=dram_bytes),
    )

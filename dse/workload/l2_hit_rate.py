"""Where a kernel's bytes come from: DRAM traffic by reuse class and last-level cache size."""

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.workload.kernel import Kernel

RETAINED = constant("l2_retained_share")
"""Bytes that survive in the L2 until their next use, per byte of L2 (fitted to measured GEMMs of A100 and H100)."""

KEPT, CLIFF = constant("l2_kept_share"), constant("l2_cliff")
"""Law of products' operands between launches, one for all libraries, footprints and GPUs (:func:`operand_miss`)."""

LAW = 1e-3
"""Fitted shares of the L2 below this say that there is none: the law stands in its place."""


def miss_fraction(distance: Array, l2_bytes: Array) -> Array:
    """Return the share of bytes that miss in the L2 when ``distance`` bytes were touched since their last use.

    A miss-rate curve by reuse distance: all hit up to RETAINED x L2, beyond it the retained share of a footprint hits
    (hashed slices and the replacement policy keep part of a cyclic stream; strict LRU would keep none).
    """
    return jnp.maximum(0.0, 1.0 - safe_div(RETAINED * l2_bytes, distance))


def wave_rereads(kernel: Kernel, resident_ctas: Array, l2_bytes: Array) -> Array:
    """Return the bytes of A and B that later waves read from DRAM again [B].

    The ``resident_ctas`` tiles of a wave cover gm x gn tiles of the grid, as square as the tiles allow; a wave's
    columns re-read A, its rows B, as far as what is touched in between exceeds what the L2 retains.
    """
    gm, gn = _covered(kernel, resident_ctas)
    reread = kernel.a_bytes * (kernel.n_tiles / gn - 1.0) + kernel.b_bytes * (kernel.m_tiles / gm - 1.0)
    return reread * miss_fraction(jnp.asarray(kernel.reread_distance), l2_bytes)


def _covered(kernel: Kernel, resident_ctas: Array) -> tuple[Array, Array]:
    """Return the tiles along m and along n that ``resident_ctas`` neighbours cover, as square as the tiles allow."""
    group = jnp.clip(resident_ctas, 1.0, kernel.m_tiles * kernel.n_tiles)
    gm = jnp.clip(jnp.sqrt(group * kernel.tile_aspect), 1.0, jnp.minimum(group, kernel.m_tiles))
    gn = jnp.clip(group / gm, 1.0, kernel.n_tiles)
    return jnp.clip(group / gn, gm, kernel.m_tiles), gn


def fetched_apart(kernel: Kernel, resident_ctas: Array) -> Array:
    """Return the bytes that groups of ``resident_ctas`` CTAs pass to an L2 of their own [B], which reads for each once.

    Of kernels whose tiles share operands, with what is written; of others all bytes of the L2.
    """
    gm, gn = _covered(kernel, resident_ctas)
    operands = jnp.asarray(kernel.a_bytes * kernel.n_tiles / gn + kernel.b_bytes * kernel.m_tiles / gm)
    l2_bytes = jnp.asarray(kernel.l2_bytes)
    return jnp.where(operands > 0, jnp.minimum(operands + kernel.write_bytes, l2_bytes), l2_bytes)


def own_rereads(kernel: Kernel, passing_bytes: Array, l2_bytes: Array, kept: Array | float | None) -> Array:
    """Return the bytes of a CTA's further passes that come from DRAM [B]: all where ``passing_bytes`` fill the L2.

    ``passing_bytes`` [B] pass through the L2 between two passes of a CTA, and no more than all CTAs touch; ``kept`` as
    in :func:`between_launches`. What misses grows with ``passing_bytes``, not faster: twice the bandwidth, which brings
    twice the bytes meanwhile, then never costs time.
    """
    room = (RETAINED if kept is None else jnp.where(jnp.asarray(kept) < LAW, KEPT, kept)) * l2_bytes
    touched = jnp.minimum(passing_bytes, jnp.asarray(kernel.ctas) * kernel.again_distance)
    return kernel.again_bytes * jnp.minimum(1.0, safe_div(touched, room))


def operand_miss(distance: Array, l2_bytes: Array, partitions: Array | float) -> Array:
    """Return the share of a product's operand that misses when ``distance`` bytes were touched since its last use.

    1 / (1 + (KEPT L2 / partitions / distance)^CLIFF): a cliff where what was touched fills the cache. SMs of every
    partition read an operand, and each partition keeps a copy of its own (NVIDIA A100 whitepaper: a partition caches
    what its own GPCs access), so that partitions divide what the L2 holds.
    """
    return _cliff(KEPT * l2_bytes / partitions, distance, CLIFF)


def _cliff(room: Array, distance: Array, power: Array | float) -> Array:
    """1 / (1 + (room / distance)^power)."""
    fits = jnp.clip(safe_div(room, distance), 1e-4, 1e4)
    return 1.0 / (1.0 + jnp.exp(power * jnp.log(fits)))


def between_launches(
    distance: Array,
    l2_bytes: Array,
    kept: Array | float | None,
    streams: Array | float = 0.0,
    partitions: Array | float = 1.0,
) -> Array:
    """Return the share of a buffer that misses when ``distance`` bytes were touched since an earlier launch used it.

    ``kept``: below LAW the law of products (:func:`operand_miss`); None: the curve within a launch,
    :func:`miss_fraction`. Else a fitted share of the L2 beyond which nothing survives, where what misses grows with
    the square of the distance, since both the buffer's own lines and those that evict them do. ``streams``: above 0.5,
    the exponent of a cliff at ``kept`` instead, of kernels that stream through all of their buffers (fitted to measured
    vector kernels, whose lines one SM reads: partitions hold no copies of them).
    """
    if kept is None:
        return miss_fraction(distance, l2_bytes)
    room = jnp.maximum(kept, LAW) * l2_bytes
    squared = jnp.minimum(1.0, distance / room) ** 2
    fitted = jnp.where(streams > 0.5, _cliff(room, distance, streams), squared)
    return jnp.where(jnp.asarray(kept) < LAW, operand_miss(distance, l2_bytes, partitions), fitted)


def dram_bytes(
    kernel: Kernel,
    resident_ctas: Array,
    l2_bytes: Array,
    kept: Array | float | None = None,
    streams: Array | float = 0.0,
    partitions: Array | float = 1.0,
) -> tuple[Array, Array]:
    """Return the bytes a kernel reads from and writes to DRAM [B], without those of :func:`own_rereads`.

    ``resident_ctas`` CTAs run at once. ``kept``, ``streams`` and ``partitions`` of the L2 as in
    :func:`between_launches`.
    """

    def missed(distance: Array | float) -> Array:
        return between_launches(jnp.asarray(distance), l2_bytes, kept, streams, partitions)

    reads = (
        kernel.cold_bytes * missed(kernel.cold_distance)
        + kernel.warm_bytes * missed(kernel.warm_distance)
        + wave_rereads(kernel, resident_ctas, l2_bytes)
    )
    return reads, kernel.write_bytes * missed(kernel.write_distance)

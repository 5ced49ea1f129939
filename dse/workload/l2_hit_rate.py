"""Where a kernel's bytes come from: DRAM traffic by reuse class and last-level cache size."""

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.base.numerics import safe_div
from dse.workload.kernel import Kernel

RETAINED = constant("l2_retained_share")
"""Bytes that survive in the L2 until their next use, per byte of L2 (fitted to measured GEMMs of A100 and H100)."""


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
    tiles = kernel.m_tiles * kernel.n_tiles
    group = jnp.clip(resident_ctas, 1.0, tiles)
    gm = jnp.clip(jnp.sqrt(group * kernel.tile_aspect), 1.0, jnp.minimum(group, kernel.m_tiles))
    gn = jnp.clip(group / gm, 1.0, kernel.n_tiles)
    gm = jnp.clip(group / gn, gm, kernel.m_tiles)
    reread = kernel.a_bytes * (kernel.n_tiles / gn - 1.0) + kernel.b_bytes * (kernel.m_tiles / gm - 1.0)
    return reread * miss_fraction(jnp.asarray(kernel.reread_distance), l2_bytes)


def own_rereads(kernel: Kernel, passing_bytes: Array, l2_bytes: Array, kept: Array | float | None) -> Array:
    """Return the bytes of a CTA's further passes that come from DRAM [B]: all where ``passing_bytes`` fill the L2.

    ``passing_bytes`` [B] pass through the L2 between two passes of a CTA, and no more than all CTAs touch; ``kept`` as
    in :func:`between_launches`. What misses grows with ``passing_bytes``, not faster: twice the bandwidth, which brings
    twice the bytes meanwhile, then never costs time.
    """
    room = (RETAINED if kept is None else kept) * l2_bytes
    touched = jnp.minimum(passing_bytes, jnp.asarray(kernel.ctas) * kernel.again_distance)
    return kernel.again_bytes * jnp.minimum(1.0, safe_div(touched, room))


def between_launches(
    distance: Array, l2_bytes: Array, kept: Array | float | None, streams: Array | float = 0.0
) -> Array:
    """Return the share of a buffer that misses when ``distance`` bytes were touched since an earlier launch used it.

    ``kept``: share of the L2 beyond which nothing survives; what misses grows with the square of the distance, since
    both the buffer's own lines and those that evict them do (fitted to measured products, whose bytes come partly from
    the L2 well before it is full). None: the curve within a launch, :func:`miss_fraction`. ``streams``: above 0.5, the
    exponent of an S-shaped curve instead, 1 / (1 + (kept L2 / distance)^streams), of kernels that stream through all
    of their buffers (fitted to measured vector kernels).
    """
    if kept is None:
        return miss_fraction(distance, l2_bytes)
    room = kept * l2_bytes
    products = jnp.minimum(1.0, distance / room) ** 2
    fits = jnp.clip(safe_div(room, distance), 1e-4, 1e4)
    return jnp.where(streams > 0.5, 1.0 / (1.0 + jnp.exp(streams * jnp.log(fits))), products)


def dram_bytes(
    kernel: Kernel,
    resident_ctas: Array,
    l2_bytes: Array,
    kept: Array | float | None = None,
    streams: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Return the bytes a kernel reads from and writes to DRAM [B], without those of :func:`own_rereads`.

    ``resident_ctas`` CTAs run at once. ``kept`` and ``streams`` as in :func:`between_launches`.
    """
    reads = (
        kernel.cold_bytes * between_launches(jnp.asarray(kernel.cold_distance), l2_bytes, kept, streams)
        + kernel.warm_bytes * between_launches(jnp.asarray(kernel.warm_distance), l2_bytes, kept, streams)
        + wave_rereads(kernel, resident_ctas, l2_bytes)
    )
    writes = kernel.write_bytes * between_launches(jnp.asarray(kernel.write_distance), l2_bytes, kept, streams)
    return reads, writes

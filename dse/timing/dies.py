"""A package of several equal dies: what of a kernel's traffic passes between them, how long and how much later.

Ours (docs/model/timing_amali.md 9.1). Every die holds the same share of the SMs, of the L2 and of the DRAM's channels,
over which addresses are spread evenly. A die keeps copies of what its own SMs read: for a wave of tiles always, for
longer as far as its L2 has room.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.base.numerics import safe_div
from dse.hardware.gpu import Gpu

LEAST_GBS = 1e-3
"""A link's bandwidth is no less than this [GB/s]: designs of several dies without a link are refused elsewhere."""


class Crossing(NamedTuple):
    """Traffic between the dies of a package; all 0 on a GPU of one die.

    ``hits`` and ``misses`` [1]: shares of the bytes that hit and that miss in the L2 which belong to another die;
    ``byte`` [cycle/B]: service time of a byte that crosses, on links that all work at once. No more than ``fetched``
    [B] pass to the dies: what the CTAs of a wave share on one of them crosses once. ``missed`` [B] of them come from
    DRAM or go there.
    """

    hits: Array | float = 0.0
    misses: Array | float = 0.0
    byte: Array | float = 0.0
    fetched: Array | float = jnp.inf
    missed: Array | float = 0.0

    def cycles(self, l2_bytes: Array) -> Array:
        """Return the time of the links [cycle] for bytes that pass the L2 [B]."""
        hits = jnp.maximum(jnp.minimum(l2_bytes, self.fetched) - self.missed, 0.0)
        return (self.hits * hits + self.misses * self.missed) * self.byte


def crossing(gpu: Gpu, footprint: Array, clock_ghz: Array) -> Crossing:
    """Return what passes between the dies of a kernel that touches ``footprint`` [B].

    DRAM is another die's for all but one of the dies; a hit is only where the die's own L2 has no room for a copy. A
    die takes all that crosses to it over its link: reads of its SMs, and what others write to it.
    """
    others = 1.0 - 1.0 / gpu.dies
    no_room = jnp.maximum(0.0, 1.0 - safe_div(gpu.l2_bytes / gpu.dies, footprint))
    all_links = gpu.dies * jnp.maximum(gpu.die_link_gbs, LEAST_GBS)  # GB/s = B/ns
    return Crossing(hits=others * no_room, misses=others, byte=clock_ghz / all_links)

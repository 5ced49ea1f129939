"""CTAs of unequal length handed out one by one: how much longer than an even share the last of them takes."""

import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.timing.occupancy import Waves
from dse.workload.kernel import Kernel

SMEARED_IN_ORDER, SMEARED_LONGEST_FIRST = 10.0, 2.0
"""How soon unequal CTAs no longer end together (fitted to list schedules of causal tiles)."""

IN_FLIGHT, LAST_SHORT = 0.53, 0.15
"""Mean share of a CTA done when the queue runs dry, and share of the shortest CTA that shows at the end (fitted)."""


def makespan(ctas_a_slot: Array, in_waves: Array, longest: Array, longest_first: Array) -> Array:
    """Return the makespan of greedy list scheduling in mean CTA times.

    ``ctas_a_slot`` [CTA/slot], a mean, and ``in_waves``, what the slots of the busiest SM get where all CTAs are alike;
    ``longest``: the longest CTA over the mean, the shortest as far below it (tiles of queries under a causal mask).
    Equal CTAs run in waves; unequal ones in grid order end with the longest, which starts when the queue runs dry: at
    the even share less what is in flight, E[d^2]/(2 E[d]) of renewal theory; longest first, with the shortest.
    """
    longest = jnp.clip(longest, 1.0, 2.0)
    excess = longest - 1.0
    late = jnp.maximum(ctas_a_slot - 1.0, 0.0)
    in_order = 1.0 - jnp.exp(-SMEARED_IN_ORDER * excess * jnp.sqrt(excess + 1e-12) * late)
    sorted_ = 1.0 - jnp.exp(-SMEARED_LONGEST_FIRST * excess)
    smeared = jnp.where(longest_first > 0, sorted_, in_order)
    wave_end = jnp.maximum(in_waves - ctas_a_slot, 0.0)
    tail = jnp.where(longest_first > 0, LAST_SHORT * (2.0 - longest), longest - IN_FLIGHT * (1.0 + excess**2 / 3.0))
    rounds = ctas_a_slot + (1.0 - smeared) * wave_end + smeared * tail
    return jnp.where(late > 0, jnp.maximum(longest, rounds), longest)


def rounds(kernel: Kernel, gpu: Gpu, grid: Waves, tail: Array | float) -> Array:
    """Return how many times the busiest SM runs its resident CTAs of mean length; ``tail``: share of the uneven end.

    0 for kernels whose CTAs are all alike, which run in waves.
    """
    share = jnp.asarray(kernel.ctas) / (gpu.sm_count * grid.resident)
    in_waves = grid.full + grid.rest / grid.resident
    whole = makespan(share, in_waves, jnp.asarray(kernel.longest), jnp.asarray(kernel.longest_first))
    return jnp.where(jnp.asarray(kernel.longest) > 0, share + tail * (whole - share), 0.0)

"""CTAs on the busiest SM: in waves where all are alike, handed out one by one where they are of unequal length."""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.hardware.gpu import Gpu
from dse.timing.interval import IntervalCycles
from dse.timing.occupancy import Waves
from dse.workload.kernel import Interval, Kernel

SMEARED_IN_ORDER, SMEARED_LONGEST_FIRST = constant("smeared_in_order"), constant("smeared_longest_first")
"""How soon unequal CTAs no longer end together (fitted to list schedules of causal tiles)."""

IN_FLIGHT, LAST_SHORT = constant("in_flight_share"), constant("last_short_share")
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


def fair_issue(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the issue cycles of a sub-core that has its fair share of a kernel's instructions [cycle]."""
    issued = kernel.ctas * kernel.warps * kernel.per_warp("instructions") / gpu.issue_rate
    return issued / (gpu.sm_count * gpu.subcores_per_sm)


def busiest_sm(
    kernel: Kernel,
    grid: Waves,
    uneven: Array,
    alone: Array | float,
    wave: Callable[[Kernel, Array, Array], IntervalCycles],
) -> IntervalCycles:
    """Return the cycles of the busiest SM: full waves, then the rest, C = F Cyc(full) + Cyc(rest).

    ``wave(kernel, ctas, all_ctas)`` returns those of one wave of ``ctas`` CTAs on this SM and ``all_ctas`` on the GPU
    (docs/model/timing_amali.md 3).
    CTAs of unequal length, handed out one by one, take ``uneven`` rounds (:func:`rounds`) of full SMs instead, and at
    least as long as the longest of them alone; ``alone``: a lone CTA's loop relative to its pipes' time.
    """
    listed = jnp.asarray(kernel.longest) > 0
    in_flight = jnp.where(listed, kernel.ctas / jnp.maximum(uneven, 1e-6), grid.full_ctas)  # a mean over the rounds
    full = wave(kernel, grid.resident, in_flight)
    last = replace(kernel, loop=_longest(kernel, alone, listed))
    ctas = jnp.where(listed, 1.0, grid.rest)
    all_ctas = jnp.where(listed, 1.0, grid.rest_ctas)  # what others load is in the bytes' time
    rest = wave(last, ctas, all_ctas).scaled(jnp.where(grid.rest > 0, 1.0, listed * 1.0))
    full = full.scaled(jnp.where(listed, uneven, grid.full))
    even = listed & (full.total >= rest.total)
    return full.scaled(jnp.where(even | ~listed, 1.0, 0.0)) + rest.scaled(jnp.where(even, 0.0, 1.0))


def _longest(kernel: Kernel, alone: Array | float, listed: Array) -> Interval:
    """The loop of the longest CTA where lengths differ: with its own start and end, it takes ``longest`` times the
    mean; at the pace of a lone CTA."""
    mean = jnp.asarray(kernel.loop.repeats)
    repeats = jnp.maximum(kernel.longest * (mean + 1.0) - 1.0, mean) * alone
    return replace(kernel.loop, repeats=jnp.where(listed, repeats, mean))

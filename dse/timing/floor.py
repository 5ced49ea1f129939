"""Roofline under an interval model: C >= bytes / bandwidth, of DRAM and of the L2 (docs/model/timing_amali.md 9)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.timing.interval import IntervalCycles


class Floored(NamedTuple):
    """Cycles of an SM and its bytes [cycle]: ``visible`` by cause, and the waiting for bytes of ``dram`` and ``l2``, of
    which one is 0; ``beside`` of the waiting comes on top of work and bytes, whichever is longer."""

    visible: IntervalCycles
    dram: Array
    l2: Array
    beside: Array


def floored(cycles: IntervalCycles, dram: Array, l2: Array, beside: Array) -> Floored:
    """Return the cycles of an SM beside the time of its bytes of ``dram`` and ``l2`` [cycle].

    Where the bytes bind, warps wait for bytes: every other stall happens in that shadow, and mending it would gain
    nothing, so all but the issue cycles is booked under the bandwidth that binds. ``beside`` [cycle] of the waiting
    comes on top, since work and bytes overlap imperfectly.
    """
    floor = jnp.maximum(dram, l2)
    binds = floor > cycles.total
    waiting = jnp.where(binds, floor - cycles.issue, 0.0) + beside
    visible = cycles.scaled(jnp.where(binds, 0.0, 1.0))._replace(issue=cycles.issue)
    return Floored(visible, jnp.where(dram >= l2, waiting, 0.0), jnp.where(dram >= l2, 0.0, waiting), beside)

"""Roofline under an interval model: C >= bytes / bandwidth: DRAM, L2, between dies (docs/model/timing_amali.md 9)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dse.timing.interval import Causes, IntervalCycles


class Floored(NamedTuple):
    """Cycles of an SM and its bytes [cycle], in all and by cause."""

    executed: Array  # in all: issue cycles, causes, and the waiting for bytes
    causes: Causes  # that stay visible
    dram: Array  # waiting for bytes of DRAM, 0 where the L2 binds
    l2: Array  # waiting for bytes of the L2, 0 where others bind
    link: Array  # waiting for bytes between dies, 0 where others bind
    hidden: Array  # of the SM's work while it waits for DRAM, which the stack may show a part of
    exposed: Array  # of the waiting for DRAM on top of work and bytes, whichever is longer


def floored(cycles: IntervalCycles, dram: Array, l2: Array, link: Array, loss: Array) -> Floored:
    """Return the cycles of an SM whose bytes take ``dram``, ``l2`` and between dies ``link`` [cycle].

    Where the bytes bind, warps wait for bytes: every other stall happens in that shadow, and mending it would gain
    nothing, so all but the issue cycles is booked under the bandwidth that binds. ``loss`` [cycle] of the waiting comes
    on top, since work and bytes overlap imperfectly.
    """
    on_chip = jnp.maximum(l2, link)
    floor = jnp.maximum(dram, on_chip)
    binds = floor > cycles.total
    waiting = jnp.where(binds, floor - cycles.issue, 0.0) + loss
    for_dram = jnp.where(dram >= on_chip, waiting, 0.0)
    for_link = jnp.where((dram < on_chip) & (link > l2), waiting, 0.0)
    return Floored(
        executed=jnp.maximum(cycles.total, floor) + loss,
        causes=cycles.scaled(jnp.where(binds, 0.0, 1.0)).causes,
        dram=for_dram,
        l2=jnp.where((dram >= on_chip) | (link > l2), 0.0, waiting),
        link=for_link,
        # Both follow the clock, the bytes of DRAM do not.
        hidden=jnp.where(for_dram > 0, jnp.maximum(cycles.total, on_chip), 0.0),
        exposed=jnp.where(for_dram > 0, loss, 0.0),
    )

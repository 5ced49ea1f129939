"""When a warp issues and what it waits for, on a batch of designs (spec/timing.md section 5).

Here designs are batched inside, in the minor axis: the recurrence runs over a trace's segments, and each step is a few
vector operations over the designs. Mapped over designs from outside it would store a warp's times design by design,
and a step would gather them one by one (benchmarks/designs.py measures both; PAPERS.md tells why this form).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dse.workload.segments import COMPUTE, GLOBAL, SHARED, Segments

ROUNDING = 1.0 / 16
"""Stalls below this [cycle] are rounding errors of 32-bit floats: they open no interval."""

_BEFORE = -1e9


class Timeline(NamedTuple):
    """A lone warp in time; arrays of shape (S, *designs) or (*designs).

    ``stall`` [cycle] before each segment and its ``cause`` (COMPUTE, SHARED, GLOBAL) where it is positive; ``drain``
    [cycle] after the last instruction has issued until the last interval is done, with ``drain_cause``.
    ``issue_probability`` is p = I / (I + S), ``mean_instructions`` nbar = I / K of K intervals.
    """

    stall: Array
    cause: Array
    drain: Array
    drain_cause: Array
    issue_probability: Array
    mean_instructions: Array


def timeline(segments: Segments, latency: Array, *, by_operand_order: bool = False) -> Timeline:
    """Return the stalls of a warp whose rows have the given ``latency`` [cycle], shape (rows, *designs).

    A stall's cause is that of the operand that is done last, ties going to global, then shared memory (spec section 10,
    item 17); ``by_operand_order`` labels it as GCoM's code does: global memory where such an operand stands at or
    after the first that is late.
    """
    designs = latency.shape[1:]
    inputs = {
        "advance": jnp.asarray([1, *segments.count[:-1]], latency.dtype),
        "slot": jnp.asarray(segments.slot),
        "offset": jnp.asarray(segments.offset, latency.dtype),
        "row": jnp.asarray(segments.row),
        "cause": jnp.asarray(segments.cause),
        "write": jnp.asarray(segments.write),
        "finish_offset": jnp.asarray(segments.finish_offset, latency.dtype),
        "finish_row": jnp.asarray(segments.finish_row),
        "finish_cause": jnp.asarray(segments.finish_cause),
    }
    label = _in_operand_order if by_operand_order else _largest

    def step(carry, x):
        before, times, ends = carry
        ready = before + x["advance"]  # t_{i-1} + 1
        done = [times[x["slot"][o]] + x["offset"][o] + latency[x["row"][o]] for o in range(segments.slot.shape[1])]
        t = ready
        for d in done:
            t = jnp.maximum(t, d)
        stall = jnp.where(t - ready > ROUNDING, t - ready, 0.0)
        cause = label(done, x["cause"], ready)
        times = times.at[x["write"]].set(t)
        here = _ends(t, latency, x)
        ends = tuple(jnp.where(stall > 0, new, jnp.maximum(old, new)) for old, new in zip(ends, here, strict=True))
        return (t, times, ends), (stall, cause)

    start = jnp.zeros(designs, latency.dtype)
    times = jnp.full((segments.slots, *designs), _BEFORE, latency.dtype)
    never = jnp.full(designs, _BEFORE, latency.dtype)
    (t, _, ends), (stall, cause) = jax.lax.scan(step, (start, times, (never, never, never)), inputs)
    last = t + float(segments.count[-1])  # a cycle after the last instruction has issued
    end = jnp.maximum(ends[COMPUTE], jnp.maximum(ends[SHARED], ends[GLOBAL]))
    drain = jnp.maximum(end - last, 0.0)
    drain_cause = jnp.where(ends[GLOBAL] >= end, GLOBAL, jnp.where(ends[SHARED] >= end, SHARED, COMPUTE))
    issued = float(segments.instructions)
    intervals = 1.0 + jnp.sum(stall > 0, axis=0)
    return Timeline(
        stall, cause, drain, drain_cause, issued / (issued + jnp.sum(stall, axis=0) + drain), issued / intervals
    )


def _largest(done: list[Array], cause: Array, ready: Array) -> Array:
    """Cause of the operand that is done last."""
    latest, label = ready, jnp.zeros(ready.shape, cause.dtype)
    for o, d in enumerate(done):
        wins = (d > latest) | ((d == latest) & (cause[o] > label))
        latest, label = jnp.maximum(latest, d), jnp.where(wins, cause[o], label)
    return label


def _in_operand_order(done: list[Array], cause: Array, ready: Array) -> Array:
    """GLOBAL where the running t is late already when an operand of global memory comes, else COMPUTE."""
    running, flagged = ready, jnp.zeros(ready.shape, bool)
    for o, d in enumerate(done):
        running = jnp.maximum(running, d)
        flagged = flagged | ((running > ready) & (cause[o] == GLOBAL))
    return jnp.where(flagged, GLOBAL, COMPUTE)


def _ends(t: Array, latency: Array, x: dict[str, Array]) -> tuple[Array, Array, Array]:
    """When the segment's instructions are done, by cause."""
    ends = [jnp.full_like(t, _BEFORE)] * 3
    for d in range(x["finish_row"].shape[0]):
        done = t + x["finish_offset"][d] + latency[x["finish_row"][d]]
        for c in (COMPUTE, SHARED, GLOBAL):
            ends[c] = jnp.where(x["finish_cause"][d] == c, jnp.maximum(ends[c], done), ends[c])
    return ends[0], ends[1], ends[2]

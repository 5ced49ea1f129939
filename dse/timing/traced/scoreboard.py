"""When a warp issues and what it waits for, on a batch of designs (docs/model/timing_traced.md 5).

Here designs are batched inside, in the minor axis: the recurrence runs over a trace's segments, and each step is a few
vector operations over the designs. Mapped over designs from outside it would store a warp's times design by design,
and a step would gather them one by one (benchmarks/designs.py measures both; PAPERS.md tells why this form).
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.traces.segments import COMPUTE, GLOBAL, SHARED, Segments

State = TypeVar("State")

NEVER_CYCLE = -1e9
"""A time before any [cycle]: finite, so that fast-math may add to it."""


class Lone(NamedTuple):
    """A lone warp in time, arrays of shape (*designs,).

    ``stalled`` [cycle] before its instructions; ``drain`` [cycle] after the last one has issued until the last interval
    is done, of ``drain_cause`` (COMPUTE, SHARED, GLOBAL); ``intervals``: how many, each but the last closed by a stall.
    """

    stalled: Array
    drain: Array
    drain_cause: Array
    intervals: Array
    instructions: float

    @property
    def issue_probability(self) -> Array:
        """p = I / (I + S)."""
        return self.instructions / (self.instructions + self.stalled + self.drain)

    @property
    def mean_instructions(self) -> Array:
        """Nbar = I / K of K intervals."""
        return self.instructions / self.intervals


def rounding(dtype: Any) -> float:
    """Return the share of a time up to which a difference is the rounding error of a float: it opens no interval."""
    return 32.0 * float(jnp.finfo(dtype).eps)


def lone_warp(segments: Segments, latency: Array) -> Lone:
    """Return what a warp's time is made of; ``latency`` [cycle] of each row, shape (rows, *designs)."""
    end, closed = walk(segments, latency, jnp.zeros_like(latency[0]), lambda n, stall, _, __: n + (stall > 0))
    last, stalled = segments.last, end.stalled
    # Nothing stalls within the last interval: whatever it holds was issued when the warp had stalled as long as ever.
    dones = [(int(c), end.done_after(k, latency)) for k, c in enumerate(last.cause)]
    never = jnp.full_like(stalled, NEVER_CYCLE)
    after = {c: reduce(jnp.maximum, [d for cause, d in dones if cause == c], never) for c in (COMPUTE, SHARED, GLOBAL)}
    return lone(stalled, after, 1.0 + closed, float(segments.instructions))


def lone(stalled: Array, after: dict[int, Array], intervals: Array, instructions: float) -> Lone:
    """Return the record of a warp whose last interval is done ``after`` [cycle] its last instruction, by cause."""
    end = jnp.maximum(after[COMPUTE], jnp.maximum(after[SHARED], after[GLOBAL]))
    cause = jnp.where(after[GLOBAL] >= end, GLOBAL, jnp.where(after[SHARED] >= end, SHARED, COMPUTE))
    return Lone(stalled, jnp.maximum(end, 0.0), cause, intervals, instructions)


class End(NamedTuple):
    """The end of a walk: cycles stalled in all [cycle], and U by slot."""

    segments: Segments
    stalled: Array
    times: Array

    def done_after(self, pair: int, latency: Array) -> Array:
        """Return when the last instruction of a pair of row and cause is done [cycle] after the warp's last has issued,
        if it is in the last interval."""
        last = self.segments.last
        late = float(last.instruction[pair] - self.segments.instructions) + latency[int(last.row[pair])]
        return jnp.where(self.times[int(last.slot[pair])] >= self.stalled, late, NEVER_CYCLE)


def walk(
    segments: Segments,
    latency: Array,
    state: State,
    follow: Callable[[State, Array, Array, Any], State],
    values: Any = None,
    *,
    by_operand_order: bool = False,
) -> tuple[End, State]:
    """Return the end of a warp's instructions, and ``state`` after ``follow(state, stall, cause, value)`` of each
    segment: the cycles it stalls, what for (COMPUTE, SHARED, GLOBAL), and its entry of ``values``, arrays [S, ...].

    A stall's cause is that of the operand that is done last, ties going to global, then shared memory
    (docs/model/timing_amali.md 12.17); ``by_operand_order`` labels it as GCoM's code does: global memory where such an
    operand stands at or after the first that is late.
    """
    operands = range(segments.slot.shape[1])
    places = [_unsigned(segments.slot[:, o]) for o in operands], [_unsigned(segments.row[:, o]) for o in operands]
    floats = [
        [jnp.asarray(table[:, o], latency.dtype) for o in operands] for table in (segments.offset, segments.cause)
    ]
    negligible = rounding(latency.dtype)
    label = _in_operand_order if by_operand_order else _of_the_last

    def step(carry: Any, x: Any) -> tuple[Any, None]:
        before, times, state = carry
        (slots, rows), (offsets, causes), write, value = x
        done = [_at(times, slots[o]) + (offsets[o] + _at(latency, rows[o])) for o in operands]
        late = reduce(jnp.maximum, done, before)
        here = jnp.where(late - before > negligible * jnp.maximum(late, 1.0), late, before)
        state = follow(state, here - before, label(done, causes, before), value)
        return (here, lax.dynamic_update_index_in_dim(times, here, write, 0), state), None

    start = jnp.zeros_like(latency[0])
    times = jnp.full((segments.slots, *start.shape), NEVER_CYCLE, latency.dtype)
    given = places, floats, _unsigned(segments.write), values
    (stalled, times, state), _ = lax.scan(step, (start, times, state), given)
    return End(segments, stalled, times), state


def _unsigned(numbers: np.ndarray) -> Array:
    """Return places that cannot be negative: a step that need not ask takes two thirds of the time."""
    return jnp.asarray(numbers, jnp.uint32)


def _at(table: Array, place: Array) -> Array:
    return lax.dynamic_index_in_dim(table, place, 0, keepdims=False)


def _of_the_last(done: list[Array], cause: list[Array], before: Array) -> Array:
    """Cause of the operand that is done last, the largest of those that only rounding tells apart."""
    late, label = reduce(jnp.maximum, done, before) * (1.0 - rounding(before.dtype)), jnp.zeros_like(before)
    for d, c in zip(done, cause, strict=True):
        label = jnp.where(d >= late, jnp.maximum(label, c), label)
    return label


def _in_operand_order(done: list[Array], cause: list[Array], before: Array) -> Array:
    """GLOBAL where the running time is late already when an operand of global memory comes, else COMPUTE."""
    running, flagged = before, jnp.zeros(before.shape, bool)
    for d, c in zip(done, cause, strict=True):
        running = jnp.maximum(running, d)
        flagged = flagged | ((running > before) & (c == GLOBAL))
    return jnp.where(flagged, float(GLOBAL), float(COMPUTE))

"""What a traced warp does on a batch of designs, by the linear forms of its patterns
(:mod:`dse.traces.latency_forms`)."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.timing.traced.scoreboard import NEVER_CYCLE, Lone, lone, rounding
from dse.traces.latency_forms import Forms, Pattern
from dse.traces.segments import COMPUTE, GLOBAL, SHARED


class WarpByForms(NamedTuple):
    """A warp by its forms, arrays (*designs,): its time, and the pattern of each design, less than 0 where none holds.

    ``latency``: what it was found for, (rows, *designs).
    """

    lone: Lone
    pattern: Array
    latency: Array

    @property
    def exact(self) -> Array:
        """Where a pattern holds."""
        return self.pattern >= 0


def by_forms(forms: Forms, latency: Array) -> WarpByForms:
    """Return a warp's time on designs whose rows have the given ``latency`` [cycle], shape (rows, *designs).

    Each design has the pattern whose least margin is the largest; where two meet, the first of them, which has no
    interval that a stall of 0 closes.
    """
    patterns = forms.patterns
    pattern = _pattern(forms, latency)
    stalled = _chosen(pattern, [_form(p.stalled, latency) for p in patterns])
    after = {c: _after(patterns, pattern, c, latency) for c in (COMPUTE, SHARED, GLOBAL)}
    intervals = _chosen(pattern, [jnp.full_like(stalled, p.intervals) for p in patterns])
    return WarpByForms(lone(stalled, after, intervals, forms.instructions), pattern, latency)


def _pattern(forms: Forms, latency: Array) -> Array:
    """Return the number of each design's pattern, or -1; on an edge between two, the first's."""
    used = np.flatnonzero(np.any([p.margins[:, :-1].any(axis=0) for p in forms.patterns], axis=0)).tolist()
    longest = reduce(jnp.maximum, [latency[row] for row in used], jnp.ones_like(latency[0]))
    negligible = rounding(latency.dtype) / 8 * longest  # a margin adds up a few latencies, not a warp's
    pattern, best = jnp.zeros_like(latency[0]), _margin(forms.patterns[0], latency)
    for number, other in enumerate(forms.patterns[1:], 1):
        here = _margin(other, latency)
        pattern, best = jnp.where(here > best + negligible, float(number), pattern), jnp.maximum(here, best)
    return jnp.where(best >= -negligible, pattern, -1.0)


def over_distinct(forms: Forms, by_form: WarpByForms, counts: Any, close: Callable[[Any, Array, Array], Any]) -> Any:
    """Return the sum of ``close(counts, stall, cause)`` over the intervals of every design: of each distinct one, as
    often as the design's pattern has it (:func:`dse.timing.traced.traced_intervals.over_intervals`)."""
    designs, like = by_form.pattern.shape, by_form.lone.stalled
    shaped = jax.tree.map(lambda x: jnp.reshape(x, (*x.shape, *(1 for _ in designs[x.ndim - 1 :]))), counts)
    one = jax.tree.map(lambda x: jnp.broadcast_to(x[0], designs).astype(like.dtype), shaped)
    none = jax.tree.map(jnp.zeros_like, jax.eval_shape(close, one, like, like))

    def step(total: Any, x: Any) -> tuple[Any, None]:
        stall, cause, repeats, here = x
        here = jax.tree.map(lambda h: jnp.broadcast_to(h, designs).astype(like.dtype), here)
        length = jnp.maximum(jnp.tensordot(stall[:-1], by_form.latency, axes=1) + stall[-1], 0.0)
        times = _chosen(by_form.pattern, list(repeats))
        cycles = close(here, length, jnp.broadcast_to(cause, designs))
        return jax.tree.map(lambda t, c: t + times * c, total, cycles), None

    tables = (forms.stall, forms.cause, forms.repeats.T)
    given = (*(jnp.asarray(table, like.dtype) for table in tables), shaped)
    return jax.lax.scan(step, none, given)[0]


def _form(coefficients: np.ndarray, latency: Array) -> Array:
    """Return the sum of latencies [cycle] times their coefficients [R + 1], the last one being cycles."""
    total = jnp.full_like(latency[0], coefficients[-1])
    for row in np.flatnonzero(coefficients[:-1]).tolist():
        times = float(coefficients[row])
        total = total - latency[row] if times == -1.0 else total + times * latency[row]
    return total


def _margin(pattern: Pattern, latency: Array) -> Array:
    """Return by how much a pattern holds [cycle]: negative where it does not."""
    margins = [_form(margin, latency) for margin in pattern.margins]
    return reduce(jnp.minimum, margins, jnp.full_like(latency[0], -NEVER_CYCLE))


def _after(patterns: tuple[Pattern, ...], pattern: Array, cause: int, latency: Array) -> Array:
    """Return when the instructions of a cause in the last interval are done [cycle after the last instruction]."""
    ends = [p.after[p.after_cause == cause] for p in patterns]
    if all(np.array_equal(end, ends[0]) for end in ends):
        ends = ends[:1]
    never = jnp.full_like(latency[0], NEVER_CYCLE)
    return _chosen(pattern, [reduce(jnp.maximum, [_form(end, latency) for end in of_one], never) for of_one in ends])


def _chosen(pattern: Array, values: list[Array]) -> Array:
    """Return each design's value among those of the patterns."""
    value = values[0]
    for number, other in enumerate(values[1:], 1):
        value = jnp.where(pattern == number, other, value)
    return value

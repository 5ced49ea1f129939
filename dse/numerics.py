"""Arithmetic that stays exact and finite in a jitted, 32-bit, fast-math batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

INFEASIBLE = 1e30
"""Cycles standing for "cannot run": finite, so that no NaN or infinity enters a batch."""

_RAMP: ContextVar[float] = ContextVar("ramp", default=0.0)


@contextmanager
def smooth_steps(ramp: float = 0.25) -> Iterator[None]:
    """Make :func:`floor_div` and :func:`ceil_div` continuous where they are traced inside: for gradients alone.

    A quotient between whole numbers leaves the lower step, or reaches the upper one, over a share ``ramp`` of the way
    (above 0, at most 1), so that a derivative sees a step before it comes. At whole numbers both stay exact.
    """
    token = _RAMP.set(ramp)
    try:
        yield
    finally:
        _RAMP.reset(token)


def _smooth_ceil(x: Array, ramp: float) -> Array:
    """The ceiling that climbs each step just above a whole number, by 3 t^2 - 2 t^3."""
    below = jnp.floor(x)
    t = jnp.minimum((x - below) / ramp, 1.0)
    return below + t * t * (3.0 - 2.0 * t)


def floor_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return floor(a / b) exactly for non-negative integers below 2**23 held as floats.

    A 32-bit quotient may land on the wrong side of an integer, and fast-math may turn the division into a
    multiplication with the reciprocal; one correction with the remainder mends both.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    if ramp := _RAMP.get():
        return -_smooth_ceil(-(a / b), ramp)
    q = jnp.floor(a / b)
    r = a - q * b
    return q + (r >= b) - (r < 0)


def ceil_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return ceil(a / b) exactly for non-negative integers below 2**23 held as floats."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    if ramp := _RAMP.get():
        return _smooth_ceil(a / b, ramp)
    q = floor_div(a, b)
    return q + (a - q * b > 0)


def safe_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return a / b, and 0 where b is 0 (with a gradient that is finite there too)."""
    b = jnp.asarray(b)
    zero = b == 0
    return jnp.where(zero, 0.0, a / jnp.where(zero, 1.0, b))


@jax.custom_jvp
def sums(terms: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the sum of each of ``terms`` over its last axis; all have one shape.

    One reduction for all of them, so that a batch runs in one loop that computes what the terms share once; derivatives
    go through plain sums.
    """
    zeros = tuple(jnp.zeros((), term.dtype) for term in terms)
    return jax.lax.reduce(
        terms, zeros, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), (terms[0].ndim - 1,)
    )


@sums.defjvp
def _sums_jvp(
    primals: tuple[tuple[Array, ...]], tangents: tuple[tuple[Array, ...]]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    return sums(*primals), tuple(jnp.sum(t, axis=-1) for t in tangents[0])

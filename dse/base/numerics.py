"""Arithmetic that stays exact and finite in a jitted, 32-bit, fast-math batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

INFEASIBLE = 1e30
"""Cycles standing for "cannot run": finite, so that no NaN or infinity enters a batch."""

_RAMP: ContextVar[float] = ContextVar("ramp", default=0.0)


def held(numbers: Any) -> Array:
    """Return plain numbers as an array of JAX's default float type; no program is compiled for it."""
    return jax.device_put(np.asarray(numbers, dtype=jnp.result_type(float)))


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
    """Return floor(a / b) exactly for non-negative integers held as floats, a below 2**23 and b up to a million.

    A 32-bit quotient may land on the wrong side of an integer, and fast-math may turn the division into a
    multiplication with the reciprocal; what the remainder holds of b mends both.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    if ramp := _RAMP.get():
        return -_smooth_ceil(-(a / b), ramp)
    q = jnp.floor(a / b)
    return q + few_floor_div(a - q * b, b)


def ceil_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return ceil(a / b) exactly for non-negative integers held as floats, a below 2**23 and b up to a million."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    if ramp := _RAMP.get():
        return _smooth_ceil(a / b, ramp)
    q = jnp.floor(a / b)
    return q + few_ceil_div(a - q * b, b)


def few_floor_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return floor(a / b) exactly for integers held as floats, a within two million of 0 and b above 0.

    Half a unit more than a is at least 1 / (2 b) away from every whole quotient, farther than 32-bit rounding reaches:
    nothing needs correction, which saves half of :func:`floor_div`'s operations.
    """
    a = jnp.asarray(a)
    return floor_div(a, b) if _RAMP.get() else jnp.floor((a + 0.5) / b)


def few_ceil_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return ceil(a / b) exactly for the numbers of :func:`few_floor_div`."""
    a = jnp.asarray(a)
    return ceil_div(a, b) if _RAMP.get() else jnp.floor((a - 0.5) / b) + 1.0


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

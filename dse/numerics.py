"""Arithmetic that stays exact and finite in a jitted, 32-bit, fast-math batch."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

INFEASIBLE = 1e30
"""Cycles standing for "cannot run": finite, so that no NaN or infinity enters a batch."""


def floor_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return floor(a / b) exactly for non-negative integers below 2**23 held as floats.

    A 32-bit quotient may land on the wrong side of an integer, and fast-math may turn the division into a
    multiplication with the reciprocal; one correction with the remainder mends both.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    q = jnp.floor(a / b)
    r = a - q * b
    return q + (r >= b) - (r < 0)


def ceil_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return ceil(a / b) exactly for non-negative integers below 2**23 held as floats."""
    a, b = jnp.asarray(a), jnp.asarray(b)
    q = floor_div(a, b)
    return q + (a - q * b > 0)


def safe_div(a: ArrayLike, b: ArrayLike) -> Array:
    """Return a / b, and 0 where b is 0 (with a gradient that is finite there too)."""
    b = jnp.asarray(b)
    zero = b == 0
    return jnp.where(zero, 0.0, a / jnp.where(zero, 1.0, b))

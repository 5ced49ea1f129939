"""What a fit minimises: robust relative errors, and the distance from the prior."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

BEND = 0.1
"""Relative error up to which the robust loss is quadratic [1]: repeats of one kernel differ by up to 5 %."""


CORNER = 1e-4
"""Added under the root of a squared error, so that an absolute error has no corner at zero: 1 %, squared [1]."""


def relative_error(predicted: ArrayLike, measured: ArrayLike) -> Array:
    """Return predicted / measured - 1 [1]."""
    return jnp.asarray(predicted) / jnp.asarray(measured) - 1.0


def robust(error: ArrayLike, bend: float | None = BEND) -> Array:
    """Return Huber's pseudo loss of an error: e^2/2 near zero, bend |e| far from it; e^2/2 everywhere for None."""
    error = jnp.asarray(error)
    if bend is None:
        return 0.5 * error**2
    squared = (error / bend) ** 2
    return bend**2 * squared / (1.0 + jnp.sqrt(1.0 + squared))  # sqrt(1 + x) - 1 without its cancellation


def absolute(error: Array) -> Array:
    """Return the absolute value of an error, without a corner at zero."""
    return jnp.sqrt(error**2 + CORNER)


def weighted_mean(values: ArrayLike, weights: ArrayLike) -> Array:
    """Return the mean of ``values`` with ``weights``: 0 leaves a row out, a bootstrap repeats it."""
    return jnp.sum(jnp.asarray(weights) * values) / jnp.sum(jnp.asarray(weights))

"""The optax loops of every fit, and parameters that keep their bounds and orderings by construction.

This file and :mod:`dse.sweep.evaluate` are the two places that batch: here over folds, bootstrap draws and strengths
of the prior, all in one call (:func:`solve`).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dse.calibrate.loss import relative_error, robust, weighted_mean

MOST_STEPS = 1000
TOLERANCE = 1e-9
"""Norm of the gradient at which a fit has converged; objectives are of the order of 1e-3."""

CHUNK = 64
"""Fits that run side by side; neighbours in a batch should be alike."""

NEAR = 0.05
"""A start on a bound is moved off it by this part of its value: the slope of a square is zero there."""


class Ranges(NamedTuple):
    """What coefficients may be: between ``low`` and ``high``, and at least ``ratio`` times the one named by ``parent``.

    ``low``, ``high``, ``ratio`` have shape (coefficients,) [unit of the coefficient; ratio 1]; ``parent`` holds for
    each coefficient the place of another that stands before it, or -1. A coefficient is its lower end plus a square
    that saturates at ``high``, so that a bound can be reached and is never crossed.
    """

    low: Array
    high: Array
    ratio: Array
    parent: tuple[int, ...]

    def values(self, theta: Array) -> Array:
        """The coefficients of free parameters of shape (coefficients,)."""
        found: list[Array] = []
        for i, parent in enumerate(self.parent):
            floor = self._floor(i, found[parent] if parent >= 0 else None)
            room = jnp.maximum(self.high[i] - floor, 0.0)
            found.append(floor + room * theta[i] ** 2 / (room + theta[i] ** 2 + 1e-30))
        return jnp.stack(found)

    def parameters(self, values: Array) -> Array:
        """Free parameters whose coefficients are ``values``, those on a lower end moved off it a little."""
        theta: list[Array] = []
        for i, parent in enumerate(self.parent):
            floor = self._floor(i, values[parent] if parent >= 0 else None)
            room = jnp.maximum(self.high[i] - floor, 0.0)
            slack = jnp.clip(values[i] - floor, NEAR * jnp.maximum(values[i], 1e-6), 0.9 * room)
            theta.append(jnp.sqrt(slack * room / (room - slack)))
        return jnp.stack(theta)

    def _floor(self, i: int, parent: Array | None) -> Array:
        return self.low[i] if parent is None else jnp.maximum(self.low[i], self.ratio[i] * parent)


class Linear(NamedTuple):
    """A model that is linear in its coefficients, with measured rows: watts = offset + design @ coefficients.

    ``design`` has shape (rows, coefficients) [W per unit of the coefficient], ``offset`` and ``measured`` (rows,) [W].
    The prior is the sum of squares of ``prior @ coefficients - center``, shapes (terms, coefficients) and (terms,).
    """

    design: Array
    offset: Array
    measured: Array
    ranges: Ranges
    prior: Array
    center: Array

    def watts(self, coefficients: Array) -> Array:
        """Predicted watts of every row, for coefficients of shape (..., coefficients)."""
        return self.offset + coefficients @ self.design.T

    def misfit(self, coefficients: Array, weights: Array, bend: float | None) -> Array:
        """Mean robust relative error of the weighted rows."""
        return weighted_mean(robust(relative_error(self.watts(coefficients), self.measured), bend), weights)

    def objective(self, coefficients: Array, weights: Array, strength: Array, bend: float | None) -> Array:
        """What is minimised: the misfit, and ``strength`` / 2 times the squared distance from the prior."""
        away = self.prior @ coefficients - self.center
        return self.misfit(coefficients, weights, bend) + 0.5 * strength * jnp.sum(away**2)


class Fitted(NamedTuple):
    """Fits of a batch: coefficients (batch, coefficients), objectives (batch,), norms of the last gradients, steps."""

    coefficients: Array
    objective: Array
    gradient: Array
    steps: Array


@partial(jax.jit, static_argnames=("bend", "parent"))
def _solve(
    problem: Linear, start: Array, weights: Array, strength: Array, bend: float | None, parent: tuple[int, ...]
) -> Fitted:
    problem = problem._replace(ranges=problem.ranges._replace(parent=parent))
    theta = problem.ranges.parameters(start)

    def one(weights: Array, strength: Array) -> Fitted:
        def objective(theta: Array) -> Array:
            return problem.objective(problem.ranges.values(theta), weights, strength, bend)

        found, value, norm, steps = quasi_newton(objective, theta)
        return Fitted(problem.ranges.values(found), value, norm, steps)

    # Vectors of CHUNK fits: each ends when its slowest fit does, and its memory stays in the cache.
    return jax.lax.map(lambda fit: one(*fit), (weights, strength), batch_size=CHUNK)


def solve(problem: Linear, start: Array, weights: Array, strength: Array, bend: float | None) -> Fitted:
    """Fit a linear model to every row of ``weights`` (batch, rows) with ``strength`` (batch,), in one compiled call."""
    held = problem._replace(ranges=problem.ranges._replace(parent=()))  # integers are no operands of a gradient
    return _solve(held, start, weights, strength, bend, problem.ranges.parent)


def quasi_newton(objective: Callable[[Array], Array], start: Array) -> tuple[Array, Array, Array, Array]:
    """Minimise with L-BFGS until the gradient's norm falls below TOLERANCE or nothing moves any more.

    Returns (parameters, objective, norm of the gradient, steps).
    """
    solver = optax.lbfgs(memory_size=20)
    evaluate = optax.value_and_grad_from_state(objective)

    def going(carry: tuple) -> Array:
        _, _, norm, steps, still = carry
        return (steps < MOST_STEPS) & (norm > TOLERANCE) & (still < 3)

    def step(carry: tuple) -> tuple:
        theta, state, _, steps, still = carry
        with jax.numpy_dtype_promotion("standard"):
            value, gradient = evaluate(theta, state=state)
            updates, state = solver.update(gradient, state, theta, value=value, grad=gradient, value_fn=objective)
            moved = theta + updates
        same = jnp.max(jnp.abs(updates)) <= 1e-14 * jnp.max(jnp.abs(theta))
        return moved, state, jnp.linalg.norm(jax.grad(objective)(moved)), steps + 1, jnp.where(same, still + 1, 0)

    carry = (start, solver.init(start), jnp.asarray(jnp.inf, start.dtype), jnp.asarray(0), jnp.asarray(0))
    theta, _, norm, steps, _ = jax.lax.while_loop(going, step, carry)
    return theta, objective(theta), norm, steps


def descend(objective: Callable[[Array], Array], start: Array, steps: int, rate: float = 0.1) -> Array:
    """Minimise with Adam in a fixed number of steps, the rate falling as a cosine: for objectives with corners."""
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def step(carry: tuple, _: None) -> tuple:
        theta, state = carry
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimiser.update(jax.grad(objective)(theta), state)
        return (theta + updates, state), None

    return jax.lax.scan(step, (start, optimiser.init(start)), length=steps)[0][0]

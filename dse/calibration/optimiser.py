"""The optax loops of every fit, and parameters that keep their bounds and orderings by construction.

:func:`solve` batches over folds, bootstrap draws and strengths of the prior, all in one call.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import quick_to_compile
from dse.base.extras import extra
from dse.calibration.devices import shared_out
from dse.calibration.losses import relative_error, robust, weighted_mean
from dse.evaluate.platform import local_platform

with extra("calibrate", "a fit"):
    import optax


MOST_STEPS = 1000
TOLERANCE = 1e-9
"""Norm of the gradient at which a fit has converged; objectives are of the order of 1e-3."""

NEAR = 0.05
"""A start on a bound is moved off it by this part of its value: the slope of a square is zero there."""


LEAST_ROOM = 1e-12
"""What is left between the ends of a coefficient at least, so that slopes stay finite."""


class Ranges(NamedTuple):
    """What coefficients may be: between ``low`` and ``high``, and at least ``ratio`` times the one named by ``parent``.

    ``low``, ``high``, ``ratio`` have shape (coefficients,) [unit of the coefficient; ratio 1]; ``parent`` holds for
    each coefficient the place of another, or -1. A coefficient is its lower end plus a squared sine of what room is
    left: both ends can be reached, neither is crossed, and no step is lost in a flat tail (as of a sigmoid).
    """

    low: Array
    high: Array
    ratio: Array
    parent: tuple[int, ...]

    def values(self, theta: Array) -> Array:
        """The coefficients of free parameters of shape (coefficients,)."""
        found = self.low
        for _ in range(self._generations()):  # roots are final after the first, what they bound after the next
            floor = self._floor(found)
            room = jnp.maximum(self.high - floor, LEAST_ROOM)
            found = floor + room * jnp.sin(theta / jnp.sqrt(room)) ** 2  # theta^2 near the lower end
        return found

    def parameters(self, values: Array) -> Array:
        """Free parameters whose coefficients are ``values``, those on a lower end moved off it a little."""
        floor = self._floor(values)
        room = jnp.maximum(self.high - floor, LEAST_ROOM)
        slack = jnp.clip(values - floor, NEAR * jnp.maximum(values, 1e-6), 0.9 * room)
        return jnp.sqrt(room) * jnp.arcsin(jnp.sqrt(slack / room))

    def _floor(self, values: Array) -> Array:
        """Lower ends: the bound, or what the parent among ``values`` asks for."""
        parent = np.asarray(self.parent)
        return jnp.where(parent >= 0, jnp.maximum(self.low, self.ratio * values[parent]), self.low)

    def _generations(self) -> int:
        """Length of the longest chain of parents, itself included."""

        def age(i: int) -> int:
            return 1 if self.parent[i] < 0 else 1 + age(self.parent[i])

        return max(age(i) for i in range(len(self.parent)))


class LinearProblem(NamedTuple):
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


class Fits(NamedTuple):
    """Fits of a batch: coefficients (batch, coefficients), objectives (batch,), norms of the last gradients, steps."""

    coefficients: Array
    objective: Array
    gradient: Array
    steps: Array


@cache
def _compiled() -> Callable[..., Fits]:
    """Return :func:`_solve` compiled: every shape of a problem compiles anew, and longer than its fits take to run."""
    return jax.jit(_solve, static_argnames=("bend", "parent"), compiler_options=quick_to_compile())


def _solve(
    problem: LinearProblem, start: Array, weights: Array, strength: Array, bend: float | None, parent: tuple[int, ...]
) -> Fits:
    problem = problem._replace(ranges=problem.ranges._replace(parent=parent))
    theta = problem.ranges.parameters(start)

    def one(weights: Array, strength: Array) -> Fits:
        def objective(theta: Array) -> Array:
            return problem.objective(problem.ranges.values(theta), weights, strength, bend)

        found, value, norm, steps = quasi_newton(objective, theta)
        return Fits(problem.ranges.values(found), value, norm, steps)

    def fits(*batch: Array) -> Fits:
        # Vectors of some fits: each ends when its slowest fit does, and on a CPU its memory stays in the cache.
        return jax.lax.map(lambda fit: one(*fit), batch, batch_size=local_platform().fits)

    return shared_out(fits, (weights, strength))


def solve(problem: LinearProblem, start: Array, weights: Array, strength: Array, bend: float | None) -> Fits:
    """Fit a linear model to every row of ``weights`` (batch, rows) with ``strength`` (batch,), in one compiled call.

    Some run side by side (:class:`dse.evaluate.platform.Platform`), so neighbours in a batch should be alike. All
    devices of this process take some.
    """
    held = problem._replace(ranges=problem.ranges._replace(parent=()))  # integers are no operands of a gradient
    count, together = len(strength), local_platform().fits * jax.local_device_count()
    whole = np.arange(-(-count // together) * together if count > together else count) % count  # no rest of its own
    fitted = _compiled()(held, start, weights[whole], strength[whole], bend, problem.ranges.parent)
    return jax.tree.map(lambda x: x[:count], fitted)


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
        return moved, state, jnp.linalg.norm(gradient), steps + 1, jnp.where(same, still + 1, 0)

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

"""The fit: bounds and orderings by construction, the convex case against SciPy, a batch against a loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from dse.calibration.optimiser import LinearProblem, Ranges, descend, solve
from dse.evaluate.platform import CPU

PARENT = (-1, 0, 1, -1, 3, 3)
RATIO = (0.0, 0.5, 1.0, 0.0, 0.9, 0.2)


pytestmark = pytest.mark.usefixtures("in_64_bits")

TOGETHER = CPU.fits


def problem(seed: int = 0, rows: int = 12) -> LinearProblem:
    """Rows whose truth breaks some orderings and bounds, so that constraints are active at the optimum."""
    rng = np.random.default_rng(seed)
    design = rng.uniform(0, 50, (rows, 6)) * (rng.uniform(size=(rows, 6)) < 0.7)
    truth = np.array([2.0, 0.2, 3.0, 0.0, 1.0, 8.0])
    watts = 60 + design @ truth + rng.normal(0, 3, rows)
    ranges = Ranges(jnp.full(6, 1e-3), jnp.full(6, 5.0), jnp.asarray(RATIO), PARENT)
    arrays = (jnp.asarray(x) for x in (design, np.full(rows, 60.0), watts))
    return LinearProblem(*arrays, ranges, jnp.eye(6), jnp.ones(6))


def optimum(p: LinearProblem, weights: np.ndarray, strength: float, bend: float | None):
    """The constrained optimum by SciPy in the coefficients themselves."""
    value = jax.jit(lambda x: p.objective(x, jnp.asarray(weights), jnp.asarray(strength), bend))
    slope, curvature = jax.jit(jax.grad(value)), jax.jit(jax.hessian(value))
    order = np.zeros((6, 6))
    for i, parent in enumerate(PARENT):
        if parent >= 0:
            order[i, i], order[i, parent] = 1.0, -RATIO[i]
    found = optimize.minimize(
        lambda x: 1e3 * float(value(x)),
        np.ones(6),
        jac=lambda x: 1e3 * np.asarray(slope(x)),
        hess=lambda x: 1e3 * np.asarray(curvature(x)),
        method="trust-constr",
        bounds=optimize.Bounds(1e-3, 5.0),
        constraints=optimize.LinearConstraint(order, 0.0, np.inf),
        options={"gtol": 1e-10, "xtol": 1e-14, "barrier_tol": 1e-12, "maxiter": 3000},
    )
    assert found.constr_violation < 1e-9
    return found.x, float(value(found.x))


@pytest.mark.parametrize("bend", [None, 0.1])
@pytest.mark.parametrize("strength", [1e-4, 1e-2])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_convex_case_is_the_programmes_optimum(seed, strength, bend):
    p, weights = problem(seed), np.ones(12)
    ours = solve(p, jnp.ones(6), jnp.asarray(weights)[None], jnp.asarray([strength]), bend)
    theirs, value = optimum(p, weights, strength, bend)
    assert float(ours.objective[0]) <= value * (1 + 1e-6)
    np.testing.assert_allclose(p.watts(ours.coefficients[0]), p.watts(jnp.asarray(theirs)), rtol=1e-4)


def test_constraints_are_active_at_some_of_these_optima():
    theirs, _ = optimum(problem(), np.ones(12), 1e-4, None)
    low = np.array([RATIO[i] * theirs[q] if q >= 0 else 1e-3 for i, q in enumerate(PARENT)])
    assert np.sum(np.isclose(theirs, low, atol=1e-5) | np.isclose(theirs, 5.0)) >= 1


def test_ranges_hold_for_any_parameters():
    ranges = problem().ranges
    theta = jnp.asarray(np.random.default_rng(0).normal(0, 30, (500, 6)))
    values = np.asarray(jax.vmap(ranges.values)(theta))
    assert (values >= 1e-3 - 1e-12).all()
    assert (values <= 5.0 + 1e-12).all()
    for i, parent in enumerate(PARENT):
        if parent >= 0:
            assert (values[:, i] >= np.asarray(RATIO[i]) * values[:, parent] - 1e-12).all()


def test_parameters_are_the_way_back():
    ranges = problem().ranges
    inside = jnp.asarray([1.0, 1.2, 2.0, 0.5, 0.9, 3.0])
    np.testing.assert_allclose(ranges.values(ranges.parameters(inside)), inside, rtol=1e-9)


@pytest.mark.slow
def test_a_batch_is_its_fits_one_by_one():
    """More fits than a chunk, so that padding is tested too; weight 0 is a row that is not there."""
    p = problem()
    weights = np.random.default_rng(1).integers(0, 3, (TOGETHER + 3, 12)).astype(float) + np.eye(TOGETHER + 3, 12)
    batch = solve(p, jnp.ones(6), jnp.asarray(weights), jnp.full(TOGETHER + 3, 1e-2), 0.1)
    assert batch.coefficients.shape == (TOGETHER + 3, 6)
    for i in (0, TOGETHER - 1, TOGETHER + 2):
        keep = weights[i] > 0
        alone = p._replace(design=p.design[keep], offset=p.offset[keep], measured=p.measured[keep])
        one = solve(alone, jnp.ones(6), jnp.asarray(weights[i][keep])[None], jnp.asarray([1e-2]), 0.1)
        np.testing.assert_allclose(batch.coefficients[i], one.coefficients[0], rtol=1e-4)


def test_a_strong_prior_is_the_answer_and_gradients_vanish():
    p = problem()
    found = solve(p, jnp.ones(6), jnp.ones((1, 12)), jnp.asarray([1e6]), None)
    np.testing.assert_allclose(found.coefficients[0], 1.0, atol=1e-4)


def test_adam_finds_a_corner():
    found = descend(lambda x: jnp.sum(jnp.sqrt((x - 2.0) ** 2 + 1e-8)), jnp.zeros(3), 500)
    np.testing.assert_allclose(found, 2.0, atol=1e-3)

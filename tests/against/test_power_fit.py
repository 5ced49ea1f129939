"""Fits of AccelWattch's coefficients to its 26 published kernels: left-out errors, the convex optimum, a calibration.

Numbers to compare with are those of an independent study of the same table (quadratic programmes, SciPy). The train
error is never the claim.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from dse.calibration.power.accelwattch_fit import fit_all, judge, multipliers
from dse.calibration.power.coefficient_file import with_multipliers
from dse.measured.table import read_kernels
from dse.power.accelwattch import AccelWattch, sheet_columns
from experiments import data
from tests.against.test_accelwattch import launches

TABLE = data.ACCELWATTCH / "volta_kernels.csv"


@cache
def kernels(variant):
    return read_kernels(TABLE, variant)


@pytest.mark.parametrize(
    ("variant", "name", "kernel_out", "benchmark_out"),
    [
        ("hw", "published", 7.46, 7.46),
        ("sass", "published", 9.23, 9.23),
        ("hw", "mean", 18.8, None),
        ("sass", "mean", 18.4, None),
    ],
)
def test_baselines_as_the_study_has_them(variant, name, kernel_out, benchmark_out):
    found = judge(name, kernels(variant))
    assert found.leave_one_kernel_out == pytest.approx(kernel_out, abs=0.05)
    if benchmark_out:
        assert found.leave_one_benchmark_out == pytest.approx(benchmark_out, abs=0.01)


@pytest.mark.parametrize(
    ("variant", "name", "study"),
    [
        ("hw", "one_scale", 7.79),
        pytest.param("sass", "one_scale", 9.07, marks=pytest.mark.slow),
        pytest.param("hw", "four_parameters", 6.92, marks=pytest.mark.slow),
    ],
)
def test_small_models_near_the_study(variant, name, study):
    """The study minimises squares, ours bends: the numbers are near, not equal."""
    assert judge(name, kernels(variant)).leave_one_benchmark_out == pytest.approx(study, abs=0.1)


@pytest.mark.slow
def test_hw_left_out_benchmarks():
    found = judge("multipliers", kernels("hw"))
    assert found.leave_one_benchmark_out <= 7.6
    assert found.strength >= 1.0  # 25 kernels do not move 20 multipliers off the published ones
    assert judge("average", kernels("hw")).leave_one_benchmark_out <= 6.9


@pytest.mark.slow
def test_sass_left_out_benchmarks():
    """The headline is inside the bar of 7.8; the study's own class stands at 7.86 (experiment 007)."""
    assert judge("ridge", kernels("sass")).leave_one_benchmark_out <= 7.9
    found = judge("multipliers", kernels("sass"))
    assert found.leave_one_benchmark_out <= 7.8
    assert found.leave_one_benchmark_out < judge("published", kernels("sass")).leave_one_benchmark_out - 1
    assert found.leave_one_benchmark_out > found.train


@pytest.mark.parametrize("variant", ["hw", pytest.param("sass", marks=pytest.mark.slow)])
def test_convex_fit_of_all_kernels_is_the_quadratic_programmes_optimum(variant):
    with jax.enable_x64(True):
        problem = multipliers(kernels(variant))
        p, weights, strength = problem.linear, jnp.ones(len(kernels(variant).watts)), jnp.asarray(1e-3)
        ours = fit_all(problem, np.asarray(weights)[None], np.array([1e-3]), None)
        value = jax.jit(lambda x: 1e3 * p.objective(x, weights, strength, None))
        slope = jax.jit(jax.grad(value))
        order = np.eye(len(problem.names))
        for i, parent in enumerate(p.ranges.parent):
            order[i, parent] -= float(p.ranges.ratio[i]) if parent >= 0 else 0.0
        bounded = np.array([q >= 0 for q in p.ranges.parent])
        curvature = np.asarray(jax.hessian(value)(jnp.ones(len(order))))
        found = optimize.minimize(
            lambda x: float(value(x)),
            np.ones(len(order)),
            jac=lambda x: np.asarray(slope(x)),
            hess=lambda x: curvature,
            method="trust-constr",
            bounds=optimize.Bounds(1e-3, 1e3),
            constraints=optimize.LinearConstraint(order[bounded], 0.0, np.inf),
            options={"gtol": 1e-10, "xtol": 1e-14, "barrier_tol": 1e-12, "maxiter": 3000},
        )
        assert found.constr_violation < 1e-9
        assert float(value(ours.coefficients[0])) <= found.fun * (1 + 1e-6)
        np.testing.assert_allclose(p.watts(ours.coefficients[0]), p.watts(jnp.asarray(found.x)), rtol=1e-4)


def test_a_calibrated_model_gives_the_fits_watts():
    """Multipliers of the sheet's columns, put into the coefficients, on the activities that the sheet came from."""
    table = kernels("hw")
    rng = np.random.default_rng(0)
    scale = {part: float(s) for part, s in zip(table.parts, rng.uniform(0.5, 2, len(table.parts)), strict=True)}
    scale |= {"IDLE_COREP": 1.0, "CONSTP": 1.0, "STATICP": 1.0}
    with jax.enable_x64(True):
        model = with_multipliers(AccelWattch.variant("hw"), scale)
        columns = jax.vmap(lambda a: sheet_columns(model.watts_by_part(a)))(launches())
    for part, watts in table.parts.items():
        np.testing.assert_allclose(columns[part], scale[part] * watts, atol=2e-3, err_msg=part)

"""Model classes: multipliers come back from noiseless watts, nothing held out leaks, intervals and data shares."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.calibration.power.accelwattch_fit import (
    COEFFICIENTS_OF,
    ORDERINGS,
    coefficients,
    judge,
    multipliers,
    ordered_energies,
)
from dse.measured.table import read_kernels
from tests.calibration.tables import TRUTH, kernel_table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read_kernels(kernel_table(tmp_path_factory.mktemp("t") / "t.csv"), "sass")


@pytest.fixture(scope="module")
def judged(table):
    return judge("multipliers", table)


def test_multipliers_come_back(table, judged):
    assert judged.leave_one_benchmark_out < 0.1
    assert judged.strength == pytest.approx(1e-5)
    fitted, condition = coefficients(judged, table, draws=20)
    for c in fitted:
        assert c.value == pytest.approx(TRUTH[c.name], rel=0.01)
        assert c.low - 1e-3 <= c.value <= c.high + 1e-3
        assert c.identified
    assert 1 <= condition < 1e4


@pytest.mark.slow
def test_a_component_that_never_runs_is_the_prior(table):
    silent = dataclasses.replace(table, parts=table.parts | {"TEXP": np.zeros(len(table.watts))})
    fitted, condition = coefficients(judge("multipliers", silent), silent, draws=5)
    last = next(c for c in fitted if c.name == "TEXP")
    assert last.value == pytest.approx(1.0, abs=1e-6)
    assert (last.identified, last.share) == (False, pytest.approx(0.0, abs=1e-9))
    assert condition == float("inf")


def test_left_out_watts_do_not_depend_on_the_left_out_label(table, judged):
    """Labels of one benchmark changed: its own held-out predictions stay, other benchmarks' move."""
    mine = np.array(table.groups) == "b3"
    poisoned = dataclasses.replace(table, watts=np.where(mine, 3 * table.watts, table.watts))
    again = judge("multipliers", poisoned)
    np.testing.assert_allclose(again.out_watts[mine], judged.out_watts[mine], rtol=1e-9)
    assert np.abs(again.out_watts[~mine] / judged.out_watts[~mine] - 1).max() > 0.01


@pytest.mark.parametrize("variant", COEFFICIENTS_OF)
def test_published_coefficients_keep_the_orderings_that_are_imposed(variant):
    energy = ordered_energies(variant)
    assert all(energy[part] >= energy[least] * (1 - 1e-3) for part, least in ORDERINGS.items())


def test_an_integer_operation_is_compared_by_half():
    """The authors' programme pinned FP32's energy of HW to half of an integer's (a clock ratio of 2 in INT_ACC)."""
    energy = ordered_energies("hw")
    assert energy["FPUP"] == pytest.approx(energy["INTP"], rel=1e-3)


def test_the_prior_is_feasible(table):
    with jax.enable_x64(True):
        linear = multipliers(table).linear
        ones = jnp.ones(linear.design.shape[1])
        np.testing.assert_array_less(linear.ranges._floor(ones), 1 + 1e-12)


def test_baselines_are_what_they_say(table):
    mean, published = judge("mean", table), judge("published", table)
    np.testing.assert_allclose(mean.watts, table.watts.mean())
    for i in range(3):
        others = np.array(table.groups) != table.groups[i]
        assert mean.out_watts[i] == pytest.approx(table.watts[others].mean())
    np.testing.assert_allclose(published.watts, sum(table.parts.values()))
    assert published.train == published.leave_one_benchmark_out
    assert judge("one_scale", table).train <= published.train

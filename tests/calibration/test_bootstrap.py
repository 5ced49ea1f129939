"""How sure a fit is: bootstrap over benchmarks."""

import numpy as np
import pytest

from dse.calibration.bootstrap import benchmark_draws, mean_interval, probability_lower


def test_bootstrap_draws_benchmarks_whole():
    weights = benchmark_draws(["a", "a", "b", "c"], 50)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    low, high = mean_interval(np.array([1.0, 1.0, 2.0, 3.0]), ["a", "a", "b", "c"])
    assert 1.0 <= low < 1.75 < high <= 3.0
    assert probability_lower(np.zeros(4), np.ones(4), ["a", "a", "b", "c"]) == 1.0


def test_the_interval_of_a_mean_is_the_95_per_cent_one_of_independent_errors():
    errors = np.random.default_rng(3).standard_normal(400)
    low, high = mean_interval(errors, [f"{number}" for number in range(400)])
    expected = 1.96 * errors.std() / 20
    assert (high - low) / 2 == pytest.approx(expected, rel=0.05)  # 90 % would be 16 % less
    assert (high + low) / 2 == pytest.approx(errors.mean(), abs=0.05 * expected)

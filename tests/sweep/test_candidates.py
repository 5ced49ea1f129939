"""The fastest candidate: the first of equals, whether rows are compared one by one or together."""

import numpy as np
import pytest

from dse.numerics import INFEASIBLE
from dse.sweep.candidates import EQUAL, UNROLLED, _fastest
from dse.workload.operator import fastest


@pytest.mark.parametrize("rows", [3, UNROLLED, UNROLLED + 1, 300])
def test_the_first_of_equals_is_chosen(rows):
    times = np.random.default_rng(rows).uniform(1, 2, (rows, 20)).astype(np.float32)
    times[rows // 2, :5] = times[:, :5].min(axis=0)
    times[-1, :5] = times[rows // 2, :5] * (1 - EQUAL / 4)  # less, but not so that it could be told
    times[:, 7] = INFEASIBLE
    place, best = (np.asarray(x) for x in _fastest(times, 10.0))
    np.testing.assert_array_equal(best, times.min(axis=0))
    np.testing.assert_array_equal(place, 10 + np.argmax(times <= times.min(axis=0) * (1 + EQUAL), axis=0))
    np.testing.assert_array_equal(place, 10 + fastest(times.T, np.array([0]), EQUAL)[:, 0])
    assert (place[:5] < 10 + rows - 1).all()

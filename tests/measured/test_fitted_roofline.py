"""A roofline with three numbers, found again from its own times."""

import numpy as np
import pytest

from dse.measured.fitted_roofline import CalibratedRoofline, fit_roofline, mean_roofline
from tests.prediction.laws import X


def test_a_calibrated_roofline_is_found_again():
    truth = CalibratedRoofline(4000.0, 0.7, 0.85)
    arithmetic, memory = X[:, 0], X[:, 1]
    found = fit_roofline(arithmetic, memory, truth(arithmetic, memory))
    assert found == pytest.approx(truth, rel=1e-3)
    assert mean_roofline([truth, CalibratedRoofline(1000.0, 0.7, 0.85)]).overhead == pytest.approx(2000)


def test_the_slower_of_the_two_takes_its_time_beside_the_overhead():
    roofline = CalibratedRoofline(overhead=3.0, compute=0.5, bandwidth=0.8)
    times = roofline(np.array([10.0, 1.0]), np.array([4.0, 40.0]))
    assert times.tolist() == [3.0 + 10.0 / 0.5, 3.0 + 40.0 / 0.8]


def test_one_row_that_is_far_off_moves_the_fit_little():
    truth = CalibratedRoofline(4000.0, 0.7, 0.85)
    measured = truth(X[:, 0], X[:, 1])
    measured[3] *= 20
    found = fit_roofline(X[:, 0], X[:, 1], measured)
    assert found[1:] == pytest.approx(truth[1:], rel=0.02)

"""What a fit minimises."""

import jax
import pytest

from dse.calibration.losses import robust

pytestmark = pytest.mark.usefixtures("in_64_bits")


def test_robust_loss_is_square_near_zero_and_linear_far_away():
    assert float(robust(1e-4)) == pytest.approx(0.5e-8, rel=1e-5)
    assert float(robust(10.0) - robust(9.0)) == pytest.approx(0.1, rel=1e-3)
    assert float(robust(3.0, None)) == 4.5
    assert float(jax.grad(robust)(0.0)) == 0.0

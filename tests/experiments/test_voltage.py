"""Voltage: what hangs on which rail, the line V(f), and constant power as the intercept of a cubic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.power.power import COMPONENTS, Power
from experiments.common.voltage import VoltageCurve, VoltageScaling, cubic_power, fit_cubic

CLOCKS = np.linspace(0.6, 1.4, 9)


pytestmark = pytest.mark.usefixtures("in_64_bits")


def ones() -> Power:
    return Power(**{name: jnp.asarray(1.0) for name in COMPONENTS})


def factors(reading: str) -> dict[str, float]:
    return {name: float(w) for name, w in VoltageScaling(reading)(ones(), 2.0).breakdown().items()}


def test_released_code_scales_even_the_board():
    expected = {name: 2.0 if name in ("static", "idle_sm") else 4.0 for name in COMPONENTS}
    assert factors("released") == expected


def test_rails_leave_board_memory_and_links_alone():
    fixed = {"constant": 1.0, "dram": 1.0, "interconnect": 1.0, "static": 2.0, "idle_sm": 2.0}
    assert factors("rails") == {name: fixed.get(name, 4.0) for name in COMPONENTS}


def test_the_reference_voltage_changes_nothing():
    for reading in ("rails", "released"):
        assert float(VoltageScaling(reading)(ones(), 1.0).watts) == len(COMPONENTS)


def test_an_unknown_reading_is_refused():
    with pytest.raises(InputError, match="released"):
        VoltageScaling("relased")  # type: ignore[arg-type]


def test_voltage_over_clock():
    curve = VoltageCurve(0.8, 0.7, 1.6, 1.1)
    assert np.asarray(curve(np.array([0.5, 0.8, 1.2, 1.6, 2.0]))) == pytest.approx([0.7, 0.7, 0.9, 1.1, 1.3])


def test_gradients_of_voltage_and_clock():
    curve = VoltageCurve(0.8, 0.7, 1.6, 1.1)

    def watts(clock):
        return VoltageScaling("rails")(ones(), curve(clock) / 0.9).watts

    for clock in (0.6, 1.0, 1.5, 1.9):
        step = 1e-6
        theirs = (watts(clock + step) - watts(clock - step)) / (2 * step)
        assert float(jax.grad(watts)(clock)) == pytest.approx(float(theirs), rel=1e-6, abs=1e-8)


def test_the_cubic_finds_what_made_the_powers():
    cubic, linear, constant = np.array([60.0, 20.0, 0.5]), np.array([27.3, 10.0, 1.5]), 32.5
    made = cubic_power(CLOCKS, cubic[:, None], linear[:, None], constant)
    fit = fit_cubic(CLOCKS, made)
    np.testing.assert_allclose(fit.cubic, cubic, rtol=1e-8)
    np.testing.assert_allclose(fit.linear, linear, rtol=1e-8)
    assert float(fit.constant) == pytest.approx(constant, rel=1e-9)
    assert float(fit.pearson) == pytest.approx(1.0)
    np.testing.assert_allclose(fit(CLOCKS), made, rtol=1e-9)
    np.testing.assert_allclose(fit.static_power(1.417)[0], 38.68, atol=0.01)


def test_one_kernel_alone_and_noise():
    rng = np.random.default_rng(1)
    made = cubic_power(CLOCKS, 40.0, 20.0, 32.5)
    noisy = np.asarray(made) * (1 + 0.002 * rng.standard_normal((40, CLOCKS.size)))
    common = fit_cubic(CLOCKS, noisy)
    assert float(common.constant) == pytest.approx(32.5, abs=0.5)
    assert abs(float(fit_cubic(CLOCKS, noisy[0]).constant) - 32.5) < 5


@pytest.mark.parametrize("clocks", [[1.0, 1.2], [1.0, 1.0, 1.2], [1.0, 1.1, 1.2, 1.3]])
def test_too_few_clocks_are_refused(clocks):
    with pytest.raises(InputError, match="three different clocks"):
        fit_cubic(clocks, np.ones((2, 3)))

"""Intervals of products and of inverses, by hand and by draws."""

import math

import numpy as np
import pytest

from dse.base.error_interval import SHARE, ErrorInterval, ends_with_factor

TIME = ErrorInterval(0.5, 2.0, "times", ("h100_sxm",), anywhere=True)
WATTS = ErrorInterval(0.8, 1.25, "watts", ("a100_sxm_80gb",))


def test_a_certain_factor_changes_nothing() -> None:
    product = TIME.times(ErrorInterval(1.0, 1.0, "exact"))
    assert (product.low, product.high) == pytest.approx((TIME.low, TIME.high))


def test_widths_add_up_as_squares_on_logarithms() -> None:
    product = TIME.times(WATTS)
    half = math.hypot(math.log(2.0), math.log(1.25))
    assert (product.low, product.high) == pytest.approx((math.exp(-half), math.exp(half)))


def test_what_is_off_to_one_side_stays_off() -> None:
    slower = ErrorInterval(1.1, 1.1, "always a tenth slower")
    assert TIME.times(slower).low == pytest.approx(1.1 * TIME.low)
    assert TIME.times(slower).high == pytest.approx(1.1 * TIME.high)


def test_the_product_of_normal_errors_lies_within_as_often() -> None:
    rng = np.random.default_rng(0)
    product = TIME.times(WATTS)
    quantile = 1.2815515655446004  # of a normal distribution: SHARE lies within so many deviations
    draws = [np.exp(rng.normal(0.0, math.log(one.high) / quantile, 100_000)) for one in (TIME, WATTS)]
    inside = (product.low <= draws[0] * draws[1]) & (draws[0] * draws[1] <= product.high)
    assert inside.mean() == pytest.approx(SHARE, abs=0.005)


def test_who_was_measured_and_where_it_holds_come_from_both() -> None:
    product = TIME.times(WATTS)
    assert product.gpus == ("h100_sxm", "a100_sxm_80gb")
    assert product.source == "times; watts"
    assert not product.anywhere
    assert TIME.times(TIME).anywhere


def test_the_inverse_swaps_the_ends_and_is_its_own() -> None:
    skewed = ErrorInterval(0.8, 2.0, "times")
    assert (skewed.of_inverse().low, skewed.of_inverse().high) == (0.5, 1.25)
    assert skewed.of_inverse().of_inverse() == skewed


def test_a_factor_that_is_sure_widens_nothing() -> None:
    for low, high in ((0.5, 2.0), (1.1, 1.4), (0.6, 0.9)):  # about 1, above it, below it
        wider = ErrorInterval(low, high, "times").with_factor(1.0, 1.0)
        assert (wider.low, wider.high) == pytest.approx((low, high))


def test_one_side_of_a_factor_widens_that_side_alone_by_its_square() -> None:
    wider = TIME.with_factor(1.0, 1.5)
    assert wider.low == pytest.approx(TIME.low)
    assert wider.high == pytest.approx(math.exp(math.hypot(math.log(2.0), math.log(1.5))))


def test_both_ends_of_a_factor_lie_within() -> None:
    """Of an interval about zero: that the board throttles, and that it does not."""
    low, high = np.array([-0.3, -0.05, -0.01]), np.array([0.01, 0.05, 0.3])
    below, above = ends_with_factor(low, high, -0.2, 0.4)
    assert (below <= -0.2).all() and (above >= 0.4).all()
    assert (below <= low).all() and (above >= high).all()

"""No predicted time of a product falls by more than 1 % as it gains rows, ragged ones among them."""

import importlib

import numpy as np
import pytest

falls = importlib.import_module("experiments.012_timing_calibration.falls")

WEIGHTS = ((4096, 4096), (28672, 4096), (1024, 512))
"""(n, k): a square, one with many columns, one that launches rule."""

CALIBRATED = (
    ("a100_sxm_80gb", "aiconfigurator"),
    ("h100_sxm", "aiconfigurator"),
    ("h200", "aiconfigurator"),
    ("rtx_pro_6000", "aiconfigurator"),
    ("a100_sxm_80gb", "vidur"),
    ("h100_sxm", "vidur"),
    ("rtx_a6000", "aiconfigurator"),
    ("l40s", "aiconfigurator"),
    ("b200", "aiconfigurator"),
)
"""Preset and way of measuring; the last three have no discrepancy."""

ELSEWHERE = ((448, 1216), (20736, 271), (937, 5802), (33344, 9217), (5184, 22103), (13312, 640))
"""(n, k) of no ladder that fits see, between which times may fall a little more."""

pytestmark = pytest.mark.slow  # it reads whole tables


@pytest.mark.parametrize(("preset", "way"), CALIBRATED)
def test_no_time_falls_as_a_product_gains_rows(preset, way):
    fall, place = falls.predicted_fall(preset, way, weights=WEIGHTS)
    assert fall < falls.FALL, place


@pytest.mark.parametrize(("preset", "way"), CALIBRATED[:5])
def test_elsewhere_no_time_falls_by_two_percent(preset, way):
    fall, place = falls.predicted_fall(preset, way, weights=ELSEWHERE)
    assert fall < 2 * falls.FALL, place


@pytest.mark.parametrize(("preset", "way"), falls.PREDICTED)
def test_no_time_of_the_equations_alone_falls(preset, way):
    fall, place = falls.predicted_fall(preset, way, discrepancy=False, weights=WEIGHTS)
    assert fall < 0.2 * falls.FALL, place


def test_a_fall_is_from_the_largest_time_before():
    assert falls.largest_fall(np.array([1.0, 4.0, 3.0, 3.5, 2.0, 5.0])) == (0.5, 1, 4)
    assert falls.largest_fall(np.array([1.0, 1.0, 2.0]))[0] == 0.0

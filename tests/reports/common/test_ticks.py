"""Ticks are round and short, on axes of any size."""

import numpy as np
import pytest

from dse.reports.common.ticks import axis_range, log_axis, tick_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.3, "0.3"), (3 * 10.0**-1, "0.3"), (1500.0, "1,500"), (80000.0, "80,000"), (1e5, "100k"),
     (1.5e5, "150k"), (1.5e6, "1.5M"), (2e9, "2G"), (3e-4, "0.0003"), (2e-5, "2e-5"), (1.5e-6, "1.5e-6")],
)  # fmt: skip
def test_a_tick_is_short(value: float, text: str) -> None:
    assert tick_text(value) == text


@pytest.mark.parametrize("low", [1e-7, 0.011, 3.7, 520.0, 123456.0])
@pytest.mark.parametrize("span", [4.0, 30.0, 1e4])
def test_no_tick_of_a_logarithmic_axis_has_six_digits(low: float, span: float) -> None:
    axis = axis_range(np.array([low, low * span]))
    assert axis["type"] == "log" and 2 <= len(axis["ticktext"]) <= 8
    assert all(sum(c.isdigit() for c in text) <= 5 for text in axis["ticktext"])
    low_end, high_end = (10.0**end for end in axis["range"])
    assert low_end < low and low * span < high_end
    assert log_axis(low_end, high_end)["ticktext"] == axis["ticktext"]

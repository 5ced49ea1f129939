"""Units of time: the same rule for axes, tables and sentences."""

import pytest

from dse.reports.common.time_units import fitting_unit, row_unit


@pytest.mark.parametrize(
    ("us", "name", "text"),
    [(0.4, "us", "0.400 us"), (9999.0, "us", "9,999 us"), (12_345.0, "ms", "12.3 ms"), (1.5e6, "s", "1.50 s")],
)
def test_a_unit_fits(us, name, text):
    unit = fitting_unit(us)
    assert (unit.name, unit.text(us)) == (name, text)


def test_of_many_times_the_median_decides_and_of_a_row_the_longer():
    assert fitting_unit([1.0, 2.0, 5e6]).name == "us"
    assert fitting_unit([3e4, 2e6, 5e6]).name == "s"
    assert row_unit(9e5, 1.1e6).text(9e5) == "0.900 s"

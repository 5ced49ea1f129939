"""Numbers, units and names as a reader wants them."""

import pytest

from dse.reports.common.words import change, number, short_value, short_values, signed_percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (36.2037, "36.2"),
        (8.3567, "8.36"),
        (799.378, "799"),
        (1544.7, "1,545"),
        (0.05, "0.0500"),
        (0, "0"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_changes() -> None:
    assert change(28.1, 36.2) == "22 % less"
    assert change(36.3, 36.2) == "0.3 % more"
    assert change(1.0, 0.0) == ""
    assert signed_percent(28.1, 36.2) == "−22 %"
    assert signed_percent(36.2, 36.2) == "0.0 %"


def test_values_are_reported_with_four_digits_unless_they_would_read_alike() -> None:
    assert [short_value(v) for v in (148.59942, 60.9507, 3350.0, 1058400, 0.8990123, "tsmc_4n", True)] == [
        "148.6",
        "60.95",
        "3350",
        "1058400",
        "0.899",
        "tsmc_4n",
        "true",
    ]
    assert short_value(12345.6) == "12346"
    assert short_values([148.59942, 148.6012, 60.9507]) == ["148.5994", "148.6012", "60.95"]

"""How numbers with a sign are written: one minus sign everywhere."""

import pytest

from dse.base.error_interval import ErrorInterval
from dse.base.units import signed
from dse.evaluate.metric_error import MetricError
from dse.explanation.attribute_words import percent
from dse.reports.common.words import signed_percent


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-6.04, 1, "−6.0"), (3.06, 1, "+3.1"), (-0.04, 1, "0.0"), (0.0, 0, "0"), (-0.4, 0, "0"), (-12345.6, 0, "−12,346")],
)
def test_a_sign_is_the_typographic_one_and_zero_has_none(value: float, digits: int, text: str) -> None:
    assert signed(value, digits) == text


def test_prose_tables_and_intervals_write_the_same_minus() -> None:
    assert percent(-0.06) == "−6.0 %" == signed_percent(94.0, 100.0)
    assert MetricError(ErrorInterval(0.94, 1.2, "measured")).word == "−6 to +20 %"

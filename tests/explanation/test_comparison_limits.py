"""Conditions on compared GPUs: which one a row breaks, and what is refused."""

import pytest

from dse.base.errors import InputError
from dse.explanation.comparison_limits import broken, read_limits

METRICS = ("tbt_ms", "power_w", "usd_per_hour")


def test_the_first_condition_that_a_row_breaks_is_named() -> None:
    limits = read_limits(["tbt_ms <= 40", "power_w < 500"], METRICS)
    assert broken(limits, {"tbt_ms": 40.0, "power_w": 499.0}) == ""
    assert broken(limits, {"tbt_ms": 41.0, "power_w": 600.0}) == "tbt_ms <= 40"
    assert broken(limits, {"tbt_ms": 10.0, "power_w": 500.0}) == "power_w < 500"


def test_a_metric_that_the_workload_has_not_is_refused_with_those_it_has() -> None:
    with pytest.raises(InputError, match="has no power_w; it has tbt_ms"):
        broken(read_limits(["power_w < 500"], METRICS), {"tbt_ms": 10.0})


@pytest.mark.parametrize(
    ("text", "sentence"), [("tbt_ms", "is not a condition"), ("tbt <= 4", "did you mean 'tbt_ms'"), ("<=", "--limit")]
)
def test_what_is_no_condition_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_limits([text], METRICS)

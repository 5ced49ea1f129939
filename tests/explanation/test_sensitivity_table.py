"""What every move gives beside what its elasticity promises: agreement, order and sentences."""

import pandas as pd
import pytest

from dse.explanation.sensitivity_table import SMALLEST, TOLERANCE, TOLERANCE_SHARE, agrees, by_effect


@pytest.mark.parametrize(
    ("change", "promised", "expected"),
    [
        (0.0, TOLERANCE, True),
        (0.0, 1.1 * TOLERANCE, False),
        (0.10, 0.10 * (1 - TOLERANCE_SHARE), True),
        (0.10, 0.079, False),
        (-0.10, 0.10, False),
        (-0.10, -0.085, True),
        (0.079, 0.10, False),
    ],
)
def test_a_promise_is_kept_within_a_thousandth_or_a_fifth(change: float, promised: float, expected: bool) -> None:
    assert agrees(change, promised) is expected
    assert agrees(-change, -promised) is expected
    assert agrees(promised, change) is expected


def table(**changes: tuple[float, float, float]) -> pd.DataFrame:
    """Return rows of attributes with their changes of two times and of the energy."""
    metrics = ("ttft_ms", "tbt_ms", "energy_j")
    rows = [
        {"attribute": attribute, "metric": metric, "change": change}
        for attribute, some in changes.items()
        for metric, change in zip(metrics, some, strict=True)
    ]
    return pd.DataFrame(rows)


def order(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(by_effect(frame, ["ttft_ms", "tbt_ms", "energy_j"])["attribute"]))


def test_the_largest_change_of_any_time_comes_first_whatever_its_sign() -> None:
    frame = table(small=(0.01, 0.02, 0.5), faster=(0.0, -0.2, 0.0), slower=(0.1, 0.0, 0.0))
    assert order(frame) == ["faster", "slower", "small"]


def test_where_no_time_changes_the_energy_decides() -> None:
    noise = SMALLEST / 2
    frame = table(little=(noise, 0.0, 0.01), much=(0.0, 0.0, -0.3), none=(0.0, noise, 0.0))
    assert order(frame) == ["much", "little", "none"]


def test_the_rows_of_an_attribute_stay_together_in_the_order_of_the_metrics() -> None:
    frame = table(a=(0.1, 0.0, 0.0), b=(0.1, 0.0, 0.0)).sample(frac=1, random_state=1)
    ordered = by_effect(frame, ["ttft_ms", "tbt_ms", "energy_j"])
    assert ordered["attribute"].tolist() == ["a"] * 3 + ["b"] * 3
    assert ordered["metric"].tolist() == ["ttft_ms", "tbt_ms", "energy_j"] * 2
    assert ordered.index.tolist() == list(range(6))

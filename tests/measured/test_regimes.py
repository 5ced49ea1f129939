"""Regimes of launches by hand."""

import numpy as np
import pandas as pd

from dse.measured.regimes import LONG_US, SHORT_US, by_regime, compute_bound, regime


def test_short_launches_have_no_bound_and_long_ones_have_one() -> None:
    times = np.array([SHORT_US - 1e-6, SHORT_US, LONG_US - 1e-6, LONG_US, LONG_US, 1e6])
    found = regime(times, np.array([True, True, False, True, False, True]))
    assert found.tolist() == [
        "under_10us",
        "10_to_50us",
        "10_to_50us",
        "compute_above_50us",
        "memory_above_50us",
        "compute_above_50us",
    ]
    assert (SHORT_US, LONG_US) == (10.0, 50.0)  # as their names say


def test_what_takes_as_long_in_both_is_bound_by_arithmetic() -> None:
    table = pd.DataFrame({"compute_us": [2.0, 1.0, 1.0], "memory_us": [1.0, 1.0, 2.0]})
    assert compute_bound(table).tolist() == [True, True, False]


def test_regimes_without_rows_are_passed_over_and_all_come_first() -> None:
    regimes = np.array(["under_10us", "memory_above_50us", "under_10us"])
    found = {name: mask.tolist() for name, mask in by_regime(regimes)}
    assert next(iter(found)) == "all" and found["all"] == [True] * 3
    assert found["under_10us"] == [True, False, True]
    assert found["memory_above_50us"] == [False, True, False]
    assert len(found) == 3
    assert dict(by_regime(np.array([], str))) == {}

"""The rows that are farthest off, with what their predicted times are made of."""

import pandas as pd
import pytest

from dse.validation.time import validate_time
from dse.validation.worst_rows import with_limit
from tests.measured.large_product import LARGE


def test_a_stack_holds_what_the_limit_adds(tmp_path):
    path = tmp_path / "t4.csv"
    row = LARGE | {"device": "T4", "dtype": "fp16", "source": "neusight", "latency_us": 40e3}
    pd.DataFrame([row, row | {"m": 16.0}]).to_csv(path, index=False)
    held = {row["m"]: row for row in validate_time(path).document["worst"]}
    assert held[8192.0]["stack_us"]["power_limit"] > 0.4 * held[8192.0]["predicted_us"]
    for one in held.values():
        assert sum(one["stack_us"].values()) == pytest.approx(one["predicted_us"], rel=1e-3)
    assert with_limit({"selected": 2.0}, 1.0) == {"selected": 2.0}

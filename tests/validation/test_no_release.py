"""Products in narrow types whose framework is not named have an interval of any framework."""

import pandas as pd
import pytest

from dse import validate
from experiments import data


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    table = pd.read_parquet(data.path("aiconfigurator__gemm_narrow"))
    named = table["notes"].str.contains("impl=trtllm-1", regex=False)
    return table[named & (table["device"] == "H200-SXM-141GB") & (table["dtype"] == "fp8")].head(6)


def widths(table: pd.DataFrame, folder, name: str) -> pd.Series:
    path = folder / f"{name}.csv"
    table.to_csv(path, index=False)
    found = validate(path).to_frame()
    return found["high_us"] / found["low_us"]


def test_without_its_framework_a_product_s_interval_is_wider(rows, tmp_path):
    named, unnamed = (widths(t, tmp_path, n) for t, n in ((rows, "named"), (rows.assign(notes=""), "unnamed")))
    assert (unnamed > 1.5 * named).all()

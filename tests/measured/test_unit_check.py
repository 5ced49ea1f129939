"""Rows in another unit among others that are not: counted, and the first one named."""

import numpy as np
import pandas as pd

from dse.measured.unit_check import far_rows


def test_a_third_of_rows_in_nanoseconds_is_named():
    rows = pd.DataFrame({"op": "gemm", "dtype": "bf16", "m": [64.0, 128.0, 256.0], "k": np.nan, "latency_us": 50.0})
    predicted = np.array([49.0, 51.0, 50.0])
    assert far_rows(rows, predicted) == []
    mixed = rows.assign(latency_us=[50.0, 5e4, 50.0])
    assert far_rows(mixed, predicted, " of matrix") == [
        "1 of 3 rows of matrix are more than 30 times off, first gemm bf16 m=128, measured 5e+04 us, predicted 51: is "
        "latency_us in microseconds?"
    ]

"""Rooflines of measured rows."""

import numpy as np
import pandas as pd

from dse.measured.rooflines import fitted_roofline


def test_the_fitted_roofline_finds_its_own_numbers():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"compute_us": rng.lognormal(3, 2, 200), "memory_us": rng.lognormal(3, 2, 200)})
    rows["latency_us"] = 4.0 + np.maximum(rows["compute_us"] / 0.7, rows["memory_us"] / 0.8)
    found = fitted_roofline(rows, np.arange(200) % 10)
    np.testing.assert_allclose(found, rows["latency_us"], rtol=1e-3)

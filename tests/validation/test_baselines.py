"""The baselines of a validation."""

import numpy as np
import pandas as pd

from dse.measured.rooflines import fitted_roofline


def test_no_row_is_judged_by_a_fitted_roofline_that_saw_its_fold():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"compute_us": rng.lognormal(3, 2, 60), "memory_us": rng.lognormal(3, 2, 60)})
    rows["latency_us"] = 4.0 + np.maximum(rows["compute_us"] / 0.7, rows["memory_us"] / 0.8)
    fold = np.arange(60) % 3
    changed = rows.assign(latency_us=np.where(fold == 0, 2.0, 1.0) * rows["latency_us"])
    before, after = fitted_roofline(rows, fold), fitted_roofline(changed, fold)
    np.testing.assert_array_equal(after[fold == 0], before[fold == 0])
    assert (np.abs(after[fold != 0] / before[fold != 0] - 1) > 0.01).any()

"""What accounts for the difference of two designs: the attributes that matter stand apart from the others."""

import numpy as np
import pandas as pd

from dse.explanation.compare import Comparison

COLUMNS = ["attribute", "name", "unit", "first", "second", "metric", "change"]


def swapped(attribute, *changes):
    """Rows of an attribute of the other design: what it alone changes of time and energy."""
    metrics = zip(("tbt_ms", "energy_j"), changes, strict=True)
    return [(attribute, attribute, "MHz", 2, 1, metric, change) for metric, change in metrics]


def test_attributes_that_change_a_metric_by_a_hundredth_stand_apart():
    rows = swapped("fast", 0.5, 0.0) + swapped("hot", 0.0, -0.02) + swapped("none", 0.0, 0.0)
    rows += swapped("small", 0.002, 0.009) + swapped("alone", np.nan, np.nan)
    swaps = pd.DataFrame(rows, columns=COLUMNS)
    comparison = Comparison.__new__(Comparison)
    object.__setattr__(comparison, "swaps", swaps)
    telling, others = comparison.told_apart()
    assert [sentence.split()[1] for sentence in telling] == ["fast", "hot", "alone"]
    assert [sentence.split()[1] for sentence in others] == ["small"]

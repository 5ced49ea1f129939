"""Studies beside a prediction: host times and versions of software, by hand."""

import numpy as np
import pandas as pd
import pytest

from dse.prediction.features import DEMANDS
from dse.prediction.learning_rows import LearningRows
from dse.prediction.studies import _between, with_host


def versions_of_host(first: int) -> pd.DataFrame:
    """Three shapes of a target in version b and without one; of a host in a, b, of another source, and not at all."""
    rows = [
        ("h", "s", "a", "x"),
        ("h", "s", "b", "x"),
        ("h", "u", "a", "x"),
        ("h", "u", "a", "y"),
        ("t", "s", "b", "x"),
        ("t", "u", "", "y"),
        ("t", "s", "", "z"),
        ("t", "w", "a", "x"),
    ]
    return pd.DataFrame(rows[first:4] + rows[:first] + rows[4:], columns=["preset", "shape", "version", "source"])


@pytest.mark.parametrize("first", range(4))
def test_a_host_s_time_is_of_the_row_s_own_software_and_source_else_the_mean(first):
    frame = versions_of_host(first)
    host = {("s", "a"): 2.0, ("s", "b"): 8.0, ("u", "ax"): 3.0, ("u", "ay"): 5.0}
    key = frame["version"] + frame["source"].where(frame["shape"] == "u", "")
    y = np.array([host.get(k, 100.0) for k in zip(frame["shape"], key, strict=True)])
    x = np.full((len(y), len(DEMANDS) + 1), 10.0)
    rows = LearningRows(frame, x, y, y, y, np.where(frame["preset"] == "h", 1.0, 2.0))
    both = with_host(rows, "h", "t")
    assert both.frame["shape"].tolist() == ["s", "u", "s"]
    assert both.frame["host_times"].tolist() == [1, 1, 2]
    assert both.x[:, -4] == pytest.approx([16.0, 10.0, 8.0])  # at twice the host's clock
    assert both.x[:, -3] == pytest.approx([8.0, 5.0, 4.0])  # by rooflines of equal cycles


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2]])
def test_a_version_s_times_of_one_shape_are_averaged(order):
    frame = pd.DataFrame({"preset": "t", "shape": "s", "version": ["a", "a", "b"], "source": ["x", "y", "z"]})
    y, x = np.array([2.0, 8.0, 4.0])[order], np.full((3, len(DEMANDS) + 1), 10.0)
    averaged = _between(LearningRows(frame.iloc[order], x, y, y, y, y), "a", "b", "plain")["same_shapes"]
    assert averaged == {"error": pytest.approx(0.0), "rows": 1}

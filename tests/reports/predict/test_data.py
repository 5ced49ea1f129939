"""The data of a page of predictors, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dse.reports.predict.data import CURVE, inlier_curves


def predictor(name: str, mode: str, *errors: float) -> Any:
    return SimpleNamespace(name=name, mode=mode, errors=np.array(errors))


def transfer() -> Any:
    """Three predictors, of which one has two roles, and two baselines, one of which saw the target."""
    best, other, third = (
        predictor("nnls", "plain", 5.0, 15.0),
        predictor("ols", "plain", 5.0),
        predictor("ols", "analytical", 1.0),
    )
    baselines = [
        SimpleNamespace(name="analytical model", fair=True, errors=np.array([20.0, 40.0])),
        SimpleNamespace(name="roofline of the target", fair=False, errors=np.array([10.0])),
    ]
    scored = [best, other, third]
    return SimpleNamespace(scored=scored, baselines=baselines, chosen=best, least_e_out=best, hindsight=third)


def test_each_curve_rises_to_all_rows_and_says_what_it_is() -> None:
    frame = inlier_curves(transfer())
    kinds = dict(zip(frame["series"], frame["kind"], strict=True))
    assert kinds == {
        "nnls, plain (chosen, least E_out)": "predictor",
        "ols, analytical (best in hindsight)": "predictor",
        "analytical model": "baseline",
        "roofline of the target": "reference",
    }
    for _, part in frame.groupby("series"):
        assert part["threshold"].tolist() == CURVE.tolist()
        assert part["inliers"].is_monotonic_increasing and part["inliers"].iloc[-1] == 100.0


def test_an_inlier_is_off_by_the_threshold_at_most() -> None:
    frame = inlier_curves(transfer()).set_index(["series", "threshold"])["inliers"]
    name = "nnls, plain (chosen, least E_out)"
    assert [frame[name, threshold] for threshold in (4.5, 5.0, 14.5, 15.0)] == [0.0, 50.0, 50.0, 100.0]
    assert frame["analytical model", 20.0] == pytest.approx(50.0)

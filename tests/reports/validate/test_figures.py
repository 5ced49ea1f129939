"""The drawings of a page of validated times."""

from types import SimpleNamespace
from typing import cast

import pytest

from dse.reports.validate import data as validate_data
from dse.validation.time import TimeValidation


def test_drawn_stacks_are_those_of_the_document():
    shape = {"device": "A", "op": "gemm", "dtype": "bf16", "m": 1.0, "n": 1.0, "k": 1.0, "kernel": "", "ratio": 1.2}
    row = shape | {
        "measured_us": 10.0,
        "predicted_us": 12.0,
        "stack_us": {"overhead": 9.0, "selected": 1.0, "wait": 2.0},
    }
    stacks = validate_data.worst_stacks(cast(TimeValidation, SimpleNamespace(document={"worst": [row]})))
    assert dict(zip(stacks["part"], stacks["us"], strict=True)) == {"overhead": 9.0, "selected": 1.0, "wait": 2.0}
    assert stacks["share"].sum() == pytest.approx(1.0)


def test_noise_and_predictors(validation):
    groups = {(g["device"], g["op"]): g for g in validation.document["groups"] if g["regime"] == "all"}
    assert groups["H100-SXM5-80GB", "gemm"]["noise_floor"] == pytest.approx(100 * 0.1 * 0.79788 / 2.326, rel=1e-3)
    assert groups["H100-SXM5-80GB", "attn_prefill"]["noise_floor"] is None
    assert [(p.device, p.rows, p.calibration, p.fitted_on_it) for p in validation.predictors] == [
        ("A100-SXM4-80GB", 15, "a100_sxm_80gb", True),
        ("H100-SXM5-80GB", 18, "h100_sxm", True),
    ]

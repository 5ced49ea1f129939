"""Errors of groups of rows by hand: by device, operator, data type and regime."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.hardware.presets import load_sheet
from dse.measured.device_models import DeviceModel
from dse.timing.calibration import calibration_for, load_timing_calibration
from dse.validation.group_errors import group_errors, with_intervals


def rows(measured: list[float], predicted: list[float], **changes: Any) -> pd.DataFrame:
    """Return products with these times [us], bound by memory, their rooflines at half the measured time."""
    frame = pd.DataFrame({"latency_us": measured, "predicted_us": predicted})
    half = frame["latency_us"] / 2
    fixed = {"device": "h100", "op": "gemm", "dtype": "bf16", "compute_us": 1.0, "memory_us": 2.0, "noise": np.nan}
    fixed |= {"low_us": np.nan, "high_us": np.nan}
    return frame.assign(**fixed, sheet_us=half, three_us=half).assign(**changes)


def errors(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the errors of the one group of a table by regime."""
    return {row["regime"]: row for row in group_errors(frame)}


def test_a_regime_holds_its_rows_and_all_of_them_come_first() -> None:
    found = errors(rows([5.0, 20.0, 30.0, 100.0], [5.0, 20.0, 30.0, 100.0]))
    assert {name: row["n"] for name, row in found.items()} == {
        "all": 4,
        "under_10us": 1,
        "10_to_50us": 2,
        "memory_above_50us": 1,
    }
    assert next(iter(found)) == "all"


def test_errors_are_relative_to_what_was_measured() -> None:
    row = errors(rows([100.0, 100.0, 100.0], [109.0, 85.0, 100.0]))["all"]
    assert row["mape"] == pytest.approx((9 + 15 + 0) / 3)
    assert row["bias"] == pytest.approx((1.09 * 0.85) ** (1 / 3))
    assert row["log_ratio"] == pytest.approx((np.log(1.09) - np.log(0.85)) / 3)
    assert (row["inlier_10"], row["inlier_20"]) == (pytest.approx(200 / 3), 100)
    assert row["roofline_mape"] == row["roofline3_mape"] == pytest.approx(50)


def test_a_roofline_that_could_not_be_fitted_has_no_error() -> None:
    assert errors(rows([100.0, 90.0], [100.0, 90.0], three_us=np.nan))["all"]["roofline3_mape"] is None


def test_without_a_calibration_no_interval_is_held() -> None:
    assert errors(rows([100.0], [100.0]))["all"]["interval_80_coverage"] is None


def test_devices_operators_and_types_stand_apart() -> None:
    frame = pd.concat([rows([100.0], [90.0]), rows([100.0], [80.0], dtype="fp16"), rows([100.0], [70.0], op="bmm")])
    found = {(row["op"], row["dtype"]): row["mape"] for row in group_errors(frame) if row["regime"] == "all"}
    assert found == {
        ("bmm", "bf16"): pytest.approx(30),
        ("gemm", "bf16"): pytest.approx(10),
        ("gemm", "fp16"): pytest.approx(20),
    }


def products(device: str, **changes: Any) -> pd.DataFrame:
    """Return a product of a device that takes 80 us, 70 where its board draws little and 120 where it draws much."""
    ends = {"low_power_us": 70.0, "high_power_us": 120.0} | changes
    more = {"device": device, "implementation": "matrix", "harness": "aiconfigurator", **ends}
    return rows([80.0], [80.0]).assign(**more)


def interval(device: str, **changes: Any) -> tuple[float, float]:
    """Return the ends of a product's interval [us]."""
    calibration = load_timing_calibration(calibration_for(device))
    models = {device: DeviceModel(load_sheet(device), calibration.model, calibration)}
    found = with_intervals(products(device, **changes), models)
    return found["low_us"][0], found["high_us"][0]


def test_the_interval_of_a_gpu_never_seen_holds_a_board_that_throttles_and_one_that_does_not() -> None:
    sure = interval("l40s", low_power_us=80.0, high_power_us=80.0)
    low, high = interval("l40s")
    assert low < sure[0] < sure[1] < high
    assert low <= 70.0 and high >= 120.0


def test_the_interval_of_a_gpus_own_rows_holds_its_throttling_already() -> None:
    assert interval("h100_sxm") == interval("h100_sxm", low_power_us=80.0, high_power_us=80.0)

"""The timing model calibrated to other devices, as a baseline of a prediction."""

import numpy as np
import pytest

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.row_kernels import load_launches
from dse.prediction.calibrated import calibrated_models
from dse.prediction.learning_rows import groups_of, load_learning_rows
from dse.prediction.table import read_measured
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.roofline import Roofline
from experiments import data
from tests.prediction.tables import gemm_table


def found(path, target, devices, base):
    """The calibrated baselines of a table."""
    measured = read_measured(path)
    rows, _ = load_learning_rows(measured, [target], base)
    return calibrated_models(measured, devices, groups_of(rows), target, base), measured


def test_a_calibration_of_another_device_predicts_the_target_and_has_not_seen_it(tmp_path):
    made, measured = found(gemm_table(tmp_path / "t.csv"), "h100_sxm", ["a100_sxm_80gb", "t4"], Amali())
    ((key, (one,)),) = made.items()
    assert (key, one.device, one.fair) == (("gemm", "fp16"), "a100_sxm_80gb", True)
    model = load_timing_calibration("a100_sxm_80gb").model
    launches = load_launches(measured.of("h100_sxm"), load_sheet("h100_sxm"), model, Skipped())
    assert one.cycles == pytest.approx(np.asarray(launches.timing.cycles), rel=1e-5)


def test_attention_is_fitted_to_all_devices_together_and_is_a_reference_alone(tmp_path):
    frame = data.frame("aiconfigurator__attention")
    rows = frame[frame["device"].isin(["A100-SXM4-80GB", "H100-SXM5-80GB"]) & (frame["op"] == "attn_prefill")]
    rows.groupby("device").head(40).to_csv(tmp_path / "t.csv", index=False)
    made, _ = found(tmp_path / "t.csv", "h100_sxm", ["a100_sxm_80gb"], Amali())
    assert [one.fair for ones in made.values() for one in ones] == [False]


def test_another_model_has_no_calibrations(tmp_path):
    made, _ = found(gemm_table(tmp_path / "t.csv"), "h100_sxm", ["a100_sxm_80gb"], Roofline())
    assert made == {}

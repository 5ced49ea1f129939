"""Calibrations as files: what is written is read back as a model, other files are refused with a sentence."""

import json

import jax
import numpy as np
import pytest

from dse.base.error_interval import ErrorInterval
from dse.base.errors import InputError
from dse.calibration.power.coefficient_file import calibrated_accelwattch, with_multipliers
from dse.cli import run_command
from dse.power.accelwattch import AccelWattch, sheet_columns
from dse.power.board import BoardPower
from dse.power.calibration import calibrated_board
from dse.power.counters import AccelWattchActivity
from dse.space.space import space_from_mapping
from tests.power.coefficient_files import board, written


def test_multipliers_scale_the_columns_of_the_sheet(tmp_path):
    activity = AccelWattchActivity.of(
        {"L2_RH": 1e6, "NOC_A": 2e6, "MEM_RD": 1e6, "INT_ACC": 1e8, "DC_RH": 1e6},
        cycles=1e5,
        clock_ghz=1.447,
        lanes=32.0,
        sm_count=80.0,
    )
    fitted = calibrated_accelwattch(written(tmp_path / "c.toml"))
    before = sheet_columns(AccelWattch.variant("hw").watts_by_part(activity))
    after = sheet_columns(fitted.watts_by_part(activity))
    for part, watts in before.items():
        factor = {"DRAMP": 0.8, "L2CP": 1.5}.get(part, 1.0)
        np.testing.assert_allclose(after[part], factor * watts, rtol=1e-6, err_msg=part)
    assert fitted.calibration == "refit"


def test_ones_change_nothing():
    model = AccelWattch.variant("sass_sim")
    same = with_multipliers(model, {"DRAMP": 1.0, "INTP": 1.0})
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(model), jax.tree.leaves(same), strict=True))


def test_a_board_comes_back(tmp_path):
    model = calibrated_board(board(tmp_path / "c.toml", pipeline=101.0, dram_path=50.0))
    shipped = BoardPower.from_table()
    assert model.error_interval is not None
    assert float(model.pipeline) == 101.0
    np.testing.assert_allclose(np.max(model.tensor / shipped.tensor), np.min(model.tensor / shipped.tensor), rtol=1e-6)
    assert float(model.dram_path) == 50.0 != float(shipped.dram_path)
    assert model.calibration == "refit (c.toml)"
    assert model.error_interval == ErrorInterval(0.9, 1.2, model.error_interval.source, ("h200",))


def test_a_board_s_coefficients_reach_runs_and_spaces(tmp_path, small, capsys):
    board(tmp_path / "c.toml", dram_path=50.0)
    watts = []
    for options in ([], ["--power", str(tmp_path / "c.toml")]):
        assert run_command(["run", "h200", "gpt2_xl", "--json", *options]) == 0
        ran = json.loads(capsys.readouterr().out)
        watts.append(ran["metrics"]["power_w"]["value"])
    assert watts[1] > watts[0] and ran["power_calibration"] == "refit (c.toml)"
    table = {"model": "board", "calibration": "c.toml"}
    space = space_from_mapping(small | {"power": table}, "here", "small", tmp_path)
    assert float(space.power.model.dram_path) == 50.0
    assert space.digest != space_from_mapping(small, "here", "small").digest
    path = str(written(tmp_path / "a.toml"))
    assert run_command(["run", "h200", "gpt2_xl", "--power", path]) == 2
    assert "a.toml: model is 'accelwattch_hw'" in capsys.readouterr().err


def test_the_same_fit_gives_the_same_bytes(tmp_path):
    assert written(tmp_path / "a.toml").read_bytes() == written(tmp_path / "b.toml").read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('format = "dse power calibration 2"', 'format = "other"', "format is 'other'; give a file that"),
        ('model = "accelwattch_hw"', 'model = "accelwatch_hw"', "model is 'accelwatch_hw'; did you mean"),
        ("[coefficients.DRAMP]", "[coefficients.DRAM]", "has no fitted coefficient 'DRAM'; did you mean 'DRAMP'"),
        ("value = 0.8", "value = -0.8", r"coefficients.DRAMP.value is -0.8; give a number"),
        ("value = 0.8", 'value = "much"', "coefficients.DRAMP.value is 'much'"),
        ("value = 0.8", "value = true", "coefficients.DRAMP.value is True"),
        ('table_sha256 = "abc"', "", "table_sha256 is None; give a text"),
    ],
)
def test_wrong_files_are_refused(tmp_path, old, new, sentence):
    path = written(tmp_path / "c.toml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        calibrated_accelwattch(path)

"""The board model of a file of fitted coefficients, and what such a file may not say."""

import pytest

from dse.base.errors import InputError
from dse.power.board import FREE
from dse.power.calibration import calibrated_board
from tests.power.coefficient_files import SHIPPED, board, written


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[coefficients.dram_path]", "[coefficients.drampath]", "board has no fitted coefficient 'drampath'; did you"),
        ("[left_out]", "[left]", "'left' is no key of a power calibration; did you mean 'left_out'"),
        ("data_share", "share", "'share' is no key of coefficients.pipeline; did you mean"),
        ('"pJ/B"', '"J/B"', "coefficients.dram_path.unit is 'J/B'; give the value in 'pJ/B'"),
        ("value = 50", "value = 99999", "coefficients.dram_path.value is 99999; give a number from 0.25 to 8000"),
        ("value = 50", "value = 0", "coefficients.dram_path.value is 0; give a number"),
        ("value = 50", "value = -50", "coefficients.dram_path.value is -50; give a number"),
        ("value = 50", "value = nan", "coefficients.dram_path.value is nan; give a number"),
        ("low = 0.9", "low = 1.3 # ", "left_out is .*; give low and high .*in order"),
        ("low = 0.9", "low = 0 # ", "left_out.low is 0; give a number from 0.001 to 1000"),
        ("high = 1.2", "high = inf # ", "left_out.high is inf; give a number"),
        ('gpus = ["h200"]', "gpus = [3]", "left_out is .*; give low and high .* gpus"),
    ],
)
def test_wrong_files_of_a_board_are_refused(tmp_path, old, new, sentence):
    path = board(tmp_path / "c.toml", dram_path=50.0)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=sentence):
        calibrated_board(path)


@pytest.mark.parametrize("name", FREE)
def test_a_board_without_a_coefficient_is_refused(tmp_path, name):
    rows = tuple((other, value) for other, value in SHIPPED.items() if other != name)
    with pytest.raises(InputError, match=rf"c.toml: no table \[coefficients.{name}\]; give each of pipeline, "):
        calibrated_board(written(tmp_path / "c.toml", "board", rows))


def test_ends_without_a_fraction_are_numbers_too(tmp_path):
    path = board(tmp_path / "c.toml")
    path.write_text(path.read_text().replace("low = 0.9000", "low = 1"))
    assert calibrated_board(path).error_interval.low == 1.0  # pyright: ignore

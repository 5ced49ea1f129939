"""Power models by name: choices that a file or a caller may state."""

from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.power.models import PowerChoice, power_choice, power_of


@pytest.mark.parametrize("spec", ["board", {}, {"model": "board"}, {"limit": True}])
def test_a_board_is_held_to_its_limit_unless_told_otherwise(spec: Any) -> None:
    choice = power_choice(spec, "here")
    assert choice.limit
    assert repr(choice) == repr(power_of(None))
    assert not power_choice({"limit": False}, "here").limit


@pytest.mark.parametrize("spec", [3, None, [], {"limit": "no"}, {"model": 1}, {"limits": True}, {"calibration": 2}])
def test_another_form_is_refused_with_the_right_ones(spec: Any) -> None:
    with pytest.raises(InputError, match=r'^space.toml: power: .* is not accepted; give power = "board"'):
        power_choice(spec, "space.toml: power")


def test_an_unknown_model_is_told_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no power model is called 'bord'; did you mean 'board'"):
        power_choice("bord", "here")


def test_a_calibration_stands_relative_to_its_space(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path}/mine\.toml: no such file"):
        power_choice({"calibration": "mine.toml"}, "here", tmp_path)


def test_a_choice_is_taken_as_it_is() -> None:
    choice = PowerChoice(power_of("board").model, limit=False)
    assert power_of(choice) is choice
    assert repr(choice).endswith("limit=False)")

"""A user's TOML file: what cannot be read, and what a calibration's coefficients may be."""

from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.base.toml_file import Allowed, check_format, coefficient, coefficient_of, read_toml, refuse_keys

HERE = Path("mine.toml")
SHARE = Allowed("1", 0.5, 1.0)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('name = "Größe"\n[clocks]\nboost = 1.98\n', encoding="utf-8")
    assert read_toml(path) == {"name": "Größe", "clocks": {"boost": 1.98}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"a = ", "is not valid TOML"),
        (b'a = "\xff"', "is no text in UTF-8: byte 6"),
        ("folder", "is a folder"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_path(content: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words) as told:
        read_toml(path)
    assert str(told.value).startswith(f"{path}: ")


def test_another_format_names_the_command_that_writes_the_right_one() -> None:
    check_format(HERE, {"format": "power 1"}, "power 1", "dse calibrate power")
    with pytest.raises(InputError, match="format is None; give a file that 'dse calibrate power -o' wrote"):
        check_format(HERE, {}, "power 1", "dse calibrate power")


def test_an_unknown_key_is_told_with_the_nearest() -> None:
    refuse_keys(HERE, "a coefficient", {"value": 1}, iter(["value", "unit"]))
    with pytest.raises(InputError, match="'vlaue' is no key of a coefficient; did you mean 'value'"):
        refuse_keys(HERE, "a coefficient", {"vlaue": 1}, iter(["value", "unit"]))


@pytest.mark.parametrize("value", [0.5, 1, 1.0, 1.000009, 0.499996])
def test_a_number_within_its_range_or_rounded_past_its_end_is_taken(value: float) -> None:
    found = coefficient(HERE, "share", value, SHARE.low, SHARE.high)
    assert isinstance(found, float) and found == value


@pytest.mark.parametrize("value", [0.4999, 1.0001, True, "1", None, float("nan"), float("inf")])
def test_anything_else_is_refused_with_its_range(value: Any) -> None:
    with pytest.raises(InputError, match=r"mine\.toml: share is .*; give a number from 0\.5 to 1"):
        coefficient(HERE, "share", value, SHARE.low, SHARE.high)


def test_a_range_around_zero_is_rounded_by_the_size_of_its_ends() -> None:
    assert coefficient(HERE, "shift", -2.00001, -2.0, 2.0) == -2.00001
    with pytest.raises(InputError):
        coefficient(HERE, "shift", -2.001, -2.0, 2.0)


def test_a_number_stands_for_a_coefficient_s_table() -> None:
    assert coefficient_of(HERE, "share", 0.75, SHARE, ()) == 0.75
    assert coefficient_of(HERE, "share", {"value": 0.75, "unit": "1"}, SHARE, ()) == 0.75
    assert coefficient_of(HERE, "share", {"value": 0.75, "prior": 0.7}, SHARE, ["prior"]) == 0.75


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"value": 0.75, "unit": "%"}, r"share\.unit is '%'; give the value in '1'"),
        ({"unit": "1"}, r"share\.value is None"),
        ({"value": 0.75, "prior": 0.7}, "'prior' is no key of share"),
    ],
)
def test_a_wrong_table_of_a_coefficient_is_refused(row: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        coefficient_of(HERE, "share", row, SHARE, ())

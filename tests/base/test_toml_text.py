"""TOML as it is written: what a reader makes of it is what was given."""

import tomllib

import numpy as np
import pytest

from dse.base.toml_text import inline, literal, pairs


@pytest.mark.parametrize("value", [
    True, False, 3, -2.5, 1e-30, 1e300, "", 'a "b" \\ c\n', "\x7f\x01", "GPU ä 🚀", [1, 2], ["a", "ü"], [True, 1.5],
])  # fmt: skip
def test_what_is_read_is_what_was_written(value):
    assert tomllib.loads(f"x = {literal(value)}")["x"] == value


def test_numbers_of_numpy_and_fewer_digits():
    assert [literal(x) for x in (np.float32(0.5), np.int64(3), np.bool_(True))] == ["0.5", "3", "true"]
    assert literal(1 / 3, 3) == "0.333"
    assert literal([1 / 3, 2], 3) == "[0.333, 2]"


def test_tables_leave_out_what_is_none():
    values = {"a": 1, "b": None, "c": "x"}
    assert pairs(values, without=["c"]) == ["a = 1"]
    assert inline(values) == '{ a = 1, c = "x" }'

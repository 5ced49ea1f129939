"""Numbers of physics and calibration: each row is read by the code, and each name in the code has its row."""

import re
from pathlib import Path

import pytest

import dse
from dse.base.constants import constant
from dse.base.package_tables import read_table

ROWS = read_table("constants.csv")
CALL = re.compile(r'constant\(\s*f?"([^"]+)"')


def asked_for():
    """Names that modules of the package read; ``{...}`` in one stands for any text."""
    texts = (p.read_text(encoding="utf-8") for p in Path(dse.__file__).parent.rglob("*.py"))
    return {re.sub(r"\{\w+\}", "*", name) for text in texts for name in CALL.findall(text)}


def test_each_name_stands_once():
    assert len({row["name"] for row in ROWS}) == len(ROWS) > 40


def test_each_row_is_read_by_the_code():
    patterns = [re.compile(name.replace("*", r"\w+")) for name in asked_for()]
    assert [row["name"] for row in ROWS if not any(p.fullmatch(row["name"]) for p in patterns)] == []


def test_each_number_says_whether_it_was_published_measured_fitted_derived_or_assumed():
    known = {"published", "measured", "fitted", "derived", "assumed", "exact", "chosen"}
    assert {row["status"] for row in ROWS} <= known
    assert all(row["unit"] and row["meaning"] for row in ROWS)


def test_a_number_is_that_of_its_row():
    assert constant("operand_bytes") == 16.0
    assert constant("kib_per_register") * 1024 == 4.0


def test_a_name_without_a_row_is_an_error():
    with pytest.raises(KeyError):
        constant("speed_of_dreams")

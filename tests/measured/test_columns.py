"""The columns of a measured table: the schema against the code that reads them, and what rows may state beside it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.measured.columns import checked, evaluated, measured_columns, not_modelled
from dse.measured.coverage import SHAPES
from dse.measured.row_shape import KERNEL_NAMES, NAMES
from dse.measurement.table import COLUMNS

ROW = {"device": "H200-SXM-141GB", "op": "attn_decode", "dtype": "bf16", "head_dim": 128, "tp": 4}
LIMITS = {"H200-SXM-141GB": 700.0}


def test_every_column_has_a_type_a_unit_of_its_numbers_and_a_meaning():
    for column in measured_columns().values():
        assert column.type in ("text", "int", "bool", "number")
        assert bool(column.unit) == (column.type != "text")
        assert column.description and column.modelled
        if column.modelled.startswith("=") and column.modelled != "=tdp_w":
            assert column.modelled[1:] in measured_columns()


def test_the_schema_names_every_column_that_is_read_or_written():
    read = {name for shape in SHAPES.values() for name in shape} | set(COLUMNS) | set(NAMES) - set(KERNEL_NAMES)
    assert read <= set(measured_columns())


def test_the_manual_names_every_column_as_the_schema_does():
    page = (Path(__file__).parents[2] / "docs" / "measured_tables.md").read_text(encoding="utf-8")
    for c in measured_columns().values():
        assert f"| {c.name} | {c.unit} | {c.operators} | {c.modelled} | {c.description} |" in page


def reason(**stated: object) -> str:
    return not_modelled(pd.DataFrame([ROW | stated]), LIMITS)[0]


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"window": 0.0},
        {"window": np.nan, "kv_dtype": None, "block_format": None},
        {"kv_dtype": "bf16"},
        {"v_head_dim": 128},
        {"power_limit_w": 700},
        {"ranks": 4, "nodes": 1},
        {"block_format": "unknown", "act_quant": "outside"},
        {"temp_c": 50.0, "energy_j": 3.0, "rep_n": 5, "source": "mine", "notes": "kernel=x"},
    ],
)
def test_what_is_modelled_may_be_stated(stated):
    assert reason(**stated) == ""


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({"power_limit_w": 350}, "attn_decode: power_limit_w 350 is not modelled, only that of tdp_w"),
        ({"ranks": 8}, "attn_decode: ranks 8 is not modelled, only that of tp"),
        ({"clock_mhz": 900.0}, "attn_decode: clock_mhz is not modelled (SM clock that the board was locked to)"),
        ({"sparse_topk": 2048}, "attn_decode: sparse_topk is not modelled"),
    ],
)
def test_what_is_not_modelled_is_told_with_its_value(stated, why):
    assert reason(**stated).startswith(why)


def test_a_limit_of_an_unknown_board_says_nothing():
    assert not_modelled(pd.DataFrame([ROW | {"power_limit_w": 350}]), {})[0] == ""


def test_words_in_a_column_of_numbers_are_refused(tmp_path):
    frame = pd.DataFrame({"op": ["gemm", "gemm"], "window": ["0", "wide"]})
    with pytest.raises(InputError, match="row 3: window is 'wide'; give a number"):
        checked(tmp_path / "t.csv", frame)
    assert checked(tmp_path / "t.csv", frame.assign(window=["0", None]))["window"].tolist()[0] == 0


def test_a_column_without_a_name_is_no_column(tmp_path):
    frame = pd.DataFrame({"Unnamed: 0": [0], "op": ["gemm"]})  # the index, as pandas writes it
    assert list(checked(tmp_path / "t.csv", frame)) == ["op"]


def test_evaluated_rows_have_the_columns_and_types_of_their_schema():
    names = [row["column"] for row in read_table("schema/evaluated.csv")]
    texts = ("family", "harness", "kernel", "implementation", "binding", "widened_by", "throttles")
    rows = pd.DataFrame({name: ["a"] if name in texts else [3] for name in names})
    typed = evaluated(rows)
    assert {name for name in names if pd.api.types.is_float_dtype(typed[name])} == set(names) - set(texts)
    with pytest.raises(KeyError, match="predicted_us"):
        evaluated(rows.drop(columns="predicted_us"))
    with pytest.raises(ValueError, match="could not convert"):
        evaluated(rows.assign(predicted_us="soon"))


@pytest.mark.parametrize(
    "stated",
    [{"window": 128}, {"kv_dtype": "fp8"}, {"v_head_dim": 512}, {"block_format": "blk128"}, {"act_quant": "inside"}],
)
def test_what_is_modelled_but_no_fit_has_seen_is_left_out_of_fits(stated):
    assert reason(**stated) == ""
    assert not_modelled(pd.DataFrame([ROW | stated]), {}, fits=True)[0] != ""

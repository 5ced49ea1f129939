"""A user's table as it stands there: names, cells beyond the header, units; Parquet as CSV."""

import re

import pandas as pd
import pytest

from dse.base.csv_table import numbers, read_csv, read_table_file, refuse_capitals, refuse_units
from dse.base.errors import InputError


def written(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "m,op\n1,gemm\n2,bmm\n",
        " m, op\n1, gemm\n 2, bmm\n",
        "m,op\n1,gemm,\n2,bmm,\n",  # a comma at the end of each row
        "m,op\n1,gemm\n2,bmm,, \n",
        '\ufeff"m","op"\r\n1,"gemm"\r\n2,bmm\r\n',
        "\nm,op\n\n1,gemm\n2,bmm\n",
    ],
)
def test_the_same_table_however_it_is_written(tmp_path, text):
    assert read_csv(written(tmp_path, text)).to_dict("list") == {"m": [1, 2], "op": ["gemm", "bmm"]}


def test_rows_with_fewer_cells_have_empty_ones(tmp_path):
    frame = read_csv(written(tmp_path, "ID,op,,m\n07,gemm\n"), words=["ID"])
    assert list(frame) == ["ID", "op", "Unnamed: 2", "m"]
    assert frame["ID"][0] == "07"
    assert frame["m"].isna().all()
    assert list(read_csv(written(tmp_path, "m,op\n1,gemm\n"), 0)) == ["m", "op"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m,us,us\n1,2,3\n", "column 'us' stands twice; give it once"),
        ("m,us, us\n1,2,3\n", "column 'us' stands twice"),
        ("m,us\n1,2,3\n", "row 2: '3' stands beyond the 2 columns of the header; give a cell a column"),
        ("m,us\n1,2\n1,2,,9\n", "row 3: '9' stands beyond the 2 columns"),
        ("\nm,us\n\n1,2\n\n1,2,9\n", "row 6: '9' stands beyond the 2 columns"),
        ("m;us\n1;2\n", "its columns stand apart by semicolons"),
        ("", "is no CSV table: No columns"),
        ('m,us\n1,"2\n', "is no CSV table: .*EOF inside string"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        read_csv(written(tmp_path, text))


@pytest.mark.parametrize(("text", "line"), [("m\n1\nx\n", 3), ("\n\nm\n1\n\n \nx\n", 7), ('m,"a\nb"\n1,2\n\nx,2\n', 5)])
def test_a_row_is_named_by_its_line_in_the_file(tmp_path, text, line):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=f"row {line}: m is 'x'; give a number"):
        numbers(path, read_csv(path), "m")


@pytest.mark.parametrize("name", ["us [us]", "US(us)", "us [microseconds]"])
def test_a_unit_in_a_header_is_told_with_the_column_that_is_meant(tmp_path, name):
    path = written(tmp_path, f"m,{name}\n1,2\n")
    with pytest.raises(InputError, match=rf"column '{re.escape(name)}' is not known; did you mean 'us'"):
        refuse_capitals(path, read_csv(path).columns, ("m", "us"))


@pytest.mark.parametrize(("header", "meant"), [("M,us", "m"), ("m,Us", "us")])
def test_capitals_are_told_with_what_is_meant(tmp_path, header, meant):
    path = written(tmp_path, f"{header}\n1,2\n")
    with pytest.raises(InputError, match=f"is not known; did you mean '{meant}'"):
        refuse_capitals(path, read_csv(path).columns, ("m", "us"))
    path = written(tmp_path, "m,M,us\n1,2,3\n")  # of two the known one counts
    refuse_capitals(path, read_csv(path).columns, ("m", "us"))


def test_units_are_told_whatever_their_capitals(tmp_path):
    path = written(tmp_path, "Latency_ms\n1\n")
    with pytest.raises(InputError, match="column Latency_ms is not read; give latency_us"):
        refuse_units(path, read_csv(path).columns)


def test_parquet_is_read_as_the_same_csv(tmp_path):
    path = written(tmp_path, "m,us,op\n1,2.5,gemm\n2,,bmm\n")
    frame = read_csv(path)
    frame.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table_file(tmp_path / "t.parquet"), frame)
    pd.testing.assert_frame_equal(read_table_file(path), frame)
    assert len(read_table_file(tmp_path / "t.parquet", 1)) == len(read_table_file(path, 1)) == 1


def test_what_is_no_parquet_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.parquet: no such file"):
        read_table_file(tmp_path / "none.parquet")
    (tmp_path / "t.parquet").write_text("m,us\n1,2\n")
    with pytest.raises(InputError, match=r"t\.parquet: is no Parquet table"):
        read_table_file(tmp_path / "t.parquet")


def test_rows_of_parquet_are_named_by_their_number(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"m": ["1", "x"]}).to_parquet(path)
    with pytest.raises(InputError, match="row 2: m is 'x'; give a number"):
        numbers(path, read_table_file(path), "m")

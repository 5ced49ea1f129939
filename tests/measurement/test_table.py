"""The table that is written while measuring: each row at once, and none twice."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.measurement.table import COLUMNS, Table

ROW = {"source": "own", "device": "cpu", "op": "gemm", "dtype": "bf16", "m": 8, "n": 32, "k": 64, "latency_us": 1.5}


def test_a_new_table_has_a_header_and_a_row_stands_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    table = Table(path)
    assert path.read_text() == ",".join(COLUMNS) + "\n"
    assert not table.has(ROW)
    table.add(ROW)
    assert table.has(ROW) and table.rows == 1
    assert path.read_text().splitlines()[1] == "own,,cpu,gemm,bf16,,8,32,64,,,,,,,,,,1.5,,,,,"


def test_what_was_measured_is_known_by_its_shape_and_not_by_its_time(tmp_path: Path) -> None:
    Table(tmp_path / "table.csv").add(ROW)
    again = Table(tmp_path / "table.csv")
    assert again.rows == 1
    assert again.has(ROW | {"latency_us": 9.0, "notes": "again"})
    assert not again.has(ROW | {"n": 64})
    assert not again.has(ROW | {"dtype": "fp16"})


def test_a_torn_line_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    Table(path).add(ROW)
    whole = path.read_text()
    path.write_text(whole + "own,,cpu,gemm,bf16,,8,3")
    assert Table(path).rows == 1
    assert path.read_text() == whole


def test_a_cell_that_holds_a_comma_comes_back_whole(tmp_path: Path) -> None:
    row = ROW | {"device": "cpu, of two cores"}
    Table(tmp_path / "table.csv").add(row)
    assert Table(tmp_path / "table.csv").has(row)


def test_an_empty_file_is_a_new_table_and_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    assert Table(tmp_path / "empty.csv").rows == 0
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"other.csv: is no table of dse measure"):
        Table(other)
    assert other.read_text(encoding="utf-8") == "a,b\n1,2\n"

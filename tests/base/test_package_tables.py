"""The package's tables: text as it stands in the file, and a copy for each reader."""

import pytest

from dse.base.errors import DseError
from dse.base.package_tables import read_table


def test_cells_are_text_by_their_column() -> None:
    (row,) = [row for row in read_table("schema/gpu.csv") if row["attribute"] == "sm_count"]
    assert (row["type"], row["low"], row["high"]) == ("int", "1", "1024")


def test_what_a_reader_changes_is_its_own() -> None:
    rows = read_table("schema/gpu.csv")
    rows[0].clear()
    rows.pop()
    again = read_table("schema/gpu.csv")
    assert again[0] and len(again) == len(rows) + 1


def test_a_missing_table_is_named() -> None:
    with pytest.raises(DseError, match=r"the package holds no table dse/data/gpus/nothing\.csv"):
        read_table("gpus/nothing.csv")

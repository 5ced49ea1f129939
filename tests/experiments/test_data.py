"""The data that others measured: one schema, a source and a licence for each table, provenance of calibrations."""

import csv
import hashlib
import tomllib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dse.base.errors import InputError
from dse.measured.columns import measured_columns
from dse.timing.calibration import shipped_calibrations, shipped_implementations
from experiments import data
from experiments.data import convert

LICENCES = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause"}
SOURCES = list(csv.DictReader((data.HERE / "sources.csv").open(encoding="utf-8")))


@pytest.mark.parametrize("name", data.names())
def test_every_table_is_of_the_schema(name):
    schema = pq.read_schema(data.path(name))
    assert schema.names == list(measured_columns())
    assert schema == convert.SCHEMA
    frame = data.frame(name)
    assert frame[["source", "device", "op"]].notna().all(axis=None)
    assert set(frame["causal"].dropna()) <= {0, 1}
    assert frame["latency_us"].notna().all() or name == "energaizer__idle_voltage"


def test_every_table_has_one_source_whose_licence_allows_it():
    tables = [table for row in SOURCES for table in row["tables"].split()]
    others = {"aiconfigurator_spread", "gcom", "accelwattch", "networks"}
    assert sorted(tables) == sorted([*data.names(), *others])
    assert all(set(row["licence"].split(" and ")) <= LICENCES for row in SOURCES)
    assert all(row["repository"] and row["commit"] and row["paths"] and row["holder"] and row["how"] for row in SOURCES)


def test_every_source_is_named_with_its_licence():
    said = (data.HERE / "LICENSES.md").read_text(encoding="utf-8")
    assert [row["repository"] for row in SOURCES if f"- {row['repository']}: Copyright" not in said] == []


def test_the_manual_tells_of_every_table():
    manual = (data.HERE / "README.md").read_text(encoding="utf-8")
    assert [name for name in data.names() if name not in manual and f"__{name.split('__')[1]}" not in manual] == []


@pytest.mark.parametrize("name", [*shipped_calibrations(), *shipped_implementations()])
def test_a_calibration_cites_tables_that_are_here(name):
    path = (shipped_calibrations() | shipped_implementations())[name]
    for table in tomllib.loads(path.read_text(encoding="utf-8")).get("tables", []):
        bytes_of_it = (data.MEASURED / table["name"]).read_bytes()
        assert hashlib.sha256(bytes_of_it).hexdigest() == table["sha256"]


def test_a_name_that_no_table_has_is_refused():
    with pytest.raises(InputError, match="no measured table is called 'vidur_gemm'; did you mean 'vidur__gemm"):
        data.path("vidur_gemm")


def test_a_csv_becomes_the_same_rows_in_the_schema(tmp_path):
    frame = pd.DataFrame({"op": ["gemm", "gemm"], "m": [1, 2], "latency_us": [0.1 + 0.2, 3.0], "notes": [None, "a;b"]})
    frame.to_csv(tmp_path / "mine__gemm.csv", index=False)
    pd.DataFrame({"device": ["A10"], "idle_w": [20.5]}).to_csv(tmp_path / "mine__idle.csv", index=False)
    convert.main([str(tmp_path)], tmp_path / "out")
    made = pd.read_parquet(tmp_path / "out" / "mine__gemm.parquet")
    assert list(made) == list(measured_columns())
    pd.testing.assert_frame_equal(made[list(frame)], pd.read_csv(tmp_path / "mine__gemm.csv"), check_exact=True)
    idle = pd.read_parquet(tmp_path / "out" / "mine__idle.parquet").iloc[0]
    assert (idle["op"], idle["power_w"]) == ("idle", 20.5) and np.isnan(idle["latency_us"])


def test_a_column_without_a_place_is_refused(tmp_path):
    pd.DataFrame({"op": ["gemm"], "weight": [1]}).to_csv(tmp_path / "mine__gemm.csv", index=False)
    with pytest.raises(ValueError, match="the schema has no column weight"):
        convert.main([str(tmp_path)], tmp_path)

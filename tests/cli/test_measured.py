"""Commands around measurements: documents, tables and refusals."""

import json
import tomllib

import pandas as pd
import pytest

from dse.cli import run_command
from tests.calibration.tables import kernel_table, operator_table


def test_validate_command(tmp_path, capsys):
    path = operator_table(tmp_path / "t.csv")
    assert run_command(["validate", str(path), "--quantity", "power", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["device"][0]) == {"device", "op", "n", "power_mape", "power_bias"}
    assert run_command(["validate", str(path), "--quantity", "area"]) == 2
    assert "no quantity is called 'area'; accepted are: power, stalls, time" in capsys.readouterr().err
    assert run_command(["validate", str(path), "--quantity", "power"]) == 0
    assert "H200-SXM-141GB" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "read"), [("rows.csv", pd.read_csv), ("rows.parquet", pd.read_parquet)])
def test_validate_writes_every_row_with_its_interval_and_cause(tmp_path, capsys, name, read):
    path = operator_table(tmp_path / "t.csv")
    assert run_command(["validate", str(path), "--quantity", "time", "--rows", str(tmp_path / name), "--json"]) == 0
    groups = [g for g in json.loads(capsys.readouterr().out)["groups"] if g["regime"] == "all"]
    rows = read(tmp_path / name)
    assert len(rows) == sum(g["n"] for g in groups)
    off = 100 * (rows["predicted_us"] / rows["latency_us"] - 1).abs()
    assert sum(g["n"] * g["mape"] for g in groups) == pytest.approx(off.sum())
    assert (rows["low_us"] < rows["high_us"]).all()
    assert rows["binding"].str.len().min() > 0 and {"implementation", "harness", "kernel"} <= set(rows)


def test_validate_refuses_rows_of_another_kind_before_it_begins(tmp_path, capsys):
    path = operator_table(tmp_path / "t.csv")
    assert run_command(["validate", str(path), "--quantity", "time", "--rows", str(tmp_path / "rows.xlsx")]) == 2
    assert "its name ends in '.xlsx'; accepted are .csv and .parquet" in capsys.readouterr().err
    assert run_command(["validate", str(path), "--quantity", "power", "--rows", str(tmp_path / "rows.csv")]) == 2
    assert "--rows: belongs to --quantity time" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.slow
def test_calibrate_command_writes_what_it_prints(tmp_path, capsys):
    path = kernel_table(tmp_path / "t.csv", noise=0.02, groups=4)
    out = tmp_path / "c.toml"
    command = ["calibrate", "power", str(path), "--variant", "sass", "-o", str(out), "--json"]
    assert run_command(command) == 0
    document = json.loads(capsys.readouterr().out)
    errors = {m["name"]: m["leave_one_benchmark_out"] for m in document["models"]}
    assert {"multipliers", "mean", "one_scale", "four_parameters", "published"} <= set(errors)
    assert errors["multipliers"] < errors["published"] < errors["mean"]
    fitted = {c["name"]: c["value"] for c in document["coefficients"]}
    written = {name: row["value"] for name, row in tomllib.loads(out.read_text())["coefficients"].items()}
    assert written == pytest.approx(fitted, rel=1e-5)
    assert run_command(["calibrate", "power", str(path)]) == 2
    assert "no components of variant 'hw'" in capsys.readouterr().err

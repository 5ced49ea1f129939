"""The command that predicts a GPU from measurements of others: refusals, and what it prints and writes."""

import json

import pytest

from dse.cli import run_command
from tests.prediction.tables import gemm_table


@pytest.mark.parametrize(
    ("changes", "arguments", "sentence"),
    [
        ({}, ["--target", "L40S"], "holds no times of 'L40S' that can be used; it holds those of a100_sxm_80gb, h100"),
        ({}, ["--target", "H1000"], "no GPU is called 'H1000'"),
        ({}, ["--target", "H100", "--host", "H100"], "is the target itself"),
        ({}, ["--target", "H100", "--host", "T4"], "--host: "),
        ({}, ["--target", "H100", "--predictors", "gut"], "no predictor is called 'gut'"),
        ({}, ["--target", "H100", "--predictors", ""], "no predictor is called ''"),
        ({}, ["--target", "H100", "--predictors", "nnls, ols,nnls"], "--predictors: 'nnls' stands twice; give it once"),
        ({"latency_us": -3.0}, ["--target", "H100"], "latency_us is -3; give a positive time"),
        ({"n": 64, "k": 64}, ["--target", "H100"], "holds one benchmark only, the shape family 'gemm_64_64'"),
        ({"device": "H100-SXM5-80GB"}, ["--target", "H100"], "holds rows of h100_sxm only; a device"),
        (
            {"device": ["MI300X"] * 128 + ["H100-SXM5-80GB"] * 64},
            ["--target", "H100"],
            "holds rows of h100_sxm only that can be used (skipped: device 'MI300X': listed so that",
        ),
    ],
)
def test_refusals_write_nothing(tmp_path, capsys, monkeypatch, changes, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    path = gemm_table(tmp_path / "t.csv", **changes)
    assert run_command(["predict", str(path), *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.slow
def test_command(tmp_path, capsys):
    path, page = gemm_table(tmp_path / "t.csv"), tmp_path / "p.html"
    command = ["predict", str(path), "--target", "H100", "--predictors", "nnls", "-o", str(page)]
    assert run_command([*command, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["target"] == "h100_sxm"
    assert "learned on" in captured.err
    assert page.exists() and not list(tmp_path.glob("*.partial"))
    assert run_command(command) == 0
    assert "calibrated roofline" in capsys.readouterr().out

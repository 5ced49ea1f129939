"""Commands that print what is shipped: tables, JSON, narrow terminals."""

import json

import pytest

from dse.cli import run_command


@pytest.mark.parametrize("what", ["gpus", "schema", "columns", "networks", "engines", "spaces", "metrics"])
def test_show_prints_tables_and_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", what]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 2
    assert run_command(["show", what, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("what", ["gpus", "schema", "columns", "networks", "engines"])
def test_a_narrow_terminal_keeps_names_whole(what: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    assert run_command(["show", what, "--json"]) == 0
    names = [next(iter(row.values())) for row in json.loads(capsys.readouterr().out)]
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["show", what]) == 0
    shown = capsys.readouterr().out
    assert {line.split(" ")[0] for line in shown.splitlines()} >= set(names)
    assert "with --json" in " ".join(shown.split())  # wherever the line is broken


def test_show_gpu_gives_units_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", "gpu", "NVIDIA H100 80GB HBM3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["name"] == "h100_sxm"
    assert all(row["source"] and row["status"] and row["unit"] for row in document["attributes"])
    assert (document["die_mm2"], document["sm_on_die"]) == (814, 144)  # numbers as numbers
    assert document["peaks"]


def test_show_network_finds_it_by_hub_id_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", "network", "google/gemma-3-27b-it", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"parameters", "active_parameters", "kv_bytes_per_token", "state_bytes_per_request", "dtypes"} <= set(
        document
    )
    assert [layer["count"] for layer in document["layers"]] == [52, 10]
    assert run_command(["show", "network", "gemma-9-99b"]) == 2
    assert "no network is called 'gemma-9-99b'" in capsys.readouterr().err

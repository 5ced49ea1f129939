"""JSON Schemas: every shipped space and GPU is valid by them, and files that readers refuse for a key are not."""

import json
import tomllib

import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.hardware.presets import preset_names, preset_sheet
from dse.space.json_schema import DIALECT, KINDS, json_schema
from dse.space.shipped import shipped_spaces

jsonschema = pytest.importorskip("jsonschema")

SPACE = {
    "base": "h100_sxm",
    "axes": {"sm_count": [96, 132], "l2_mib": {"from": 25, "to": 50, "count": 3}},
    "workloads": {"decode": "llama3_8b:phase=decode", "g": {"use": "g.csv", "weight": 2}},
    "objectives": [{"value": "decode.tbt_ms", "goal": "min"}],
}


def valid(kind, content):
    return jsonschema.Draft202012Validator(json_schema(kind)).is_valid(content)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_schemas(kind):
    jsonschema.Draft202012Validator.check_schema(json_schema(kind))
    assert json_schema(kind)["$schema"] == DIALECT


@pytest.mark.parametrize("path", shipped_spaces().values(), ids=lambda path: path.stem)
def test_every_shipped_space_is_valid(path):
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    errors = list(jsonschema.Draft202012Validator(json_schema("space")).iter_errors(content))
    assert [f"{list(error.path)}: {error.message[:200]}" for error in errors] == []


def test_every_shipped_gpu_is_valid():
    check = jsonschema.Draft202012Validator(json_schema("gpu"))
    for name in preset_names():
        assert check.is_valid({"name": name} | {key: entry.value for key, entry in preset_sheet(name).entries.items()})
    assert check.is_valid({"base": "h100_sxm", "l2_mib": 96, "peaks": {"bf16": 989}})


@pytest.mark.parametrize(("memory", "right"), [({"type": "hbm4", "pin_gbps": 12}, True), ({"type": "hbm9"}, False)])
def test_a_memory_is_a_table_of_a_gpu_and_of_a_space(memory, right):
    assert valid("gpu", {"base": "b200", "memory": memory}) is right
    assert valid("space", SPACE | {"gpu": {"memory": memory}}) is right


@pytest.mark.parametrize("axes", [{"base": ["h100_sxm"]}, {"decode.batch": [1, 8]}, {"decode": {"dtype": ["fp8"]}}])
def test_bases_and_settings_are_axes(axes):
    assert valid("space", {**SPACE, "axes": axes}) and valid("space", SPACE | {"base": ["h100_sxm", "h200"]})
    assert not valid("space", SPACE | {"axes": {"decode": {"btach": [1]}}})


@pytest.mark.parametrize(
    "changes",
    [
        {"base": 3},
        {"axis": {}},
        {"axes": {"sm_cuont": [1]}},
        {"axes": {"sm_count": [1.5]}},
        {"axes": {"sm_count": []}},
        {"axes": {"dram_type": ["hbm9"]}},
        {"axes": {"l2_mib": {"from": 25, "to": 50, "stop": 1}}},
        {"gpu": {"tdp_w": "700"}},
        {"objectives": []},
        {"objectives": [{"value": "die_mm2", "goal": "less"}]},
        {"workloads": {"decode": {"use": "x", "wait": 1}}},
        {"constraints": "die_mm2 <= 814"},
        {"yield_model": "hope"},
    ],
)
def test_a_wrong_space_is_not(changes):
    assert valid("space", SPACE)
    assert not valid("space", SPACE | changes)


@pytest.mark.parametrize("content", [{"base": "h100_sxm", "sm_cuont": 1}, {"tdp_w": -1}, {"process": "7nm?"}])
def test_a_wrong_gpu_is_not(content):
    assert not valid("gpu", content)


def test_workloads():
    good = {"network": "llama3_8b", "phase": "decode", "batch": 16, "context": "2048", "dtype": "fp8", "tp": 8}
    assert valid("workload", good)
    for wrong in ({"phase": "think"}, {"batch": 0}, {"tp": 1025}, {"btach": 1}, {"network": 7}):
        assert not valid("workload", good | wrong)
    assert not valid("workload", {"batch": 1})


def test_the_command_prints_and_writes_it(tmp_path, capsys):
    assert run_command(["schema", "gpu"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema("gpu")
    assert run_command(["schema", "-o", str(tmp_path / "s.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": str(tmp_path / "s.json")}
    assert json.loads((tmp_path / "s.json").read_text()) == json_schema("space")
    with pytest.raises(InputError, match="schema = 'spaces' is not accepted; did you mean 'space'"):
        json_schema("spaces")

"""``dse show network``: what it says of networks of several kinds."""

import json

import pytest
from rich.console import Console

from dse.reports.show.network import network_document, print_network


def test_what_users_build_on():
    found = network_document("openai/gpt-oss-120b")
    assert (found["kv_bytes_per_token"], found["kv_bytes_beyond_windows"]) == (73_728, 36_864)
    assert [(layer["kind"], layer["count"]) for layer in found["layers"]] == [
        ("window 128 + mixture", 18),
        ("full + mixture", 18),
    ]
    assert found["dtypes"] == {"weights": "mxfp4", "activations": "bf16", "kv": "bf16"}
    assert found["state_bytes_per_request"] == 0
    assert 5.0e9 < found["active_parameters"] < 5.2e9 < 116e9 < found["parameters"] < 118e9


def test_states_are_told_from_caches():
    found = network_document("qwen3_next_80b_a3b")
    assert found["kv_bytes_per_token"] == 12 * 2 * 2 * 256 * 2
    state = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
    assert found["state_bytes_per_request"] == 36 * state


def test_halves_of_layers_stand_alone(capsys):
    print_network("nemotron_h_56b", Console(), True)
    found = json.loads(capsys.readouterr().out)
    assert [layer["kind"] for layer in found["layers"]] == ["Mamba2", "dense", "full"]


def test_the_terminal_shows_the_same(capsys):
    print_network("deepseek_v3", Console(width=120), False)
    out = capsys.readouterr().out
    assert "latent + mixture" in out and "70,272" in out and "weights fp8, activations fp8_block" in out


@pytest.mark.parametrize("name", ["nemotron_h_56b", "nemotron_super_49b"])
def test_layers_of_unlike_columns_stand_in_one_table(name, capsys):
    print_network(name, Console(width=120), False)
    assert "heads" in capsys.readouterr().out

"""Shipped networks of 2024 to 2026 against the figures of their publishers.

``published.csv`` states parameters and active parameters of the text part. Publishers count the tables of embedding and
head among the active ones, the head alone, or neither: column ``ends``. Bytes of keys and values are written out by
hand: layers, keys and values, heads, their size, bytes of a number. Figures were recalled from the named sources, and
not read again.
"""

import csv
from math import prod
from pathlib import Path

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks

ROWS = list(csv.DictReader((Path(__file__).parent / "published.csv").open(encoding="utf-8")))
RECENT = 40
"""Networks of these years that are shipped at least."""


def test_enough_networks_of_these_years_are_shipped():
    assert len({row["network"] for row in ROWS}) == len(ROWS) >= RECENT
    assert {row["network"] for row in ROWS} <= set(networks())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["network"])
def test_parameters_are_the_published_ones(row):
    network = networks()[row["network"]]
    assert network.parameters / 1e9 == pytest.approx(float(row["parameters_1e9"]), rel=0.02)
    layers = sum(count * layer.active_parameters(network.hidden) for layer, count in network.layers)
    tables = {"both": network.end_parameters, "head": network.embedding_parameters, "none": 0.0}[row["ends"]]
    assert (layers + tables) / 1e9 == pytest.approx(float(row["active_1e9"]), rel=0.1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["network"])
def test_bytes_of_a_token_are_those_counted_by_hand(row):
    by_hand = sum(prod(map(int, term.split("*"))) for term in row["kv_bytes_per_token"].split("+"))
    network, bf16 = networks()[row["network"]], precision("x")
    assert network.cache_bytes(1.0, bf16) - network.cache_bytes(0.0, bf16) == by_hand


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("Qwen/Qwen3-8B", "qwen3_8b"),
        ("openai/gpt-oss-120b", "gpt_oss_120b"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek_v3_2"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4_scout"),
        ("google/gemma-3-27b-it", "gemma_3_27b"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron_3_nano"),
        ("GLM-4.5-Air", "glm_4_5_air"),
        ("MiniMaxAI/MiniMax-M2.5", "minimax_m2"),
        ("MiniMaxAI/MiniMax-M3", "minimax_m3"),
        ("stepfun-ai/Step-3.7-Flash", "step_3_5_flash"),
    ],
)
def test_hub_ids_and_publishers_names_find_them(name, preset):
    assert load_network(name).name == preset


def test_windows_stop_the_cache_of_a_long_request():
    gemma = load_network("gemma_3_27b").cache_bytes(131_072.0, precision("x"))
    assert 16 * gemma == 16 * 2 * 16 * 128 * 2 * (52 * 1024 + 10 * 131_072)
    assert 16 * gemma / 1e9 == pytest.approx(179, rel=0.005)
    oss = load_network("gpt_oss_120b").cache_bytes(8192.0, precision("x"))
    assert oss == 2 * 8 * 64 * 2 * 18 * (128 + 8192)

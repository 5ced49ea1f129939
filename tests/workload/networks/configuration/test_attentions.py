"""Attentions of configurations: which layer has which kind, by every way in which configurations say it."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.configuration.attention_words import attention_words
from dse.workload.networks.configuration.attentions import attention_of
from dse.workload.networks.configuration.model_types import model_types, with_defaults

FILE = Path("net.json")
SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


def words(model_type, layers=8, **said):
    """Kinds of layers in runs: ``s5 f1``."""
    kind = model_types()[model_type]
    found = attention_words(with_defaults(SIZES | said, kind, FILE), kind, layers, FILE)
    return " ".join(f"{word[0]}{len(list(run))}" for word, run in groupby(found))


@pytest.mark.parametrize(
    ("model_type", "said", "expected"),
    [
        ("gemma3_text", {}, "s5 f1 s2"),
        ("gemma3_text", {"sliding_window_pattern": 2}, "s1 f1 s1 f1 s1 f1 s1 f1"),
        ("gemma3_text", {"_sliding_window_pattern": 2}, "s1 f1 s1 f1 s1 f1 s1 f1"),
        ("gemma2", {}, "s1 f1 s1 f1 s1 f1 s1 f1"),
        ("gpt_oss", {"layer_types": ["full_attention"] * 7 + ["sliding_attention"]}, "f7 s1"),
        ("cohere2", {"sliding_window_pattern": 4}, "s3 f1 s3 f1"),
        ("olmo3", {}, "s3 f1 s3 f1"),
        ("exaone4", {}, "s3 f1 s3 f1"),
        ("exaone4", {"sliding_window": None}, "f8"),
        ("cwm", {}, "f1 s3 f1 s3"),
        ("exaone4", {"sliding_window": 4096, "sliding_window_pattern": "LLLG"}, "s3 f1 s3 f1"),
        ("llama4_text", {}, "c3 f1 c3 f1"),
        ("llama4_text", {"no_rope_layers": [1, 0, 1, 1, 1, 1, 1, 1]}, "c1 f1 c6"),
        ("smollm3", {}, "f3 u1 f3 u1"),
        ("smollm3", {"no_rope_layer_interval": 2}, "f1 u1 f1 u1 f1 u1 f1 u1"),
        ("qwen3_next", {}, "l3 f1 l3 f1"),
        ("qwen3_next", {"full_attention_interval": 8}, "l7 f1"),
        ("bamba", {"attn_layer_indices": [2]}, "m2 f1 m5"),
        ("granitemoehybrid", {"layer_types": ["linear_attention"] * 7 + ["full_attention"]}, "m7 f1"),
        ("granitemoehybrid", {"layer_types": ["mamba"] * 7 + ["attention"]}, "m7 f1"),
        ("glm_moe_dsa", {"layer_types": ["indexed_attention"] * 8}, "f8"),
        ("glm_moe_dsa", {"layer_types": ["deepseek_sparse_attention"] * 8}, "f8"),
        ("mistral", {"sliding_window": 4096}, "s8"),
        ("mistral", {"sliding_window": None}, "f8"),
        ("qwen2", {"sliding_window": 4096, "max_window_layers": 6}, "f8"),
        ("qwen2", {"sliding_window": 4096, "max_window_layers": 6, "use_sliding_window": True}, "f6 s2"),
        ("dots1", {"sliding_window": 4096, "max_window_layers": 8}, "f8"),
        ("mimo", {"sliding_window": 32768, "max_window_layers": 4}, "f8"),
    ],
)
def test_layers_take_turns(model_type, said, expected):
    assert words(model_type, **said) == expected


@pytest.mark.parametrize("model_type", ["qwen3_moe", "deepseek_v3"])
def test_layers_with_an_indexer_are_refused_of_networks_without_one(model_type):
    with pytest.raises(InputError, match="layer_types has 'indexed_attention', which is not covered"):
        words(model_type, layer_types=["indexed_attention"] * 8)


def attention(model_type, word, **said):
    kind = model_types()[model_type]
    return attention_of(word, 0, with_defaults(SIZES | said, kind, FILE), kind, FILE)


@pytest.mark.parametrize("model_type", ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"])
def test_results_of_qwens_hybrids_are_gated_where_nothing_is_said(model_type):
    assert attention(model_type, "full").output_gate
    assert not attention(model_type, "full", attn_output_gate=False).output_gate


def test_a_window_of_all_positions_is_none():
    for positions, window in ((0, 4096), (4096, 0), (8192, 4096)):
        said = {"sliding_window": 4096, "max_position_embeddings": positions}
        assert attention("mistral", "sliding", **said).window == window


def test_what_classes_decide():
    window = attention("gemma3_text", "sliding", sliding_window=512)
    assert (window.window, window.qk_norm, window.rotary) == (512, "head", True)
    assert attention("gemma3_text", "full") == replace(window, window=0)
    assert attention("gpt_oss", "full").sinks
    assert attention("gemma2", "full").softcap
    assert not attention("gemma2", "full", attn_logit_softcapping=None).softcap
    chunked, unrotated = (attention("llama4_text", word) for word in ("chunked", "full"))
    assert (chunked.chunk, chunked.rotary, chunked.qk_norm) == (8192, True, "head")
    assert (unrotated.chunk, unrotated.rotary, unrotated.qk_norm) == (0, False, "none")
    assert attention("qwen3_next", "full").output_gate
    assert not attention("cohere2", "full").rotary and attention("cohere2", "sliding").rotary
    assert attention("exaone4", "full", sliding_window=None).rotary  # where no layer slides


def test_norms_of_queries_and_keys_may_be_turned_on_and_off():
    assert attention("glm4_moe", "full", use_qk_norm=True).qk_norm == "head"
    assert attention("glm4_moe", "full", use_qk_norm=False).qk_norm == "none"
    assert attention("olmo2", "full").qk_norm == "whole"


def test_gemma_4_has_other_heads_where_it_attends_to_all():
    said = {"sliding_window": 1024, "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True}
    full, window = (attention("gemma4_text", word, **said) for word in ("full", "sliding"))
    assert (full.head_dim, full.kv_heads, full.keys_as_values) == (32, 1, True)
    assert (window.head_dim, window.kv_heads, window.keys_as_values) == (16, 2, False)


@pytest.mark.parametrize(
    ("said", "shared"),
    [
        ({}, []),
        ({"indexer_types": ["full", "shared"] * 4}, [1, 3, 5, 7]),
        ({"index_topk_pattern": "FSSFSSFS"}, [1, 2, 4, 5, 7]),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, [3, 4, 5, 7]),
    ],
)
def test_indexers_are_shared_as_configurations_say(said, shared):
    latent = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}
    index = {"num_hidden_layers": 8, "index_n_heads": 4, "index_head_dim": 8, "index_topk": 16}
    kind = model_types()["glm_moe_dsa"]
    given = with_defaults(SIZES | latent | index | said, kind, FILE)
    found = [attention_of("full", layer, given, kind, FILE) for layer in range(8)]
    assert [layer for layer, one in enumerate(found) if not one.index_heads] == shared


def test_heads_of_mamba_may_follow_from_the_stream():
    said = {"mamba_n_heads": 8, "mamba_d_head": "auto", "mamba_expand": 2, "mamba_d_state": 16, "mamba_n_groups": 1}
    made = attention("bamba", "mamba", **said, mamba_d_conv=4, mamba_chunk_size=64)
    assert made.head_dim == 2 * SIZES["hidden_size"] // 8


@pytest.mark.parametrize("wrong", [3, ["1"], [True]])
def test_numbers_of_layers_with_attention_are_a_list(wrong):
    with pytest.raises(InputError, match=r"attn_layer_indices = .* is not accepted; give a list of numbers of layers"):
        words("bamba", attn_layer_indices=wrong)

"""Compressed attention as configurations say it: ratios of layers, in a list or in words, and what is refused."""

import json

import pytest

from dse.base.errors import InputError
from dse.workload.networks.huggingface import config_network

FLASH = {
    "model_type": "deepseek_v4",
    "hidden_size": 4096,
    "num_hidden_layers": 4,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "vocab_size": 129280,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "sliding_window": 128,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 512,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 2048,
    "hc_mult": 4,
    "compress_ratios": [0, 4, 128, 4, 0],
}
WORDS = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]


def network(tmp_path, **changes):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in (FLASH | changes).items() if value is not None}))
    return config_network(path)


def ratios(found):
    return {layer.attention.ratio: (count, layer.attention.index_topk) for layer, count in found.layers}


def test_every_layer_has_its_own_ratio_and_those_of_few_tokens_an_indexer(tmp_path):
    found = network(tmp_path)
    assert ratios(found) == {0: (1, 0), 4: (2, 512), 128: (1, 0)}
    assert {layer.streams for layer, _ in found.layers} == {4}
    assert [layer.kind for layer, _ in found.layers] == [
        "window 128 + mixture",
        "sparse compressed 4, best 512 + mixture",
        "compressed 128 + mixture",
    ]


def test_words_of_layers_say_the_same(tmp_path):
    words = {"compress_ratios": None, "layer_types": [*WORDS, WORDS[1]]}
    assert network(tmp_path, **words).layers == network(tmp_path).layers
    rates = {"compress_rates": {"heavily_compressed_attention": 64}}
    assert 64 in ratios(network(tmp_path, **words, **rates))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"compress_ratios": None}, "compress_ratios is missing"),
        ({"compress_ratios": [0, 4]}, "one for each of the 4 layers"),
        ({"compress_ratios": [0, 4, -1, 4]}, "list of whole numbers"),
        ({"compress_ratios": None, "layer_types": 4 * ["chunked"]}, "'chunked', which is not covered"),
        ({"o_groups": None}, "o_groups is missing"),
        ({"model_type": "llama"}, "this architecture is not covered with model_type = 'llama'"),
    ],
)
def test_what_is_missing_or_wrong_is_refused_by_its_key(tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        network(tmp_path, **changes)

"""Attention to chosen blocks as MiniMax-M3's configuration says it, and what is refused."""

import json

import pytest

from dse.base.errors import InputError
from dse.workload.networks.huggingface import config_network

SPARSE = {
    "use_sparse_attention": True,
    "sparse_attention_freq": [0, 1, 1],
    "sparse_disable_index_value": [0, 1, 1],
    "sparse_num_index_heads": 4,
    "sparse_index_dim": 128,
    "sparse_block_size": 128,
    "sparse_topk_blocks": 16,
}
M3 = {
    "model_type": "minimax_m3",
    "hidden_size": 6144,
    "num_hidden_layers": 3,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 200064,
    "hidden_act": "swigluoai",
    "dense_intermediate_size": 12288,
    "intermediate_size": 3072,
    "moe_intermediate_size": 3072,
    "shared_intermediate_size": 3072,
    "n_shared_experts": 1,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "moe_layer_freq": [0, 1, 1],
    "sparse_attention_config": SPARSE,
}


def kinds(tmp_path, **changes):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(M3 | changes))
    return [(layer.kind, count) for layer, count in config_network(path).layers]


def test_what_every_token_passes_has_a_width_of_its_own(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(M3 | {"shared_intermediate_size": 6144}))
    assert {layer.mlp.shared_ffn for layer, count in config_network(path).layers if count == 2} == {6144}


def test_listed_layers_choose_blocks_and_the_others_attend_all(tmp_path):
    assert kinds(tmp_path) == [("full + dense", 1), ("block sparse 16 x 128 + mixture", 2)]
    every = SPARSE | {"use_sparse_attention": False}
    assert kinds(tmp_path, sparse_attention_config=every) == [("full + dense", 1), ("full + mixture", 2)]


def test_layers_without_experts_have_a_width_of_their_own(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(M3))
    (dense, _), (mixture, _) = config_network(path).layers
    assert (dense.mlp.ffn, dense.mlp.activation) == (12288, "silu")
    assert (mixture.mlp.ffn, mixture.mlp.shared_ffn) == (3072, 3072)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sparse_attention_config": [1]}, "sparse_attention_config is not an object"),
        ({"sparse_attention_config": SPARSE | {"sparse_disable_index_value": [0, 1, 0]}}, "of layer 2 is 0"),
        ({"sparse_attention_config": SPARSE | {"sparse_attention_freq": [1]}}, "states 1 layers, and there are 3"),
        ({"sparse_attention_config": SPARSE | {"sparse_topk_blocks": None}}, "sparse_topk_blocks is missing"),
        ({"model_type": "llama"}, "is not covered"),
    ],
)
def test_what_is_missing_or_wrong_is_refused(tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        kinds(tmp_path, **changes)

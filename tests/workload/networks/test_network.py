"""Networks: the shipped shapes, and Hugging Face configurations, covered or refused."""

import csv
import json
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.network import load_network, networks, stated_quantisation

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


def config(tmp_path, **changes):
    """Path of a config.json: LLAMA with changes (None removes a key)."""
    path = tmp_path / "net" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({k: v for k, v in (LLAMA | changes).items() if v is not None}))
    return path


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama2_7b", 6.74), ("llama3_8b", 8.03), ("llama3_70b", 70.6), ("mixtral_8x7b", 46.7), ("opt_13b", 12.85),
     ("qwen2_5_7b", 7.6), ("gpt3_175b", 174.6), ("llama3_405b", 405.9), ("bloom_176b", 176.2), ("bloom_7b1", 7.07),
     ("gemma_7b", 8.54), ("gptj_6b", 6.05), ("qwen1_5_7b", 7.72), ("codellama_34b", 33.74),
     ("qwen_72b", 72.3), ("internlm_20b", 20.1), ("phi_2", 2.78)],
)  # fmt: skip
def test_published_sizes(name, billions):
    assert load_network(name).parameters / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize("network", networks().values(), ids=list(networks()))
def test_a_shipped_network_is_consistent_and_sourced(network):
    assert network.heads % network.kv_heads == 0
    assert 1 <= network.experts_per_token <= network.experts
    assert network.norm in ("rmsnorm", "layernorm") and network.activation in ("silu", "gelu", "relu")
    assert network.source
    assert network.positions >= 1024


def test_names_are_forgiving_and_typos_helped():
    assert load_network("Llama-3.1-8B").name == load_network("LLAMA3_8b").name == "llama3_8b"
    with pytest.raises(InputError, match="no network is called 'lama3_8b'; did you mean 'llama3_8b'"):
        load_network("lama3_8b")


@pytest.mark.parametrize(
    "name", ["opt-1.3b", "OPT_1.3B", "gpt3_1.3b", "GPT-3 1.3B", "qwen2_57b", "llama2_1.3b", "qwen2.5_3.2b"]
)
def test_another_size_is_no_spelling_of_a_shipped_one(name):
    with pytest.raises(InputError, match="no network is called"):
        load_network(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Qwen2.5 7B", "qwen2_5_7b"),
        ("qwen-2-5-7b", "qwen2_5_7b"),
        ("GPT-3 6.7B", "gpt3_6_7b"),
        ("gpt3-13b", "gpt3_13b"),
        ("opt_6.7b", "opt_6_7b"),
        ("mixtral 8x7b", "mixtral_8x7b"),
        ("bloom-7b1", "bloom_7b1"),
    ],
)
def test_what_parts_two_digits_may_be_written_in_any_way(name, found):
    assert load_network(name).name == found


def test_published_names_find_their_own_shape():
    path = Path(__file__).parents[4] / "shared" / "data" / "hardware" / "llms.csv"
    if not path.exists():
        pytest.skip("the published tables are not beside the checkout")
    for row in csv.DictReader(path.open(encoding="utf-8")):
        try:
            known = load_network(row["model"])
        except InputError:
            continue
        assert (known.layers, known.hidden) == (int(row["layers"]), int(row["hidden"])), row["model"]


def test_a_folder_of_the_same_name_does_not_replace_a_shipped_network(tmp_path, monkeypatch):
    (tmp_path / "llama3_8b").mkdir()
    (tmp_path / "llama3_8b" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert load_network("llama3_8b") == networks()["llama3_8b"]


def test_a_hugging_face_config_is_the_shipped_network(tmp_path):
    found, shipped = load_network(str(config(tmp_path))), networks()["llama3_8b"]
    same = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "vocab", "norm", "activation", "tied")
    assert {key: getattr(found, key) for key in same} == {key: getattr(shipped, key) for key in same}
    assert load_network(str(tmp_path / "net")) == found
    assert found.positions == 0
    assert load_network(str(config(tmp_path, max_position_embeddings=8192))).positions == 8192


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_key_value_heads": None}, {"kv_heads": 32}),
        ({"head_dim": 64}, {"head_dim": 64}),
        ({"head_dim": 64, "hidden_size": 4097}, {"head_dim": 64}),
        ({"sliding_window": 4096}, {"window": 4096}),
        ({"sliding_window": 4096, "use_sliding_window": False}, {"window": 0}),
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, {"experts": 8, "experts_per_token": 2}),
        ({"model_type": "gpt2", "hidden_act": "gelu_new"}, {"gated": False, "norm": "layernorm", "rotary": False}),
        ({"model_type": "gemma", "hidden_act": "gelu", "tie_word_embeddings": None}, {"gated": True, "tied": True}),
        ({"model_type": "falcon", "multi_query": True, "num_key_value_heads": None}, {"kv_heads": 1, "gated": False}),
        # Falcon-7B's own configuration holds 71 key-value heads, which only its new architecture reads.
        (
            {"model_type": "falcon", "multi_query": True, "num_kv_heads": 32, "num_key_value_heads": None},
            {"kv_heads": 1},
        ),
        ({"model_type": "falcon", "new_decoder_architecture": True, "multi_query": True}, {"kv_heads": 8}),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 32},
            {"window": 0},
        ),
        ({"model_type": "cohere", "tie_word_embeddings": None}, {"tied": True, "norm": "layernorm", "gated": True}),
        ({"model_type": None}, {"kv_heads": 8, "gated": True}),
        # What is gated is the kind's to say: ReluLLaMA has a gate too.
        ({"hidden_act": "relu"}, {"gated": True}),
        ({"model_type": "qwen2", "hidden_act": "gelu"}, {"gated": True}),
        ({"model_type": "falcon", "intermediate_size": None, "ffn_hidden_size": 8192}, {"ffn": 8192, "gated": False}),
        ({"model_type": "olmo"}, {"norm": "layernorm"}),
        (
            {"model_type": "qwen3_moe", "num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
            {"experts": 64, "ffn": 768},
        ),
        ({"text_config": LLAMA | {"vocab_size": 7}}, {"vocab": 7}),
        ({"decoder_sparse_step": 1, "mlp_only_layers": []}, {"experts": 1}),
    ],
)
def test_spellings_and_defaults_of_configurations(tmp_path, changes, expected):
    network = load_network(str(config(tmp_path, **changes)))
    assert {key: getattr(network, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hidden_size": None}, "hidden_size or n_embd or d_model is missing"),
        ({"hidden_size": "4096"}, "hidden_size = '4096' is not accepted; give a whole number of at least 1"),
        ({"vocab_size": -5}, "vocab_size = -5 is not accepted; give a whole number of at least 1"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0 is not accepted"),
        ({"kv_lora_rank": 512}, "kv_lora_rank = 512: this architecture is not covered"),
        ({"shared_expert_intermediate_size": 5632}, "shared_expert_intermediate_size = 5632: this architecture"),
        ({"mamba_d_state": 16}, "mamba_d_state = 16: this architecture is not covered"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step = 2: this architecture is not covered"),
        ({"mlp_only_layers": [0, 3]}, "mlp_only_layers = .0, 3.: this architecture is not covered"),
        ({"model_type": "bert"}, "model_type = 'bert': this architecture is not covered"),
        ({"model_type": "qwen"}, "model_type = 'qwen': this architecture is not covered; known are "),
        ({"model_type": "gemma2"}, "model_type = 'gemma2': this architecture is not covered"),
        ({"num_key_value_heads_per_layer": [4, 1]}, "num_key_value_heads_per_layer = .4, 1.: this architecture"),
        ({"intermediate_size": None}, "intermediate_size or ffn_dim or ffn_hidden_size or n_inner is missing"),
        ({"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 28}, "layers of different kinds"),
        ({"text_config": 3}, "text_config is not an object"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, "layers of different kinds"),
        ({"num_key_value_heads": 5}, "5 key-value heads do not go with 32"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "9 experts a token do not go with 8"),
        ({"num_local_experts": 8}, "num_experts_per_tok or moe_topk is missing"),
        ({"hidden_size": 4097}, "hidden_size = 4097 is no multiple of num_attention_heads = 32; give head_dim"),
        (
            {"num_attention_heads": None, "n_head": 33, "num_key_value_heads": 1},
            "hidden_size = 4096 is no multiple of n_head = 33; give head_dim",
        ),
        ({"head_dim": 0}, "head_dim = 0 is not accepted; give a whole number of at least 1"),
        ({"layer_types": 5}, "layer_types = 5 is not accepted; give a list of texts"),
        ({"layer_types": [["full_attention"]]}, "layer_types = .* is not accepted; give a list of texts"),
        (
            {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": "x"},
            "max_window_layers = 'x' is not",
        ),
    ],
)
def test_configurations_that_are_not_covered_are_refused(tmp_path, changes, sentence):
    with pytest.raises(InputError, match=sentence):
        load_network(str(config(tmp_path, **changes)))


def test_quantised_weights_are_seen_by_name_and_by_configuration(tmp_path):
    assert stated_quantisation("Llama-3.1-8B-Instruct-FP8") == "FP8"
    assert stated_quantisation("llama3_8b") == stated_quantisation(str(config(tmp_path))) == ""
    quantised = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    assert stated_quantisation(str(config(tmp_path, **quantised))) == "gptq of 4 bits"
    with pytest.raises(InputError, match=r"config\.json: quantization_config = \[1\] is not accepted; give an object"):
        stated_quantisation(str(config(tmp_path, quantization_config=[1])))


def test_files_that_are_no_configuration_are_refused(tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "twice.json").write_text('{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}')
    for name, sentence in (
        ("list.json", "holds list"),
        ("bad.json", "not a JSON file"),
        ("none.json", "no such file"),
        ("twice.json", "twice.json: key 'vocab_size' stands twice; give it once"),
    ):
        with pytest.raises(InputError, match=sentence):
            load_network(str(tmp_path / name))


def test_a_configuration_may_mark_the_order_of_its_bytes(tmp_path):
    path = config(tmp_path)
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert load_network(str(path)).layers == 32

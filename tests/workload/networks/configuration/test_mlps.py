"""MLPs of configurations: which layers have experts, by every way in which configurations say it."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.configuration.mlps import activation_of, mlp_of, with_experts
from dse.workload.networks.configuration.model_types import model_types

FILE = Path("net.json")
SIZES = {"hidden_size": 64, "num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 256}


@pytest.mark.parametrize(
    ("said", "layers"),
    [
        ({}, "111111"),
        ({"num_experts": 0}, "000000"),
        ({"first_k_dense_replace": 2}, "001111"),
        ({"moe_layer_start_index": 1, "moe_layer_interval": 1}, "011111"),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": 4}, "011110"),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": -1}, "011111"),
        ({"decoder_sparse_step": 2}, "010101"),
        ({"mlp_only_layers": [0, 3]}, "011011"),
        ({"interleave_moe_layer_step": 3}, "001001"),
        ({"moe_layer_freq": 2}, "101010"),
        ({"moe_layer_freq": [0, 1, 1, 0, 1, 1]}, "011011"),
        ({"moe_layers": [5]}, "000001"),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse", "sparse", "dense"]}, "011110"),
    ],
)
def test_layers_with_experts(said, layers):
    found = with_experts(SIZES | said, model_types()["qwen3_moe"], 6, FILE)
    assert "".join(str(int(here)) for here in found) == layers


def test_more_dense_layers_than_there_are_is_refused():
    with pytest.raises(InputError, match="first_k_dense_replace = 7 does not go with 6 layers"):
        with_experts(SIZES | {"first_k_dense_replace": 7}, model_types()["dots1"], 6, FILE)


@pytest.mark.parametrize(
    ("model_type", "said", "shared"),
    [
        ("mixtral", {}, 0),
        ("deepseek_v3", {"moe_intermediate_size": 32, "n_shared_experts": 2}, 64),
        ("qwen2_moe", {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 96}, 96),
        ("llama4_text", {}, 256),
        ("granitemoehybrid", {"shared_intermediate_size": 48}, 48),
        ("bailing_moe", {"moe_intermediate_size": 32, "num_shared_experts": 2}, 64),
        (  # vllm-project/vllm models/bailing_moe: each of the shared experts has the width that is stated of one
            "bailing_moe",
            {"moe_intermediate_size": 32, "num_shared_experts": 2, "moe_shared_expert_intermediate_size": 48},
            96,
        ),
    ],
)
def test_what_every_token_passes_beside_its_experts(model_type, said, shared):
    mixture = mlp_of(True, SIZES | said, model_types()[model_type], FILE)
    assert (mixture.experts, mixture.experts_per_token, mixture.shared_ffn) == (8, 2, shared)
    assert mixture.shared_gate == (model_type == "qwen2_moe")


def test_dense_layers_may_be_wider_than_experts():
    said = SIZES | {"intermediate_size_mlp": 512}
    assert mlp_of(False, said, model_types()["llama4_text"], FILE).ffn == 512
    assert mlp_of(True, said, model_types()["llama4_text"], FILE).ffn == 256


def test_experts_may_work_on_latents():
    mixture = mlp_of(
        True, SIZES | {"moe_latent_size": 16, "mlp_hidden_act": "relu2"}, model_types()["nemotron_h"], FILE
    )
    assert (mixture.latent, mixture.gated, mixture.activation) == (16, False, "relu")
    assert mixture.parameters(64) == 8 * 2 * 16 * 256 + 2 * 64 * 16


def test_gates_are_the_classs_or_the_activations():
    assert activation_of({"hidden_act": "silu"}, model_types()["llama"], Path("c.json")) == (True, "silu")
    assert activation_of({}, model_types()["gpt2"], Path("c.json")) == (False, "gelu")
    assert activation_of({"hidden_act": "swiglu"}, model_types()["gpt2"], Path("c.json")) == (True, "silu")


def test_an_activation_of_no_kind_is_refused():
    with pytest.raises(InputError, match=r"c\.json: hidden_act = 'frobnicate' is not known"):
        activation_of({"hidden_act": "frobnicate"}, model_types()["llama"], Path("c.json"))

"""Layers of two attentions: LongCat-Flash's experts beside the first of its dense MLPs."""

import pytest

from dse.base.errors import InputError
from dse.workload.networks.names import load_network
from dse.workload.parse import load_workload
from tests.workload.networks.configurations import LONGCAT, config


def test_parameters_are_the_published_ones(tmp_path):
    network = load_network(str(config(tmp_path, **LONGCAT)))
    assert network.parameters / 1e9 == pytest.approx(560, rel=0.02)
    assert network.active_parameters / 1e9 == pytest.approx(27, rel=0.1)  # between 18.6 and 31.3


def test_a_layer_is_two_of_latent_attention_one_of_them_with_experts(tmp_path):
    (first, count), (second, again) = load_network(str(config(tmp_path, **LONGCAT))).layers
    assert (count, again) == (28, 28)
    assert first.attention == second.attention
    mixture = first.mlp
    assert (mixture.experts, mixture.experts_per_token, mixture.ffn, mixture.shared_ffn) == (512, 8, 2048, 12288)
    assert second.mlp.ffn == 12288


def test_a_third_of_the_choices_computes_nothing(tmp_path):
    text = f"{config(tmp_path, **LONGCAT)}:phase=decode,batch=64,context=1024,tp=8"
    made = {operator.name: operator.candidates[0].kernel for operator in load_workload(text).operators}
    assert made["expert_down_projection_experts"].fma == pytest.approx(64 * 8 * 6144 * 2048 / 8)
    assert made["shared_down_projection_experts"].fma == 64 * 6144 * 12288 / 8
    assert made["down_projection_dense"].fma == 64 * 6144 * 12288 / 8


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"moe_topk": 600}, "600 experts a token do not go with 512"),
        ({"zero_expert_num": -1}, "zero_expert_num = -1 is not accepted"),
        ({"num_layers": 20_000}, "20,000 layers are not accepted"),
        ({"expert_ffn_hidden_size": None}, "expert_ffn_hidden_size or moe_intermediate_size is missing"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(tmp_path, said, sentence):
    with pytest.raises(InputError, match=sentence):
        load_network(str(config(tmp_path, **(LONGCAT | said))))

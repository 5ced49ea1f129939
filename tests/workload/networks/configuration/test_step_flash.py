"""Step-3.5: sizes of layers that slide, lists beyond the layers, layers with experts by number."""

import json

import pytest

from dse.base.errors import InputError
from dse.workload.networks.huggingface import config_network

STEP = {
    "model_type": "step3p5",
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_hidden_layers": 4,
    "num_attention_heads": 64,
    "num_attention_groups": 8,
    "head_dim": 128,
    "vocab_size": 128896,
    "layer_types": ["full_attention", *(3 * ["sliding_attention"]), "full_attention"],
    "sliding_window": 512,
    "attention_other_setting": {
        "attention_type": "sliding_attention",
        "num_attention_heads": 96,
        "num_attention_groups": 4,
        "head_dim": 128,
    },
    "moe_layers_enum": "2, 3",
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
}


def layers(tmp_path, **changes):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in (STEP | changes).items() if value is not None}))
    return config_network(path).layers


def sizes(found):
    return [(layer.attention.heads, layer.attention.kv_heads, layer.attention.window, count) for layer, count in found]


def test_layers_that_slide_have_sizes_of_their_own(tmp_path):
    assert sizes(layers(tmp_path)) == [(64, 8, 0, 1), (96, 4, 512, 1), (96, 4, 512, 2)]
    same = layers(tmp_path, attention_other_setting=None)
    assert sizes(same) == [(64, 8, 0, 1), (64, 8, 512, 1), (64, 8, 512, 2)]
    assert sizes(layers(tmp_path, attention_other_setting=None, num_sliding_attention_heads=96))[1][0] == 96


@pytest.mark.parametrize("said", ["2, 3", [2, 3]])
def test_numbered_layers_have_experts(tmp_path, said):
    found = layers(tmp_path, moe_layers_enum=said)
    assert [layer.mlp.kind for layer, _ in found] == ["dense", "dense", "mixture"]
    assert (found[2][0].mlp.experts_per_token, found[2][0].mlp.shared_ffn) == (8, 1280)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"moe_layers_enum": "2, three"}, "moe_layers_enum = .2, three. is not accepted"),
        ({"attention_other_setting": [96]}, "attention_other_setting is not an object"),
        ({"layer_types": ["full_attention"]}, "layer_types states 1 layers, and there are 4"),
        ({"model_type": "llama", "layer_types": None}, "attention_other_setting = .*not covered"),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        layers(tmp_path, **changes)

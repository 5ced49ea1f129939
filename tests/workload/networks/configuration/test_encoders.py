"""Encoders of configurations: what is read, and what keeps its note."""

import json

import pytest

from dse.workload.networks.names import load_network
from dse.workload.networks.network import networks
from tests.workload.networks.configurations import LLAMA

KIMI = {
    "model_type": "",
    "vt_hidden_size": 1152,
    "vt_intermediate_size": 4304,
    "vt_num_attention_heads": 16,
    "vt_num_hidden_layers": 27,
    "patch_size": 14,
    "merge_kernel_size": [2, 2],
    "init_pos_emb_height": 64,
    "init_pos_emb_width": 64,
}


def network(tmp_path, **parts):
    """A Llama with other parts beside its language model."""
    (tmp_path / "config.json").write_text(json.dumps({"text_config": LLAMA, **parts}))
    return load_network(str(tmp_path))


def test_a_configuration_has_the_encoder_of_the_shipped_network(tmp_path):
    vision = {"model_type": "llama4_vision_model", "hidden_size": 1408, "image_size": 336}
    found, shipped = network(tmp_path, vision_config=vision).encoder, networks()["llama4_scout"].encoder
    assert (found.source, found.layers, found.widths[:2]) == (shipped.source, shipped.layers, shipped.widths[:2])
    assert found.widths[2] == LLAMA["hidden_size"]


def test_an_encoder_takes_the_model_type_of_the_whole_where_it_has_none(tmp_path):
    found = network(tmp_path, model_type="kimi_k25", vision_config=KIMI)
    assert found.encoder.parameters / 1e6 == pytest.approx(417 + (4608 * 4608 + 4608 * 4096) / 1e6, rel=0.002)
    assert "without its" not in found.title


def test_layers_with_windows_are_told_from_those_that_attend_all(tmp_path):
    vision = {"depth": 8, "hidden_size": 1280, "fullatt_block_indexes": [3, 7]}
    layers = network(tmp_path, model_type="qwen2_5_vl", vision_config=vision).encoder.layers
    assert [(layer.label, count) for layer, count in layers] == [("window", 6), ("full", 2)]


@pytest.mark.parametrize(
    "parts",
    [
        {"vision_config": {"model_type": "my_vision", "hidden_size": 64}},
        {"model_type": "qwen2_5_vl", "vision_config": {"depth": 32}},  # its width is not given
        {"img_processor": {"name": "clip_vision_model"}},
        {"model_type": "voxtral", "vision_config": {"hidden_size": 64}},  # a type of sounds
    ],
)
def test_an_encoder_that_is_not_known_keeps_its_note(tmp_path, parts):
    found = network(tmp_path, **parts)
    assert found.encoder is None
    assert found.title.endswith("(language model alone, without its vision encoder)")


PHI_VISION = LLAMA | {
    "model_type": "phi3_v",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_key_value_heads": 32,
    "vocab_size": 32064,
    "img_processor": {"name": "clip_vision_model", "image_dim_out": 1024, "num_img_tokens": 144},
}


def test_phi_vision_has_clips_layers_but_the_last(tmp_path):
    """Of 4.15e9 parameters (microsoft/Phi-3.5-vision-instruct) 3.82e9 are the text's."""
    (tmp_path / "config.json").write_text(json.dumps(PHI_VISION))
    found = load_network(str(tmp_path))
    assert "without" not in found.title
    assert found.parameters == pytest.approx(3.82e9, rel=0.005)
    assert (found.parameters + found.encoder.parameters) == pytest.approx(4.15e9, rel=0.01)


SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384, "patch_size": 14}


@pytest.mark.parametrize("whole", ["llava_onevision", "paligemma", "aya_vision", "deepseek_vl"])
def test_an_encoder_that_a_network_takes_otherwise_is_left_out(tmp_path, whole):
    """Gemma 3 pools the patches of the same encoder; these do not."""
    assert network(tmp_path, model_type="gemma3", vision_config=SIGLIP).encoder is not None
    found = network(tmp_path, model_type=whole, vision_config=SIGLIP)
    assert found.encoder is None and "without its vision encoder" in found.title


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("speech_config", "audio encoder"),
        ("acoustic_tokenizer_config", "audio encoder"),
        ("visual_config", "vision encoder"),
        ("encoder_config", "encoder"),
    ],
)
def test_parts_under_other_names_keep_their_note_too(tmp_path, key, said):
    assert network(tmp_path, **{key: {"hidden_size": 64}}).title.endswith(f"(language model alone, without its {said})")


def test_the_encoder_that_is_not_read_is_said_beside_the_one_that_is(tmp_path):
    found = network(tmp_path, model_type="gemma4", vision_config={"hidden_size": 768}, audio_config={"hidden_size": 64})
    assert found.encoder is not None and found.encoder.medium == "images"
    assert found.title.endswith("(language model alone, without its audio encoder)")

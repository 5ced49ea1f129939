"""Encoders: their published parameters, and one layer of each kind by hand."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import precision
from dse.workload.networks.network import networks
from dse.workload.target import Target

BF16 = precision("test", "bf16")


def operators(name, count, *size, gpus=1):
    """The operators of ``count`` images by name, and their grid."""
    encoder = networks()[name].encoder
    grid = encoder.source.grid(*size)
    made = encoder.operators(count, grid, BF16, gpus, Target((9.0, 9.0)), "encode")
    return {operator.name.removeprefix("encoder_"): operator for operator in made}, grid


def fma(operator):
    """Multiply-adds of an operator, once."""
    return operator.candidates[0].kernel.fma


@pytest.mark.parametrize(
    ("name", "millions", "without", "source"),
    [
        ("qwen2_5_vl_7b", 676.0, 0, "Qwen/Qwen2.5-VL-7B-Instruct: 8.292e9 parameters, 7.616e9 of them Qwen2.5-7B's"),
        ("qwen3_vl_8b", 576.4, 0, "Qwen/Qwen3-VL-8B-Instruct: 8.767e9 parameters, 8.191e9 of them Qwen3-8B's"),
        ("gemma_3_27b", 417, 1, "Gemma 3 report (2025), table 1: vision encoder of 417M"),
        ("voxtral_mini_3b", 640, 1, "Voxtral report (2025), table 1: audio encoder of 640M"),
        (
            "llama4_scout",
            867,
            0,
            "Llama-4-Scout: 108.64e9 parameters, 107.77e9 of them the language model's",
        ),
    ],
)
def test_parameters_are_the_published_ones(name, millions, without, source):
    encoder = networks()[name].encoder
    counted = encoder.parameters - without * encoder.projector_parameters
    assert counted / 1e6 == pytest.approx(millions, rel=0.008), source


def test_the_adapter_of_voxtral_has_its_published_parameters():
    assert networks()["voxtral_mini_3b"].encoder.projector_parameters / 1e6 == pytest.approx(25, rel=0.02)


def test_a_layer_of_windows_by_hand():
    made, grid = operators("qwen2_5_vl_7b", 2, 448, 448)  # 32 x 32 patches: 16 windows of 8 x 8
    tokens = 2 * 1024
    assert grid.patches == 1024
    assert fma(made["qkv_projection_window"]) == tokens * 3840 * 1280
    assert fma(made["attention_window"]) == 2 * 16 * 16 * 64 * 64 * 160  # images, windows, heads, scores, both products
    assert fma(made["attention_full"]) == 2 * 16 * 1024 * 1024 * 160
    assert fma(made["gate_up_projection_window"]) == tokens * 6840 * 1280
    assert fma(made["down_projection_window"]) == tokens * 3420 * 1280
    assert [made[f"attention_{kind}"].repeats for kind in ("window", "full")] == [28, 4]
    kernel = made["attention_window"].candidates[0].kernel
    assert kernel.warm_bytes == tokens * 1280 * 2  # queries
    assert kernel.cold_bytes == 2 * tokens * 1280 * 2  # keys and values
    assert kernel.write_bytes == tokens * 1280 * 2


def test_ends_of_an_encoder_of_images_by_hand():
    made, grid = operators("qwen3_vl_8b", 1, 512, 512)
    assert fma(made["patch_embedding"]) == 1024 * (3 * 2 * 16 * 16) * 1152
    assert fma(made["projector_1"]) == grid.tokens * 4608 * 4608
    assert fma(made["projector_2"]) == grid.tokens * 4608 * 4096
    assert made["projector_1"].repeats == 4  # of the last layer and of three before it


def test_a_layer_and_the_convolutions_of_an_encoder_of_sounds_by_hand():
    made, _ = operators("voxtral_mini_3b", 1, 60)
    assert fma(made["first_convolution"]) == 2 * 3000 * 3 * 128 * 1280
    assert fma(made["second_convolution"]) == 2 * 1500 * 3 * 1280 * 1280
    assert fma(made["attention"]) == 2 * 20 * 1500 * 1500 * 128
    assert fma(made["up_projection"]) == 2 * 1500 * 1280 * 5120
    assert fma(made["projector_1"]) == 2 * 375 * 5120 * 3072


def test_layers_pooled_and_normed_by_head_have_the_kernels_of_that():
    made, grid = operators("gemma_4_26b_a4b", 1, 960, 672)
    assert {"query_norm", "key_norm", "attention_post_norm", "mlp_post_norm", "pooling"} <= made.keys()
    assert fma(made["projector_1"]) == grid.tokens * 1152 * 2816


def test_gpus_share_the_layers_out_and_not_the_ends():
    alone, _ = operators("qwen3_vl_8b", 1, 512, 512)
    shared, _ = operators("qwen3_vl_8b", 1, 512, 512, gpus=4)
    assert fma(shared["attention"]) == fma(alone["attention"]) / 4
    assert fma(shared["projector_1"]) == fma(alone["projector_1"])
    encoder = networks()["qwen3_vl_8b"].encoder
    ends = encoder.stem_parameters + encoder.projector_parameters
    assert encoder.weight_bytes(BF16, 4) == pytest.approx((ends + (encoder.parameters - ends) / 4) * 2)
    with pytest.raises(InputError, match="tp=8 does not divide the 20 heads of the encoder"):
        networks()["voxtral_mini_3b"].encoder.check(8, "w", "Voxtral")


def test_an_encoder_stays_in_the_type_of_the_stream():
    encoder = networks()["qwen3_vl_8b"].encoder
    narrow = replace(BF16, weights="fp8", activations="fp8")
    assert encoder.weight_bytes(narrow, 1) == encoder.parameters * element_bytes("bf16")

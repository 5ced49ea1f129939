"""What checkpoints say of their types, as publishers and tools write it."""

import pytest

from dse.base.errors import InputError
from dse.workload.networks.stated_types import types_of_file, types_of_name, wide_type
from tests.workload.networks.configurations import config

BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128]}
EIGHT = {"num_bits": 8, "type": "float", "dynamic": True}
FOUR = {"num_bits": 4, "type": "float", "group_size": 16}
GROUP = {"weights": {"num_bits": 4, "type": "int"}, "input_activations": None}


@pytest.mark.parametrize(
    ("said", "method", "settings"),
    [
        (BLOCKS, "fp8", {"dtype": "fp8_block"}),
        (BLOCKS | {"weight_block_size": [64, 64]}, "fp8", {}),
        ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8", {"dtype": "fp8_static"}),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8", {"dtype": "fp8"}),
        ({"quant_method": "mxfp4"}, "mxfp4", {"dtype": "w4a16_mxfp4"}),
        ({"quant_method": "gptq", "bits": 4}, "gptq of 4 bits", {"dtype": "w4a16"}),
        ({"quant_method": "awq", "bits": 3}, "awq of 3 bits", {}),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": GROUP}},
            "compressed-tensors",
            {"dtype": "w4a16"},
        ),
        ({"quant_method": "compressed-tensors"}, "compressed-tensors", {}),
        ({"quant_method": "bitsandbytes"}, "bitsandbytes", {}),
        ({"quant_method": "fbgemm_fp8"}, "fbgemm_fp8", {"dtype": "fp8"}),
        ({"quant_method": "auto-round", "bits": 4}, "auto-round of 4 bits", {"dtype": "w4a16"}),
        ({"quant_method": "gptq", "bits": {"a": 1}}, "gptq of {'a': 1} bits", {}),
        ({"config_groups": {"a": {"weights": EIGHT, "input_activations": EIGHT}}}, "KEY", {"dtype": "fp8"}),
        (
            {"config_groups": {"a": {"weights": EIGHT, "input_activations": EIGHT | {"dynamic": False}}}},
            "KEY",
            {"dtype": "fp8_static"},
        ),
        ({"config_groups": {"a": {"weights": FOUR, "input_activations": FOUR}}}, "KEY", {"dtype": "nvfp4"}),
        ({"config_groups": {"a": {"weights": FOUR | {"group_size": 32}, "input_activations": FOUR}}}, "KEY", {}),
        (
            {
                "config_groups": {
                    "a": {
                        "weights": EIGHT | {"strategy": "block", "block_structure": [64, 64]},
                        "input_activations": EIGHT,
                    }
                }
            },
            "KEY",
            {},
        ),
        ({"config_groups": {"a": None, "b": {"weights": "x"}}}, "KEY", {}),
        ({"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": None}}, "MIXED_PRECISION of None", {}),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"}, "FP8 with a cache of NVFP4", {}),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}},
            "NVFP4",
            {"dtype": "nvfp4", "kv": "fp8"},
        ),
    ],
)
@pytest.mark.parametrize("key", ["quantization_config", "compression_config"])
def test_what_is_said_becomes_settings(tmp_path, key, said, method, settings):
    found = types_of_file(config(tmp_path, **{key: said}))
    assert (found.method, found.settings) == (key if method == "KEY" else method, settings)
    within = types_of_file(config(tmp_path, text_config={key: said}))
    assert (within.method.removeprefix("text_config: "), within.settings) == (found.method, settings)


def test_experts_of_four_bits_decide_the_types_of_all_weights(tmp_path):
    found = types_of_file(config(tmp_path, quantization_config=BLOCKS, expert_dtype="fp4"))
    assert (found.method, found.settings) == ("fp8, expert_dtype fp4", {"dtype": "w4a8_mxfp4_mxfp8"})
    assert types_of_file(config(tmp_path, quantization_config=BLOCKS, expert_dtype="fp8")).method == "fp8"


def test_the_file_of_modelopt_stands_beside(tmp_path):
    path = config(tmp_path)
    assert types_of_file(path).method == ""
    beside = '{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}'
    (path.parent / "hf_quant_config.json").write_text(beside)
    assert types_of_file(path).settings == {"dtype": "fp8_static", "kv": "fp8"}


def test_what_is_no_object_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"quantization_config = \[1\] is not accepted; give an object with quant_meth"
    ):
        types_of_file(config(tmp_path, quantization_config=[1]))


def test_a_name_says_a_method_alone():
    assert types_of_name("Llama-3.1-8B-Instruct-FP8").method == "FP8"
    assert types_of_name("llama3_8b").method == ""


def test_numbers_that_are_not_quantised_have_a_type(tmp_path):
    assert wide_type(config(tmp_path)) == "bf16"
    assert wide_type(config(tmp_path, torch_dtype="float16")) == "fp16"

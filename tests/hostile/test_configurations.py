"""Configurations of networks meet values of every wrong type in every place: each is read, or answered by our error."""

import copy
import json
import random

import pytest

from dse.base.errors import InputError
from dse.workload.networks.huggingface import config_network
from dse.workload.networks.stated_types import types_of_file, wide_type
from tests.workload.networks import configurations

WRONG = (
    None, 0, -1, 1, 1.5, 8.0, True, False, "", "x", "4096", [], [0], [1], ["x"], [None], [[1]], {}, {"a": 1},
    {"a": None}, 10**12, 10**30, float("nan"), float("inf"), [0] * 4000,
)  # fmt: skip
"""What stands in a value's place."""

QUANTISED = configurations.LLAMA | {
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "bits": 4,
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        "quantized_layers": {"a": {"quant_algo": "FP8"}},
        "config_groups": {
            "a": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8, "type": "float"}}
        },
    }
}
SEEING = {
    "model_type": "qwen3_vl",
    "text_config": configurations.LLAMA | {"model_type": "qwen3_vl_text"},
    "vision_config": {
        "model_type": "qwen3_vl",
        "depth": 24,
        "patch_size": 16,
        "window_size": 112,
        "fullatt_block_indexes": [7],
        "deepstack_visual_indexes": [8, 16],
    },
}
EXPERTS = configurations.LLAMA | {
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "mlp_only_layers": [0],
    "layer_types": ["full_attention"] * 32,
}
ALL = [
    {key: None if item is configurations.NULL else item for key, item in (configurations.LLAMA | value).items()}
    for value in vars(configurations).values()
    if isinstance(value, dict) and "model_type" in value
] + [QUANTISED, SEEING, EXPERTS]


def places(part, above=()):
    """Every key of an object and of those within it."""
    for key, value in part.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))


def changed(config, place, value):
    """The configuration with another value in one place."""
    config = copy.deepcopy(config)
    part = config
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return config


@pytest.mark.parametrize("config", ALL, ids=lambda config: config["model_type"])
def test_wrong_values_raise_our_error_alone(tmp_path, config):
    draw, path = random.Random(1), tmp_path / "config.json"
    for place in places(config):
        for value in draw.sample(WRONG, 6):
            path.write_text(json.dumps(changed(config, place, value)))
            for reader in (config_network, types_of_file, wide_type):
                try:
                    reader(path)
                except InputError as error:
                    assert str(path) in str(error)

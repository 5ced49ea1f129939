"""Layers that a search has made: attentions and MLPs left out or of other widths, and refusals."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.absent import Absent
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.configuration.block_configs import block_layers
from dse.workload.networks.configuration.model_types import model_types
from dse.workload.networks.mlp_kinds import Dense

FILE = Path("net.json")
KIND = model_types()["nemotron-nas"]
WHOLE = {"attention": {"n_heads_in_group": 8, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}}
SIZES = {"hidden_size": 8192, "num_attention_heads": 64, "num_hidden_layers": 2, "hidden_act": "silu"}


def test_halves_are_left_out_or_of_other_widths():
    thin = {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.3125, "no_op": False}}
    first, second = block_layers(SIZES | {"block_configs": [WHOLE, thin]}, KIND, FILE)
    assert first.attention == GroupedQueryAttention(64, 8, 128)
    assert first.mlp == Dense(28672, True, "silu")  # Llama-3-70B's
    assert (second.attention, second.mlp) == (Absent(), Dense(7168, True, "silu"))


def test_other_networks_state_no_blocks():
    assert block_layers(SIZES, KIND, FILE) is None


@pytest.mark.parametrize(
    ("blocks", "sentence"),
    [
        ([WHOLE], "block_configs states 1 layers, and there are 2; give one each"),
        ({"a": WHOLE}, "block_configs is not accepted; give a list of objects"),
        ([WHOLE, {"ffn": {}}], "block_configs has a layer without attention; give an object with no_op"),
        ([WHOLE, WHOLE | {"ffn": {"ffn_mult": 0}}], "ffn_mult = 0, which is not accepted; give a positive number"),
        ([WHOLE, WHOLE | {"ffn": {"replace_with_linear": True}}], "ffn with replace_with_linear = True, which is not"),
        ([WHOLE, WHOLE | {"attention": {"n_heads_in_group": 7}}], "n_heads_in_group = 7 does not divide the 64 heads"),
    ],
)
def test_what_is_not_covered_is_refused(blocks, sentence):
    with pytest.raises(InputError, match=sentence):
        block_layers(SIZES | {"block_configs": blocks}, KIND, FILE)

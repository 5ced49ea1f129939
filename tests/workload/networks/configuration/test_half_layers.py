"""Hybrids of half layers: patterns of letters and of names, and their refusals."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.configuration.half_layers import half_layers
from dse.workload.networks.configuration.model_types import model_types
from dse.workload.networks.names import load_network
from tests.workload.networks.configurations import config

FILE = Path("net.json")
KIND = model_types()["nemotron_h"]
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "head_dim": 16,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "ssm_state_size": 32,
    "n_groups": 2,
    "conv_kernel": 4,
    "chunk_size": 64,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
}


def test_letters_and_names_say_the_same():
    letters = half_layers(SIZES | {"hybrid_override_pattern": "M-*E"}, KIND, FILE)
    names = half_layers(SIZES | {"layers_block_type": ["mamba", "mlp", "attention", "moe"]}, KIND, FILE)
    newest = ["linear_attention", "mlp", "full_attention", "moe"]
    assert letters == names == half_layers(SIZES | {"layers_block_type": newest}, KIND, FILE)
    assert [layer.kind for layer in letters] == ["Mamba2", "dense", "full", "mixture"]


def test_a_tied_head_counts_once(tmp_path):
    """As the published class ties it in transformers does; every published file has a head of its own."""
    said = SIZES | {"model_type": "nemotron_h", "hybrid_override_pattern": "M-*-", "vocab_size": 1000}
    said |= {"intermediate_size": 128, "num_hidden_layers": 4, "num_key_value_heads": 2}
    apart = load_network(str(config(tmp_path, **said, tie_word_embeddings=False)))
    tied = load_network(str(config(tmp_path, **said, tie_word_embeddings=True)))
    unsaid = load_network(str(config(tmp_path, **said, tie_word_embeddings=None)))
    assert apart.parameters - tied.parameters == 64 * 1000
    assert (unsaid.tied, tied.tied) == (False, True)


def test_other_networks_have_whole_layers():
    assert half_layers(SIZES, KIND, FILE) is None


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"hybrid_override_pattern": "MX"}, "hybrid_override_pattern has 'X', which is not covered; known are M"),
        ({"hybrid_override_pattern": "MM", "num_hidden_layers": 3}, "states 2 layers, and there are 3; give one each"),
    ],
)
def test_patterns_that_are_not_covered_are_refused(said, sentence):
    with pytest.raises(InputError, match=sentence):
        half_layers(SIZES | said, KIND, FILE)

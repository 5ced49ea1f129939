"""Model types: every row of the table is consistent, and defaults stand in for what is missing or refuse it."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.workload.networks.configuration.model_types import (
    REFUSED,
    class_sizes,
    find_model_type,
    model_types,
    with_defaults,
)
from dse.workload.networks.layers import PARALLEL, POST, PRE, SANDWICH

FILE = Path("net.json")


@pytest.mark.parametrize("kind", model_types().values(), ids=list(model_types()))
def test_a_row_is_consistent(kind):
    assert kind.norm in ("rmsnorm", "layernorm")
    assert kind.arrangement in (PRE, SANDWICH, POST, PARALLEL)
    assert kind.qk_norm in ("none", "head", "whole")
    assert kind.attention in ("grouped_query", "latent", "sparse_latent", "compressed")
    assert not kind.interval or kind.layers


def test_turns_are_written_with_their_number():
    assert model_types()["gemma3_text"].layers == ("sliding",) * 5 + ("full",)
    assert model_types()["gemma3_text"].defaults["sliding_window"] == 4096
    assert model_types()["qwen3"].defaults == {"use_sliding_window": False}


def test_defaults_give_way_to_what_is_said():
    kind = model_types()["gemma2"]
    assert with_defaults({"sliding_window": 7}, kind, FILE)["sliding_window"] == 7
    assert with_defaults({}, kind, FILE)["head_dim"] == 256


def test_a_default_does_not_stand_beside_the_same_in_other_words():
    said = {"n_routed_experts": 64, "num_experts_per_token": 6}
    found = with_defaults(said, model_types()["gpt_oss"], FILE)
    assert "num_local_experts" not in found and "num_experts_per_tok" not in found
    assert with_defaults({"num_local_experts": None}, model_types()["gpt_oss"], FILE)["num_local_experts"] is None


def test_a_default_that_is_not_sure_refuses():
    with pytest.raises(InputError, match="head_dim or attention_head_dim is missing, and model_type = 'nemotron_h'"):
        with_defaults({}, model_types()["nemotron_h"], FILE)
    assert with_defaults({"attention_head_dim": 128}, model_types()["nemotron_h"], FILE)["attention_head_dim"] == 128


def test_an_unknown_type_is_refused_by_name():
    with pytest.raises(InputError, match=r"net\.json: model_type = 'zamba2': this architecture is not covered"):
        find_model_type("zamba2", FILE)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gemma3n_text", "embeddings of their own"),
        ("jamba", "state space is Mamba's first"),
    ],
)
def test_a_type_that_is_not_covered_is_refused_with_what_keeps_it_out(name, why):
    with pytest.raises(InputError, match=rf"model_type = '{name}': this architecture is not covered \(.*{why}"):
        find_model_type(name, FILE)


def test_no_type_is_both_read_and_refused():
    refused = {name for row in read_table(REFUSED) for name in row["model_types"].split(";")}
    assert refused and refused.isdisjoint(model_types())


def test_sizes_are_of_types_that_are_read():
    assert class_sizes() and class_sizes().keys() <= model_types().keys()

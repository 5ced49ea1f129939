"""Layers that a search has made unlike each other: attentions left out, MLPs of other widths (Llama-Nemotron)."""

from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.workload.networks.absent import Absent
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.configuration.mlps import activation_of
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import SPELLINGS, Config, whole
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense

KEY = "block_configs"

MULTIPLE = 256
"""Widths of MLPs are rounded up to a multiple of it (configuration_decilm.py and modeling_decilm.py)."""

ELSEWHERE = {
    "attention": ("replace_with_linear", "sparsify", "window_length", "num_sink_tokens", "unshifted_sink"),
    "ffn": ("replace_with_linear", "sparsify", "num_experts", "moe"),
}
"""Keys of a block that make another kind of it, whose kernels are not described here."""


def block_layers(config: Config, kind: ModelType, path: Path) -> list[Layer] | None:
    """Return the layers of such a network in their order, None of another; raises InputError."""
    blocks = config.get(KEY)
    if not blocks:
        return None
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise InputError(f"{path}: {KEY} is not accepted; give a list of objects, one a layer")
    layers = whole(config, SPELLINGS["layers"], path)
    if len(blocks) != layers:
        raise InputError(f"{path}: {KEY} states {len(blocks)} layers, and there are {layers}; give one each")
    return [_layer(block, config, kind, path) for block in blocks]


def _layer(block: dict[str, Any], config: Config, kind: ModelType, path: Path) -> Layer:
    for half, keys in ELSEWHERE.items():
        said = block.get(half)
        if not isinstance(said, dict):
            raise InputError(f"{path}: {KEY} has a layer without {half}; give an object with no_op")
        for key in keys:
            if said.get(key):
                raise InputError(f"{path}: {KEY} has {half} with {key} = {said[key]!r}, which is not covered")
    attention, ffn = block["attention"], block["ffn"]
    return Layer(
        Absent() if attention.get("no_op") else _attention(attention, config, path),
        Absent() if ffn.get("no_op") else Dense(_width(ffn, config, path), *activation_of(config, kind, path)),
    )


def _attention(said: Config, config: Config, path: Path) -> GroupedQueryAttention:
    heads, shared = whole(config, SPELLINGS["heads"], path), whole(said, ("n_heads_in_group",), path)
    if heads % shared:
        raise InputError(f"{path}: n_heads_in_group = {shared} does not divide the {heads} heads; give a divisor")
    hidden = whole(config, SPELLINGS["hidden"], path)
    return GroupedQueryAttention(heads, heads // shared, whole(config, ("head_dim",), path, 0) or hidden // heads)


def _width(said: Config, config: Config, path: Path) -> int:
    """Two thirds of ``ffn_mult`` times the stream, rounded down, then up to a multiple."""
    times = said.get("ffn_mult")
    if isinstance(times, bool) or not isinstance(times, int | float) or times <= 0:
        raise InputError(f"{path}: {KEY} has ffn_mult = {times!r}, which is not accepted; give a positive number")
    columns = int(2 * times * whole(config, SPELLINGS["hidden"], path) / 3)
    return -(-columns // MULTIPLE) * MULTIPLE

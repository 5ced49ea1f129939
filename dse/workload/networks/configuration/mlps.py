"""MLPs of a configuration: which layers have experts, and the sizes of both kinds."""

from math import ceil
from pathlib import Path

from dse.base.errors import InputError, shown
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import SPELLINGS, Config, listed, numbered, refuse_part, whole
from dse.workload.networks.mlp_kinds import Dense, Mixture

FIRST = ("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers")
"""Keys of the layers without experts before those that have any."""

EVERY = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
"""Keys of how many layers there are to one with experts, the last of them."""

FROM_FIRST = ("moe_layer_freq",)
"""The same, where the first of them has the experts."""

ENUM = "moe_layers_enum"
"""Key of the numbers of the layers with experts."""

COUNT = "count"
"""What every token passes is a number of experts."""

DENSE_FFN = "dense_intermediate_size"
"""Key of the width of layers without experts, where another states that of experts (MiniMax-M3)."""

FFN = ("block_ff_dim", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")


def with_experts(config: Config, kind: ModelType, layers: int, path: Path) -> list[bool]:
    """Return which layers have experts; raises InputError where keys do not go with so many ``layers``."""
    if whole(config, SPELLINGS["experts"], path, 1) <= 1 or config.get("enable_moe_block") is False:
        return [False] * layers
    said = listed(config, "mlp_layer_types", str, layers, path)
    if said:
        return [word != "dense" for word in said]
    if named := numbered(config, "moe_layers", path) or _enumerated(config, path):
        return [layer in named for layer in range(layers)]
    first = whole(config, FIRST, path, 0)
    if first > layers:
        raise InputError(f"{path}: {_given(config, FIRST)} = {first} does not go with {layers} layers")
    dense, last_one = numbered(config, "mlp_only_layers", path), config.get("moe_layer_end_index", -1)
    end = layers if last_one in (None, -1) else whole(config, ("moe_layer_end_index",), path) + 1
    found = [first <= layer < end and layer not in dense for layer in range(layers)]
    for key in (*EVERY, *FROM_FIRST):
        if config.get(key) and isinstance(config[key], list):
            of_layer = listed(config, key, int, layers, path)
            found = [here and bool(of_layer[layer]) for layer, here in enumerate(found)]
            continue
        step = whole(config, (key,), path, 1) or 1 if config.get(key) != [] else 1
        last = step - 1 if key in EVERY else 0
        found = [here and layer % step == last for layer, here in enumerate(found)]
    return found


def _enumerated(config: Config, path: Path) -> list[int]:
    """Numbers of the layers with experts as a text with commas, or a list (Step-3.5); none where they are not said."""
    said = config.get(ENUM)
    if not isinstance(said, str):
        return numbered(config, ENUM, path)
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise InputError(f"{path}: {ENUM} = {shown(said)} is not accepted; give numbers of layers with commas")
    return [int(part) for part in parts]


def _given(config: Config, keys: tuple[str, ...]) -> str:
    return next(key for key in keys if config.get(key) is not None)


def mlp_of(experts: bool, config: Config, kind: ModelType, path: Path) -> Dense | Mixture:
    """Return the MLP of a layer with ``experts`` or without; raises InputError."""
    gated, activation = activation_of(config, kind, path)
    hidden = whole(config, SPELLINGS["hidden"], path)
    if experts:
        return _mixture(config, kind, gated, activation, path)
    llama4 = ("intermediate_size_mlp",) if kind.name == "llama4_text" else ()
    all_tokens = ("shared_intermediate_size",) if kind.name == "granitemoehybrid" else ()
    ffn = whole(config, (DENSE_FFN, *llama4, *all_tokens, *FFN), path, 4 * hidden if kind.old else None)
    return Dense(_adjusted(ffn, config, path), gated, activation)


def _adjusted(ffn: int, config: Config, path: Path) -> int:
    """A width of LFM2: two thirds of what is stated, times a factor, up to a multiple (modeling_lfm2.py)."""
    if not config.get("block_auto_adjust_ff_dim"):
        return ffn
    factor, multiple = config.get("block_ffn_dim_multiplier"), whole(config, ("block_multiple_of",), path)
    if factor is not None and (isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0):
        raise InputError(f"{path}: block_ffn_dim_multiplier = {shown(factor)} is not accepted; give a positive number")
    return ceil(int((1.0 if factor is None else factor) * (2 * ffn // 3)) / multiple) * multiple


def _mixture(config: Config, kind: ModelType, gated: bool, activation: str, path: Path) -> Mixture:
    experts, used = whole(config, SPELLINGS["experts"], path), whole(config, SPELLINGS["used"], path)
    refuse_part(used, "experts a token", experts, path)
    ffn = whole(config, ("moe_intermediate_size", *FFN), path)
    shared = 0
    if kind.shared == COUNT:
        each = whole(config, ("moe_shared_expert_intermediate_size",), path, 0) or ffn  # Ling's may be of another width
        shared = each * whole(config, SPELLINGS["shared"], path, 0)
    elif kind.shared:
        shared = whole(config, (kind.shared,), path, 0)
    gate = kind.shared_gate and shared > 0
    latent = whole(config, ("moe_latent_size",), path, 0)
    return Mixture(experts, used, ffn, gated, activation, shared, gate, latent)


ACTIVATIONS = ("sil", "swish", "relu", "gelu", "glu", "elu", "mish", "tanh", "sigmoid")
"""What names of activations hold."""


def activation_of(config: Config, kind: ModelType, path: Path) -> tuple[bool, str]:
    """Return whether an MLP has a gate, and its activation as vector kernels call it; raises InputError where it is
    none."""
    keys = ("hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act")
    said = str(next(filter(None, map(config.get, keys)), "gelu" if kind.old else "silu"))
    if not any(word in said.lower() for word in ACTIVATIONS):
        raise InputError(f"{path}: hidden_act = {shown(said)} is not known; give silu, relu or gelu, or one like them")
    gated = kind.gated or "swiglu" in said or "geglu" in said
    return gated, "silu" if "sil" in said or "swi" in said else "relu" if "relu" in said else "gelu"

"""Numbers and lists of a configuration, each refused with its file, key and value where it is none."""

from pathlib import Path
from typing import Any

from dse.base.errors import InputError, shown

MOST = 1_000_000_000
"""Largest number that a network has of anything."""

Config = dict[str, Any]
"""What a config.json, or the part of it that describes a language model, holds."""

SPELLINGS = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "seq_length"),
    "kv_heads": (
        "num_key_value_heads",
        "n_head_kv",
        "num_kv_heads",
        "num_attention_groups",
        "multi_query_group_num",
    ),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "used": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "top_k_experts",
        "moe_topk",
        "moe_top_k",
        "moe_k",
    ),
    "shared": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
}
"""Spellings of the same quantity."""

FLAGS = (
    "tie_word_embeddings",
    "tie_embedding",
    "multi_query",
    "multi_query_attention",
    "new_decoder_architecture",
    "use_parallel_residual",
    "parallel_attn",
    "use_sliding_window",
    "use_qk_norm",
    "qk_layernorm",
    "attn_output_gate",
    "attention_k_eq_v",
    "add_full_attention_sink_bias",
    "add_swa_attention_sink_bias",
    "enable_moe_block",
    "block_auto_adjust_ff_dim",
    "use_cla",
    "use_mla",
)
"""Keys that say yes or no of what a network is made of."""


def whole(config: Config, keys: tuple[str, ...], path: Path, default: int | None = None) -> int:
    """Return the first of ``keys`` that is given, as a whole number; raises InputError where it is none, or where none
    is given and there is no ``default``."""
    least = 1 if default is None else 0
    for key in keys:
        value = _one(config.get(key))
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
            raise InputError(
                f"{path}: {key} = {shown(value)} is not accepted; give a whole number from {least} to {MOST:,}"
            )
        return value
    if default is None:
        raise InputError(
            f"{path}: {' or '.join(keys)} is missing; add it, as a Hugging Face config.json of a decoder has it"
        )
    return default


def refuse_unclear(config: Config, path: Path) -> None:
    """Raise InputError where a key that says yes or no says another thing: "false" as a text would count as yes."""
    for key in FLAGS:
        if config.get(key) not in (None, True, False):
            raise InputError(f"{path}: {key} = {shown(config[key])} is not accepted; give true or false")


def _one(value: Any) -> Any:
    """The value of a key: of a list that says the same of all layers (Hunyuan's experts a token) that one."""
    return value[0] if isinstance(value, list) and value and value.count(value[0]) == len(value) else value


def listed(config: Config, key: str, of: type, layers: int, path: Path) -> list[Any]:
    """Return a list with an item ``of`` a type for each of ``layers``, empty where none is given; raises InputError."""
    given = config.get(key) or []
    if not isinstance(given, list) or not all(isinstance(item, of) for item in given):
        what = "texts" if of is str else "whole numbers"
        raise InputError(f"{path}: {key} = {given!r} is not accepted; give a list of {what}, one a layer")
    if given and len(given) != layers:
        raise InputError(f"{path}: {key} states {len(given)} layers, and there are {layers}; give one each")
    return given


def numbered(config: Config, key: str, path: Path) -> list[int]:
    """Return a list of numbers of layers, empty where none is given; raises InputError where it is another thing."""
    given = config.get(key) or []
    if not isinstance(given, list) or not all(type(item) is int for item in given):
        raise InputError(f"{path}: {key} = {shown(given)} is not accepted; give a list of numbers of layers")
    return given


def refuse_part(part: int, what: str, of_all: int, path: Path) -> None:
    """Raise InputError where a ``part`` is none of ``of_all``."""
    if not 1 <= part <= of_all:
        raise InputError(f"{path}: {part} {what} do not go with {of_all}")


def head_dim(config: Config, keys: tuple[str, ...], hidden: int, heads: int, path: Path) -> int:
    """Elements of a head: as given, else those of the residual stream shared out evenly; raises InputError."""
    if any(config.get(key) is not None for key in keys):
        return whole(config, keys, path)
    if hidden % heads:
        named = [next(k for k in SPELLINGS[field] if config.get(k) is not None) for field in ("hidden", "heads")]
        raise InputError(f"{path}: {named[0]} = {hidden} is no multiple of {named[1]} = {heads}; give head_dim")
    return hidden // heads

"""Attentions of a configuration: the sizes of each kind."""

from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.workload.networks.attention_kinds import BY_HEAD, NO_NORM, GroupedQueryAttention
from dse.workload.networks.configuration.attention_words import BESIDE, CHUNKED, FULL, SLIDING, UNROTATED
from dse.workload.networks.configuration.block_sparse import block_sparse
from dse.workload.networks.configuration.compressed import compressed_attention
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.states import KEEPING, mamba_of
from dse.workload.networks.configuration.values import SPELLINGS, Config, head_dim, listed, refuse_part, whole
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.layers import AttentionKind
from dse.workload.networks.sparse_latent_attention import SparseLatentAttention
from dse.workload.networks.states.side_by_side import SideBySide

OF_SLIDING = "swa_"
"""What keys of sliding layers begin with where these have sizes of their own."""

OTHER_SETTING = "attention_other_setting"
"""Key of the sizes of attention in layers that slide (Step-3.5)."""

HEADS_OF_LAYERS = "num_attention_heads_per_layer"

SINKS = ("add_full_attention_sink_bias", "add_swa_attention_sink_bias")
"""Keys that say whether softmaxes of full layers, and of sliding ones, have a term of their own."""

SHARED = ("shared", "S")
"""Words for a layer that attends what the indexer of a layer before it has chosen."""

QK_NORMS = ("use_qk_norm", "qk_layernorm")
"""Keys that say whether queries and keys pass norms."""


def attention_of(word: str, layer: int, config: Config, kind: ModelType, path: Path) -> AttentionKind:
    """Return the attention of a ``layer`` of a kind; raises InputError."""
    if word in KEEPING:
        return KEEPING[word](config, path)
    if word == BESIDE:
        return SideBySide(_grouped(FULL, config, kind, path), mamba_of(config, path))
    if kind.attention == "grouped_query":
        every = _grouped(word, _of_layer(word, layer, config, path), kind, path)
        return block_sparse(every, layer, config, path)
    if kind.attention == "compressed":
        return compressed_attention(layer, config, path)
    return _latent(layer, config, kind, path)


def _of_layer(word: str, layer: int, config: Config, path: Path) -> Config:
    """The configuration as one layer has it: its own number of heads, and the sizes of layers that slide."""
    own: Config = {}
    if config.get(HEADS_OF_LAYERS):
        heads = listed(config, HEADS_OF_LAYERS, int, whole(config, SPELLINGS["layers"], path), path)
        own |= {SPELLINGS["heads"][0]: heads[layer]}
    if word == SLIDING:
        own |= _of_other_setting(config, path)
        own |= {key.removeprefix(OF_SLIDING): value for key, value in config.items() if key.startswith(OF_SLIDING)}
    return config | own


def _of_other_setting(config: Config, path: Path) -> Config:
    """Sizes of layers that slide where an object of their own states them (Step-3.5)."""
    said = config.get(OTHER_SETTING) or {}
    if not isinstance(said, dict):
        raise InputError(f"{path}: {OTHER_SETTING} is not an object; give one with num_attention_heads")
    spelled = {"num_attention_heads": "heads", "num_attention_groups": "kv_heads"}
    own = {SPELLINGS[field][0]: said[key] for key, field in spelled.items() if key in said}
    own |= {"head_dim": said["head_dim"]} if "head_dim" in said else {}
    heads = config.get("num_sliding_attention_heads")
    return own if heads is None else own | {SPELLINGS["heads"][0]: heads}


def _grouped(word: str, config: Config, kind: ModelType, path: Path) -> GroupedQueryAttention:
    hidden, heads = whole(config, SPELLINGS["hidden"], path), whole(config, SPELLINGS["heads"], path)
    kv_keys, dim_keys = SPELLINGS["kv_heads"], ("head_dim", "attention_head_dim")
    as_values = bool(config.get("attention_k_eq_v")) and word == FULL
    if kind.name.startswith("gemma4") and word == FULL:
        kv_keys = ("num_global_key_value_heads", *kv_keys) if as_values else kv_keys
        dim_keys = ("global_head_dim", *dim_keys)
    kv_heads = whole(config, kv_keys, path, 1 if config.get("multi_query") else heads)
    if kind.name == "falcon" and not config.get("new_decoder_architecture"):
        kv_heads = 1 if config.get("multi_query", True) else heads  # it reads num_kv_heads in the new one alone
    refuse_part(kv_heads, "key-value heads", heads, path)
    if heads % kv_heads:
        raise InputError(f"{path}: {kv_heads} key-value heads do not go with {heads}")
    return GroupedQueryAttention(
        heads,
        kv_heads,
        head_dim(config, dim_keys, hidden, heads, path),
        window=_window(config, path) if word == SLIDING else 0,
        rotary=_rotary(word, config, kind),
        chunk=whole(config, ("attention_chunk_size",), path) if word == CHUNKED else 0,
        qk_norm=_qk_norm(word, config, kind),
        output_gate=_gated(config, kind),
        sinks=kind.name == "gpt_oss" or bool(config.get(SINKS[word == SLIDING])),
        softcap=bool(config.get("attn_logit_softcapping")),
        keys_as_values=as_values,
        value_dim=_value_dim(config, kind, path),
    )


def _window(config: Config, path: Path) -> int:
    """Tokens of a window; one of all the positions that a network was made for is none (Phi-3.5)."""
    tokens, positions = whole(config, ("sliding_window", "sliding_window_size"), path), SPELLINGS["positions"]
    return 0 if 0 < whole(config, positions, path, 0) <= tokens else tokens


def _gated(config: Config, kind: ModelType) -> bool:
    """Whether a gate as wide as the result scales it. Gates of a number a head, as most of Laguna's, are left out: they
    are a hundredth of the queries' projection."""
    if kind.name == "laguna":
        return config.get("gating") == "per-element"
    return bool(config.get("attn_output_gate"))


def _value_dim(config: Config, kind: ModelType, path: Path) -> int:
    """Elements of a head of values where they are others than of keys (MiMo-V2), else 0."""
    if not kind.name.startswith("mimo_v2"):
        return 0
    values, keys = whole(config, ("v_head_dim",), path, 0), whole(config, ("head_dim",), path)
    return 0 if values == keys else values


def _rotary(word: str, config: Config, kind: ModelType) -> bool:
    """Whether queries and keys of a kind of layer are rotated; a network without windows rotates all of them."""
    if word == UNROTATED or kind.unrotated == "all" or config.get("position_embedding_type") == "nope":
        return False
    others = config.get("sliding_window") or config.get("attention_chunk_size")
    return word != kind.unrotated or not others


def _qk_norm(word: str, config: Config, kind: ModelType) -> str:
    """Norms of queries and keys; a configuration may turn them on or off."""
    said = next((config[key] for key in QK_NORMS if config.get(key) is not None), None)
    if said is False or (kind.name == "llama4_text" and word == FULL):
        return NO_NORM
    return BY_HEAD if said and kind.qk_norm == NO_NORM else kind.qk_norm


def _latent(layer: int, config: Config, kind: ModelType, path: Path) -> LatentAttention:
    sizes: dict[str, Any] = {
        "heads": whole(config, SPELLINGS["heads"], path),
        "query_rank": whole(config, ("q_lora_rank",), path, 0),
        "kv_rank": whole(config, ("kv_lora_rank",), path),
        "nope_dim": whole(config, ("qk_nope_head_dim",), path),
        "rope_dim": whole(config, ("qk_rope_head_dim",), path),
        "value_dim": whole(config, ("v_head_dim",), path),
    }
    if kind.attention == "latent":
        return LatentAttention(**sizes, rotary=kind.unrotated != "all")
    heads, dim, best = (whole(config, (f"index_{key}",), path) for key in ("n_heads", "head_dim", "topk"))
    layers = whole(config, SPELLINGS["layers"], path)
    shared = _indexers(config, layers, path)[layer] in SHARED
    return SparseLatentAttention(**sizes, index_heads=0 if shared else heads, index_dim=dim, index_topk=best)


def _indexers(config: Config, layers: int, path: Path) -> list[str]:
    """Which layers have an indexer and which share the choice before them: as listed, as a pattern of letters, or every
    so many layers after the first ones (transformers, configuration_glm_moe_dsa.py)."""
    pattern = config.get("index_topk_pattern")
    if isinstance(pattern, str):
        config = config | {"index_topk_pattern": list(pattern)}
    for key in ("indexer_types", "index_topk_pattern"):
        if given := listed(config, key, str, layers, path):
            return given
    every = whole(config, ("index_topk_freq",), path, 1) or 1
    first = whole(config, ("index_skip_topk_offset",), path, 2)
    return ["shared" if max(layer - first + 1, 0) % every else "full" for layer in range(layers)]

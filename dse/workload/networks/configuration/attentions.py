"""Attentions of a configuration: the kind of each layer, and its sizes."""

from pathlib import Path

from dse.base.errors import InputError
from dse.workload.networks.attention_kinds import BY_HEAD, NO_NORM, GroupedQueryAttention
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import SPELLINGS, Config, listed, numbered, refuse_part, whole
from dse.workload.networks.gated_delta_net import GatedDeltaNet
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.layers import AttentionKind
from dse.workload.networks.mamba2 import Mamba2
from dse.workload.networks.sparse_latent_attention import SparseLatentAttention

FULL, SLIDING, CHUNKED, LINEAR, MAMBA, UNROTATED = "full", "sliding", "chunked", "linear", "mamba", "unrotated"
"""Kinds of attention of a layer: to all tokens, in a window, in chunks, two with a state, to all without positions."""

WORDS = {
    "full_attention": FULL,
    "attention": FULL,
    "deepseek_sparse_attention": FULL,  # what it attends its indexer chooses
    "indexed_attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
    "mamba": MAMBA,
}
"""What ``layer_types`` calls them."""

INDEXED = ("deepseek_sparse_attention", "indexed_attention")
"""Words for layers whose indexer chooses what they attend."""

STATES = {"granitemoehybrid": MAMBA, "bamba": MAMBA}
"""What ``linear_attention`` is of model types whose releases once called it by its name."""

PATTERN = "hybrid_layer_pattern"
"""Key of MiMo-V2: 1 where a layer slides over a window."""

OF_SLIDING = "swa_"
"""What keys of sliding layers begin with where these have sizes of their own."""

HEADS_OF_LAYERS = "num_attention_heads_per_layer"

SINKS = ("add_full_attention_sink_bias", "add_swa_attention_sink_bias")
"""Keys that say whether softmaxes of full layers, and of sliding ones, have a term of their own."""

SHARED = ("shared", "S")
"""Words for a layer that attends what the indexer of a layer before it has chosen."""

QK_NORMS = ("use_qk_norm", "qk_layernorm")
"""Keys that say whether queries and keys pass norms."""


def attention_words(config: Config, kind: ModelType, layers: int, path: Path) -> list[str]:
    """Return the kind of attention of each layer; raises InputError naming one that is not covered."""
    given = listed(config, "layer_types", str, layers, path)
    for word in given:
        if word not in WORDS or (word in INDEXED and kind.attention != "sparse_latent"):
            raise InputError(f"{path}: layer_types has {word!r}, which is not covered; known are {', '.join(WORDS)}")
    if given:
        words = [STATES.get(kind.name, LINEAR) if word == "linear_attention" else WORDS[word] for word in given]
        if SLIDING in words and not config.get("sliding_window"):
            raise InputError(f"{path}: layer_types has layers that slide over a window, and sliding_window is missing")
        return words
    if slides := listed(config, PATTERN, int, layers, path):
        return [SLIDING if layer else FULL for layer in slides]
    if kind.name == "bamba":
        with_attention = numbered(config, "attn_layer_indices", path)
        return [FULL if layer in with_attention else MAMBA for layer in range(layers)]
    return _without_window(_in_turns(config, kind, layers, path), config)


def _in_turns(config: Config, kind: ModelType, layers: int, path: Path) -> list[str]:
    """Kinds of layers that take turns, or of which the last ones slide, as ``max_window_layers`` of Qwen2 says."""
    rotated = listed(config, "no_rope_layers", int, layers, path) if kind.interval == "no_rope_layer_interval" else []
    if rotated:  # 1 where queries and keys are rotated
        return [kind.layers[0] if turns else kind.layers[-1] for turns in rotated]
    if kind.layers and not kind.interval:
        return [kind.layers[layer % len(kind.layers)] for layer in range(layers)]
    if kind.layers:
        said = config.get(kind.interval)
        turn = len(said) if isinstance(said, str) else whole(config, (kind.interval,), path, len(kind.layers))
        last = 1 + max((i for i, word in enumerate(kind.layers[:-1]) if word == kind.layers[-1]), default=-1)
        words = (*kind.layers[last:-1][:1] * (turn - 1), kind.layers[-1])
        return [words[layer % len(words)] for layer in range(layers)]
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return [FULL] * layers
    first = 0
    if config.get("max_window_layers") is not None:
        first = whole(config, ("max_window_layers",), path, 0)
    return [FULL if layer < first else SLIDING for layer in range(layers)]


def _without_window(words: list[str], config: Config) -> list[str]:
    """The kinds where a network that could slide states no window."""
    return words if config.get("sliding_window") else [FULL if word == SLIDING else word for word in words]


def attention_of(word: str, layer: int, config: Config, kind: ModelType, path: Path) -> AttentionKind:
    """Return the attention of a ``layer`` of a kind; raises InputError."""
    if word == LINEAR:
        return _delta_net(config, path)
    if word == MAMBA:
        return _mamba(config, path)
    if kind.attention == "grouped_query":
        return _grouped(word, _of_layer(word, layer, config, path), kind, path)
    return _latent(layer, config, kind, path)


def _of_layer(word: str, layer: int, config: Config, path: Path) -> Config:
    """The configuration as one layer has it: its own number of heads, and the sizes of layers that slide."""
    own: Config = {}
    if config.get(HEADS_OF_LAYERS):
        heads = listed(config, HEADS_OF_LAYERS, int, whole(config, SPELLINGS["layers"], path), path)
        own |= {SPELLINGS["heads"][0]: heads[layer]}
    if word == SLIDING:
        own |= {key.removeprefix(OF_SLIDING): value for key, value in config.items() if key.startswith(OF_SLIDING)}
    return config | own


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
        _head_dim(config, dim_keys, hidden, heads, path),
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


def _head_dim(config: Config, keys: tuple[str, ...], hidden: int, heads: int, path: Path) -> int:
    """Elements of a head: as given, else those of the residual stream shared out evenly; raises InputError."""
    if any(config.get(key) is not None for key in keys):
        return whole(config, keys, path)
    if hidden % heads:
        named = [next(k for k in SPELLINGS[field] if config.get(k) is not None) for field in ("hidden", "heads")]
        raise InputError(f"{path}: {named[0]} = {hidden} is no multiple of {named[1]} = {heads}; give head_dim")
    return hidden // heads


def _latent(layer: int, config: Config, kind: ModelType, path: Path) -> LatentAttention:
    sizes: dict[str, int] = {
        "heads": whole(config, SPELLINGS["heads"], path),
        "query_rank": whole(config, ("q_lora_rank",), path, 0),
        "kv_rank": whole(config, ("kv_lora_rank",), path),
        "nope_dim": whole(config, ("qk_nope_head_dim",), path),
        "rope_dim": whole(config, ("qk_rope_head_dim",), path),
        "value_dim": whole(config, ("v_head_dim",), path),
    }
    if kind.attention == "latent":
        return LatentAttention(**sizes)
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


def _delta_net(config: Config, path: Path) -> GatedDeltaNet:
    keys = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    return GatedDeltaNet(*(whole(config, (f"linear_{key}",), path) for key in keys))


def _mamba(config: Config, path: Path) -> Mamba2:
    heads = whole(config, ("mamba_num_heads", "mamba_n_heads"), path)
    if config.get("mamba_d_head") == "auto":
        width = whole(config, ("mamba_expand",), path, 2) * whole(config, SPELLINGS["hidden"], path)
        config = config | {"mamba_d_head": width // heads}
    return Mamba2(
        heads,
        whole(config, ("mamba_head_dim", "mamba_d_head"), path),
        whole(config, ("ssm_state_size", "mamba_d_state"), path),
        whole(config, ("n_groups", "mamba_n_groups"), path),
        whole(config, ("conv_kernel", "mamba_d_conv"), path),
        whole(config, ("chunk_size", "mamba_chunk_size"), path),
    )

"""Hugging Face ``config.json`` files: the shape of a network, where its architecture is one that is covered."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.base.csv_table import refuse_twice
from dse.base.errors import InputError
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense, Mixture
from dse.workload.networks.network import Network

_CONFIG_KEYS = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "vocab": ("vocab_size",),
}
"""Spellings of the same quantity in Hugging Face configurations."""

_POSITIONS = ("max_position_embeddings", "n_positions", "seq_length")
"""Spellings of the tokens that a network was made for."""

_UNSUPPORTED = (
    "index_topk", "kv_lora_rank", "q_lora_rank", "ssm_state_size", "state_size", "is_encoder_decoder",
    "n_shared_experts",
    "shared_expert_intermediate_size", "sliding_window_pattern", "attn_layer_period", "mamba_d_state", "mamba_d_ssm",
    "hybrid_override_pattern", "full_attention_interval", "cross_attention_layers", "attention_chunk_size",
    "first_k_dense_replace", "mlp_only_layers", "num_key_value_heads_per_layer", "block_configs", "block_types",
    "moe_num_experts", "shared_intermediate_size", "num_shared_expert",
)  # fmt: skip
"""Keys of architectures whose kernels are not described here: state space, encoder-decoder, attention in chunks or over
chosen tokens, and layers of different kinds in one network; those of latent attention, of experts that every token uses
and of first layers without experts are read of the model types that have all three."""

_LATENT_KEYS = ("kv_lora_rank", "q_lora_rank", "n_shared_experts", "first_k_dense_replace")
"""Keys of ``_UNSUPPORTED`` that are read of model types with latent attention."""

_EVERY_LAYER = (
    "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "expert_layer_period", "attn_type_list",
)  # fmt: skip
"""Keys that say in which layers there are experts, or attention to all tokens: covered where it is 1, each layer."""

_OLD = ("gpt2", "opt", "gpt_neox", "gpt_bigcode", "bloom", "falcon", "gptj", "phi", "starcoder2")
"""Model types with LayerNorm, biases and an MLP without gate."""

_GATED = (
    "llama", "mistral", "ministral", "ministral3", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_vl",
    "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text", "mimo", "minimax_m2",
    "gemma", "gemma3_text", "phi3", "phimoe", "olmo", "olmo2", "olmoe", "stablelm",
    "internlm2", "internlm3", "baichuan", "aquila", "xverse", "yi", "minicpm", "granite", "granitemoe", "exaone",
    "cohere", "smollm3", "glm", "glm4", "seed_oss", "ernie4_5", "deepseek",
)  # fmt: skip
"""Model types with a gated MLP, whose configurations say all that a layer holds; any other may hide its own kinds of
layers under keys that are not known here, and is refused."""

_LATENT = ("deepseek_v2", "deepseek_v3", "kimi_k2")
"""Model types with latent attention, and with first dense layers before those of experts."""

_OWN_DEFAULTS = {
    "num_key_value_heads": ("mistral", "mixtral", "glm", "glm4", "gemma3_text"),
    "head_dim": ("glm", "glm4", "gemma", "gemma3_text"),
    "sliding_window": ("mistral",),
    "layer_types": ("gemma3_text",),
}
"""Keys that may be missing, and the model types whose class then takes a value of its own (transformers,
configuration_mistral.py and its like): what such a file means depends on the release that reads it."""

_ENCODERS = {"vision_config": "vision", "audio_config": "audio", "img_processor": "vision"}
"""Keys of networks with an encoder beside the language model, whose time is not modelled: the title says so."""

_LAYERNORM = (*_OLD, "cohere", "stablelm", "olmo", "phimoe")
"""Model types with LayerNorm."""

_TIED = ("gpt2", "opt", "gpt_bigcode", "bloom", "falcon", "starcoder2", "gemma", "gemma3_text", "cohere", "smollm3")
"""Model types whose output layer is the embedding table unless their configuration says otherwise."""

_ABSOLUTE = ("gpt2", "opt", "gpt_bigcode", "bloom")
"""Model types without rotary embeddings."""


def read_config(path: Path) -> dict[str, Any]:
    """Return what a config.json holds; raises InputError where it cannot be read, is no object, or has a key twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        refuse_twice(path, (key for key, _ in pairs), "key")
        return dict(pairs)

    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=once)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a JSON file: {error}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: holds {type(config).__name__}, not an object; give a Hugging Face config.json")
    return config


def config_network(path: Path) -> Network:
    """Return the network that a config.json describes.

    Raises InputError naming file, key and value for what is missing, wrong, or of an architecture whose kernels are not
    described here.
    """
    whole = read_config(path)
    config = text_config(whole, path)
    kind = str(config.get("model_type") or "llama").lower()
    _refuse_uncovered(config, kind, path)
    layers = config.get("layer_types") or []
    if not isinstance(layers, list) or not all(isinstance(layer, str) for layer in layers):
        raise InputError(f"{path}: layer_types = {layers!r} is not accepted; give a list of texts, one a layer")
    if len(set(layers)) > 1 or _slides(config, path) is None:
        raise InputError(f"{path}: layers of different kinds in one network are not covered")
    network = _network(config, kind, path)
    encoders = [name for key, name in _ENCODERS.items() if whole.get(key)]
    note = f" (language model alone, without its {' and '.join(encoders)} encoder)" if encoders else ""
    return replace(network, title=network.title + note)


def text_config(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the part of a configuration that describes its language model: all of it, or ``text_config`` with what the
    whole says of the output layer. Raises InputError where that is no object."""
    text = config.get("text_config", config)
    if not isinstance(text, dict):
        raise InputError(f"{path}: text_config is not an object; give a Hugging Face config.json")
    tied = text.get("tie_word_embeddings")
    return text | {"tie_word_embeddings": config.get("tie_word_embeddings") if tied is None else tied}


def _refuse_uncovered(config: dict, kind: str, path: Path) -> None:
    """Raise InputError naming the first key of an architecture that is not covered, a model type that is not known, or
    a key that is missing where the model type has a default of its own."""
    read = _LATENT_KEYS if kind in _LATENT else ()
    said = {key: config.get(key) for key in _UNSUPPORTED if key not in read}
    for key in _EVERY_LAYER:
        layers = config.get(key)
        said[key] = None if all(layer == 1 for layer in (layers if isinstance(layers, list) else [layers])) else layers
    for key, value in said.items():
        if value:
            raise InputError(
                f"{path}: {key} = {value!r}: this architecture is not covered; accepted are decoder-only transformers "
                f"with multi-head or grouped-query attention, and latent attention of {', '.join(_LATENT)}"
            )
    if kind not in (*_GATED, *_LATENT, *_OLD):
        known = ", ".join(sorted((*_GATED, *_LATENT, *_OLD)))
        raise InputError(
            f"{path}: model_type = {kind!r}: this architecture is not covered; known are {known}. "
            "Where it is built as one of these, give that one's"
        )
    for key, kinds in _OWN_DEFAULTS.items():
        if kind in kinds and key not in config:
            raise InputError(
                f"{path}: {key} is missing, and model_type = {kind!r} has a default of its own for it; give {key}"
            )


def _slides(config: dict, path: Path) -> bool | None:
    """Whether attention slides over a window in every layer; None: in some. Of Qwen2 the layers from
    ``max_window_layers`` on (transformers, configuration_qwen2.py). Layers that are said to be full have no window."""
    if "full_attention" in (config.get("layer_types") or ()):
        return False
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return False
    if "use_sliding_window" not in config or config.get("max_window_layers") is None:
        return True
    first, layers = (_integer(config, keys, path, 0) for keys in (("max_window_layers",), _CONFIG_KEYS["layers"]))
    return None if 0 < first < layers else first == 0


def _network(config: dict, model_type: str, path: Path) -> Network:
    hidden, vocab = (_integer(config, _CONFIG_KEYS[key], path) for key in ("hidden", "vocab"))
    tied = config.get("tie_word_embeddings")
    name = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    return Network(
        name=name,
        title=str(config.get("_name_or_path") or name),
        hidden=hidden,
        vocab=vocab,
        layers=_layers(config, model_type, path),
        norm="layernorm" if model_type in _LAYERNORM else "rmsnorm",
        tied=bool(model_type in _TIED if tied is None else tied),
        positions=_integer(config, _POSITIONS, path, 0),
        source=str(path),
    )


def _layers(config: dict, model_type: str, path: Path) -> tuple[tuple[Layer, int], ...]:
    """Kinds of layers with their counts; with latent attention the first ``first_k_dense_replace`` have no experts."""
    layers, hidden, heads, _ = (_integer(config, keys, path) for keys in _CONFIG_KEYS.values())
    if model_type not in _LATENT:
        layer = Layer(_attention(config, model_type, hidden, heads, path), _mlp(config, model_type, hidden, path))
        return ((layer, layers),)
    attention = _latent_attention(config, heads, path)
    first = _integer(config, ("first_k_dense_replace",), path, 0)
    if first > layers:
        raise InputError(f"{path}: first_k_dense_replace = {first} does not go with {layers} layers")
    dense = Layer(attention, Dense(_integer(config, ("intermediate_size",), path), True, "silu"), "dense")
    experts = Layer(attention, _shared_mixture(config, path), "experts")
    return tuple((layer, count) for layer, count in ((dense, first), (experts, layers - first)) if count)


def _latent_attention(config: dict, heads: int, path: Path) -> LatentAttention:
    ranks = _integer(config, ("q_lora_rank",), path, 0), _integer(config, ("kv_lora_rank",), path)
    dims = (_integer(config, (key,), path) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    return LatentAttention(heads, *ranks, *dims)


def _shared_mixture(config: dict, path: Path) -> Mixture:
    """Experts of which some are chosen for a token and ``n_shared_experts`` are passed by all (DeepSeek-V3, 2.1.2)."""
    experts, used, ffn = (
        _integer(config, (key,), path) for key in ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
    )
    _refuse_part(used, "experts a token", experts, path)
    return Mixture(experts, used, ffn, True, "silu", ffn * _integer(config, ("n_shared_experts",), path, 0))


def _attention(config: dict, model_type: str, hidden: int, heads: int, path: Path) -> GroupedQueryAttention:
    kv_heads = _integer(
        config, ("num_key_value_heads", "n_head_kv", "num_kv_heads"), path, 1 if config.get("multi_query") else heads
    )
    if model_type == "falcon" and not config.get("new_decoder_architecture"):
        kv_heads = 1 if config.get("multi_query", True) else heads  # it reads num_kv_heads in the new one alone
    _refuse_part(kv_heads, "key-value heads", heads, path)
    if heads % kv_heads:
        raise InputError(f"{path}: {kv_heads} key-value heads do not go with {heads}")
    return GroupedQueryAttention(
        heads,
        kv_heads,
        _head_dim(config, hidden, heads, path),
        window=_integer(config, ("sliding_window",), path, 0) if _slides(config, path) else 0,
        rotary=model_type not in _ABSOLUTE,
    )


def _mlp(config: dict, model_type: str, hidden: int, path: Path) -> Dense | Mixture:
    old = model_type in _OLD
    experts = _integer(config, ("num_local_experts", "num_experts", "n_routed_experts"), path, 1)
    used = _integer(config, ("num_experts_per_tok", "moe_topk"), path, 1 if experts == 1 else None)
    _refuse_part(used, "experts a token", experts, path)
    ffn_keys = ("moe_intermediate_size", "intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner")
    ffn = _integer(config, ffn_keys[experts == 1 :], path, 4 * hidden if old else None)
    spelled = (config.get(key) for key in ("hidden_act", "hidden_activation", "activation_function"))
    said = str(next(filter(None, spelled), "gelu" if old else "silu"))
    gated = model_type in _GATED or "swiglu" in said or "geglu" in said
    activation = "silu" if "sil" in said else "relu" if "relu" in said else "gelu"
    return Dense(ffn, gated, activation) if experts == 1 else Mixture(experts, used, ffn, gated, activation)


def _refuse_part(part: int, what: str, whole: int, path: Path) -> None:
    if not 1 <= part <= whole:
        raise InputError(f"{path}: {part} {what} do not go with {whole}")


def _head_dim(config: dict, hidden: int, heads: int, path: Path) -> int:
    """Elements of a head: as given, else those of the residual stream shared out evenly; raises InputError."""
    if config.get("head_dim") is not None:
        return _integer(config, ("head_dim",), path)
    if hidden % heads:
        keys = [next(k for k in _CONFIG_KEYS[field] if config.get(k) is not None) for field in ("hidden", "heads")]
        raise InputError(f"{path}: {keys[0]} = {hidden} is no multiple of {keys[1]} = {heads}; give head_dim")
    return hidden // heads


def _integer(config: dict, keys: tuple[str, ...], path: Path, default: int | None = None) -> int:
    least = 1 if default is None else 0
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{path}: {key} = {value!r} is not accepted; give a whole number of at least {least}")
        return value
    if default is None:
        raise InputError(f"{path}: {' or '.join(keys)} is missing; give a Hugging Face config.json of a decoder")
    return default

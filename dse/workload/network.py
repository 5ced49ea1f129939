"""Shapes of language models: the shipped table, and Hugging Face ``config.json`` files."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dse.errors import InputError, accepted
from dse.tables import read_table


@dataclass(frozen=True)
class Network:
    """The shape of a decoder-only transformer.

    ``hidden`` [element] of the residual stream; ``heads`` query and ``kv_heads`` key-value heads of ``head_dim``;
    ``ffn`` [element] of one expert's MLP, ``gated`` or not; ``experts_per_token`` of ``experts``; ``window`` [token] of
    sliding-window attention (0: none); ``tied`` embeddings count once.
    """

    name: str
    title: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    gated: bool
    vocab: int
    experts: int = 1
    experts_per_token: int = 1
    window: int = 0
    norm: str = "rmsnorm"
    activation: str = "silu"
    rotary: bool = True
    tied: bool = False
    source: str = ""

    @property
    def attention_parameters(self) -> float:
        """Parameters of one layer's attention."""
        heads = self.heads * self.head_dim
        return 2.0 * self.hidden * heads + 2.0 * self.hidden * self.kv_heads * self.head_dim

    @property
    def expert_parameters(self) -> float:
        """Parameters of one expert of one layer."""
        return (3.0 if self.gated else 2.0) * self.hidden * self.ffn

    @property
    def embedding_parameters(self) -> float:
        """Parameters of the embedding table (the output layer has as many again, unless tied)."""
        return float(self.vocab * self.hidden)

    @property
    def parameters(self) -> float:
        """Parameters in all (norms and biases left out: below 0.1 %)."""
        layer = self.attention_parameters + self.experts * self.expert_parameters
        return self.layers * layer + self.embedding_parameters * (1 if self.tied else 2)


@cache
def networks() -> dict[str, Network]:
    """Return the shipped networks by name."""
    return {row["network"]: _from_row(row) for row in read_table("networks/networks.csv")}


def _from_row(row: dict[str, str]) -> Network:
    whole = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "experts_per_token")
    return Network(
        name=row["network"],
        title=row["name"],
        **{key: int(row[key]) for key in whole},
        window=int(row["window"]),
        gated=row["gated"] == "1",
        norm=row["norm"],
        activation=row["activation"],
        rotary=row["rotary"] == "1",
        tied=row["tied_embeddings"] == "1",
        source=row["source"],
    )


@cache
def _by_alias() -> dict[str, str]:
    names = {}
    for row in read_table("networks/networks.csv"):
        for alias in (row["network"], row["name"], *filter(None, row["aliases"].split(";"))):
            names[_key(alias)] = row["network"]
    return names


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def load_network(name_or_path: str, where: str = "workload") -> Network:
    """Return a shipped network by any of its names, or the one that a Hugging Face config.json describes."""
    if not name_or_path.strip():
        raise InputError(f"{where}: names no network; give one of 'dse show networks' or a Hugging Face config.json")
    found, path = _by_alias().get(_key(name_or_path)), _config_path(name_or_path)
    if path is not None:
        return _from_config(path)
    if found is None:
        hint = accepted(name_or_path, networks())
        raise InputError(
            f"{where}: no network is called {name_or_path!r}; {hint} (or give the path of a Hugging Face config.json)"
        )
    return networks()[found]


def _config_path(name_or_path: str) -> Path | None:
    """The config.json that a name means, None for a shipped network or none at all."""
    path = Path(name_or_path)
    if path.suffix == ".json":
        return path
    return path / "config.json" if _key(name_or_path) not in _by_alias() and path.is_dir() else None


def stated_quantisation(name_or_path: str) -> str:
    """Return how a network's name or its config.json says that its weights are quantised, "" where neither does."""
    path = _config_path(name_or_path)
    if path is None:
        named = _QUANTISED.search(name_or_path)
        return named[0] if named else ""
    said = _read_config(path).get("quantization_config") or {}
    bits = f" of {said['bits']} bits" if "bits" in said else ""
    return f"{said.get('quant_method', 'quantization_config')}{bits}" if said else ""


_QUANTISED = re.compile(r"nvfp4|mxfp4|fp8|int8|int4|w8a8|w4a16|awq|gptq", re.IGNORECASE)
"""Words of a network's name that say how its weights are quantised."""

_CONFIG_KEYS = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "vocab": ("vocab_size",),
}
"""Spellings of the same quantity in Hugging Face configurations."""

_UNSUPPORTED = (
    "kv_lora_rank", "q_lora_rank", "ssm_state_size", "state_size", "is_encoder_decoder", "n_shared_experts",
    "shared_expert_intermediate_size", "sliding_window_pattern", "attn_layer_period", "mamba_d_state", "mamba_d_ssm",
    "hybrid_override_pattern", "full_attention_interval", "cross_attention_layers", "attention_chunk_size",
    "first_k_dense_replace", "mlp_only_layers", "num_key_value_heads_per_layer", "block_configs", "block_types",
    "attn_type_list", "moe_num_experts", "shared_intermediate_size", "num_shared_expert",
)  # fmt: skip
"""Keys of architectures whose kernels are not described here: latent attention, state space, encoder-decoder, experts
that every token uses, attention in chunks, and layers of different kinds in one network."""

_EVERY_NTH = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "expert_layer_period")
"""Keys of networks whose layers have experts only every so often: covered where that is every layer."""

_OLD = ("gpt2", "opt", "gpt_neox", "gpt_bigcode", "bloom", "falcon", "gptj", "phi", "starcoder2")
"""Model types with LayerNorm, biases and an MLP without gate."""

_GATED = (
    "llama", "mistral", "ministral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_vl_text",
    "qwen2_5_vl_text", "qwen3_vl_text", "gemma", "gemma3_text", "phi3", "phimoe", "olmo", "olmo2", "olmoe", "stablelm",
    "internlm2", "internlm3", "baichuan", "aquila", "xverse", "yi", "minicpm", "granite", "granitemoe", "exaone",
    "cohere", "smollm3", "glm", "glm4", "seed_oss", "ernie4_5", "deepseek",
)  # fmt: skip
"""Model types with a gated MLP, whose configurations say all that a layer holds; any other may hide its own kinds of
layers under keys that are not known here, and is refused."""

_LAYERNORM = (*_OLD, "cohere", "stablelm")
"""Model types with LayerNorm."""

_TIED = ("gpt2", "opt", "gpt_bigcode", "bloom", "falcon", "starcoder2", "gemma", "gemma3_text", "cohere", "smollm3")
"""Model types whose output layer is the embedding table unless their configuration says otherwise."""

_ABSOLUTE = ("gpt2", "opt", "gpt_bigcode", "bloom")
"""Model types without rotary embeddings."""


def _read_config(path: Path) -> dict:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a JSON file: {error}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: holds {type(config).__name__}, not an object; give a Hugging Face config.json")
    return config


def _from_config(path: Path) -> Network:
    config = _read_config(path)
    config = config.get("text_config", config)
    if not isinstance(config, dict):
        raise InputError(f"{path}: text_config is not an object; give a Hugging Face config.json")
    said = {key: config.get(key) for key in _UNSUPPORTED}
    said |= {key: config.get(key) for key in _EVERY_NTH if config.get(key) != 1}
    for key, value in said.items():
        if value:
            raise InputError(
                f"{path}: {key} = {value!r}: this architecture is not covered; "
                "accepted are decoder-only transformers with multi-head or grouped-query attention"
            )
    kind = str(config.get("model_type") or "llama").lower()
    if kind not in (*_GATED, *_OLD):
        known = ", ".join(sorted((*_GATED, *_OLD)))
        raise InputError(
            f"{path}: model_type = {kind!r}: this architecture is not covered; known are {known}. "
            "Where it is built as one of these, give that one's"
        )
    if len(set(config.get("layer_types") or [])) > 1 or _slides(config) is None:
        raise InputError(f"{path}: layers of different kinds in one network are not covered")
    return _network_of(config, path)


def _slides(config: dict) -> bool | None:
    """Whether attention slides over a window in every layer; None: in some. Of Qwen2 the layers from
    ``max_window_layers`` on (transformers, configuration_qwen2.py)."""
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return False
    first, layers = config.get("max_window_layers"), config.get("num_hidden_layers")
    if "use_sliding_window" not in config or first is None or layers is None:
        return True
    return None if 0 < first < layers else first == 0


def _network_of(config: dict, path: Path) -> Network:
    values = {field: _integer(config, keys, path) for field, keys in _CONFIG_KEYS.items()}
    hidden, heads = values["hidden"], values["heads"]
    model_type = str(config.get("model_type", "")).lower()
    old, gemma = model_type in _OLD, model_type.startswith("gemma")
    experts = _integer(config, ("num_local_experts", "num_experts", "n_routed_experts"), path, 1)
    ffn_keys = ("moe_intermediate_size", "intermediate_size", "ffn_dim", "n_inner")
    ffn_keys = ffn_keys if experts > 1 else ffn_keys[1:]
    spelled = (config.get(key) for key in ("hidden_act", "hidden_activation", "activation_function"))
    activation = str(next(filter(None, spelled), "gelu" if old else "silu"))
    kv_heads = _integer(config, ("num_key_value_heads", "n_head_kv", "num_kv_heads"), path,
                        1 if config.get("multi_query") else heads)  # fmt: skip
    if model_type == "falcon" and not config.get("new_decoder_architecture"):
        kv_heads = 1 if config.get("multi_query", True) else heads  # it reads num_kv_heads in the new one alone
    used = _integer(config, ("num_experts_per_tok", "moe_topk"), path, 1 if experts == 1 else None)
    for what, part, whole in (("key-value heads", kv_heads, heads), ("experts a token", used, experts)):
        if not 1 <= part <= whole or (what == "key-value heads" and heads % part):
            raise InputError(f"{path}: {part} {what} do not go with {whole}")
    name = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    return Network(
        name=name,
        title=str(config.get("_name_or_path") or name),
        **values,
        kv_heads=kv_heads,
        head_dim=_integer(config, ("head_dim",), path, hidden // heads),
        ffn=_integer(config, ffn_keys, path, 4 * hidden if old else None),
        gated=gemma or (not old and "silu" in activation) or "swiglu" in activation or "geglu" in activation,
        experts=experts,
        experts_per_token=used,
        window=_integer(config, ("sliding_window",), path, 0) if _slides(config) else 0,
        norm="layernorm" if model_type in _LAYERNORM else "rmsnorm",
        activation="silu" if "sil" in activation else "relu" if "relu" in activation else "gelu",
        rotary=model_type not in _ABSOLUTE,
        tied=bool(config.get("tie_word_embeddings", model_type in _TIED)),
        source=str(path),
    )


def _integer(config: dict, keys: tuple[str, ...], path: Path, default: int | None = None) -> int:
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{path}: {key} = {value!r} is not accepted; give a whole number")
        if value == 0 and default is None:
            raise InputError(f"{path}: {key} = 0 is not accepted; give a positive whole number")
        return value
    if default is None:
        raise InputError(f"{path}: {' or '.join(keys)} is missing; give a Hugging Face config.json of a decoder")
    return default

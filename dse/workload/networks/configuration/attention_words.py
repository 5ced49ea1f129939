"""Which kind of attention each layer of a configuration has, by every way in which configurations say it."""

from pathlib import Path

from dse.base.errors import InputError, shown
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import Config, listed, numbered, whole

FULL, SLIDING, CHUNKED, UNROTATED = "full", "sliding", "chunked", "unrotated"
"""Kinds of attention of a layer: to all tokens, in a window, in chunks, to all without positions."""

LINEAR, MAMBA, KIMI_DELTA, LIGHTNING, CONV, BESIDE = "linear", "mamba", "kimi_delta", "lightning", "conv", "beside"
"""Kinds with a state: gated delta net, Mamba2, those of Kimi and MiniMax, convolutions, attention beside Mamba2."""

WORDS = {
    "full_attention": FULL,
    "attention": FULL,
    "deepseek_sparse_attention": FULL,  # what it attends its indexer chooses
    "indexed_attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
    "mamba": MAMBA,
    "conv": CONV,
}
"""What ``layer_types`` calls them."""

INDEXED = ("deepseek_sparse_attention", "indexed_attention")
"""Words for layers whose indexer chooses what they attend."""

STATES = {
    "granitemoehybrid": MAMBA,
    "bamba": MAMBA,
    "kimi_linear": KIMI_DELTA,
    "minimax": LIGHTNING,
    "minimax_text_01": LIGHTNING,
    "minimax_m1": LIGHTNING,
    "bailing_moe_linear": LIGHTNING,
}
"""What ``linear_attention`` is of model types whose state is another than a gated delta net's."""

FURTHER = ("step3p5", "step3p7")
"""Model types whose ``layer_types`` go on with the layers that predict further tokens."""

OF_LIST = "attn_type_list"
"""Key of MiniMax: 1 where a layer attends to all tokens, 0 where it keeps a state."""

OF_KIMI = "linear_attn_config"
"""Key of Kimi Linear: layers of both kinds, counted from 1, and the sizes of the state."""

PATTERN = "hybrid_layer_pattern"
"""Key of MiMo-V2: 1 where a layer slides over a window."""


def attention_words(config: Config, kind: ModelType, layers: int, path: Path) -> list[str]:
    """Return the kind of attention of each layer; raises InputError naming one that is not covered."""
    if kind.attention == "compressed":  # each layer has a window, and keys of its own ratio
        return [FULL] * layers
    if kind.name in FURTHER and isinstance(config.get("layer_types"), list):
        config = config | {"layer_types": config["layer_types"][:layers]}
    given = listed(config, "layer_types", str, layers, path)
    for word in given:
        if word not in WORDS or (word in INDEXED and kind.attention != "sparse_latent"):
            raise InputError(f"{path}: layer_types has {word!r}, which is not covered; known are {', '.join(WORDS)}")
    if given:
        words = [STATES.get(kind.name, LINEAR) if word == "linear_attention" else WORDS[word] for word in given]
        if SLIDING in words and not config.get("sliding_window"):
            raise InputError(f"{path}: layer_types has layers that slide over a window, and sliding_window is missing")
        return _without_positions(words, config, kind, path)
    if attends := listed(config, OF_LIST, int, layers, path):
        return [FULL if layer else STATES.get(kind.name, FULL) for layer in attends]
    if named := _named(config, kind, path):
        state = CONV if kind.name.startswith("lfm2") else KIMI_DELTA
        return [FULL if layer in named else state for layer in range(layers)]
    if slides := listed(config, PATTERN, int, layers, path):
        return [SLIDING if layer else FULL for layer in slides]
    if kind.name == "bamba":
        with_attention = numbered(config, "attn_layer_indices", path)
        return [FULL if layer in with_attention else MAMBA for layer in range(layers)]
    return _without_window(_in_turns(config, kind, layers, path), config)


def _named(config: Config, kind: ModelType, path: Path) -> list[int]:
    """Layers that attend to all tokens, where these are named and the others keep a state; else none."""
    if kind.name == "kimi_linear":
        return [layer - 1 for layer in numbered(of_kimi(config, path), "full_attn_layers", path)]
    return numbered(config, "full_attn_idxs", path) if kind.name.startswith("lfm2") else []


def of_kimi(config: Config, path: Path) -> Config:
    """Return what Kimi Linear states of its states, nothing where it states nothing; raises InputError."""
    said = config.get(OF_KIMI) or {}
    if not isinstance(said, dict):
        raise InputError(f"{path}: {OF_KIMI} is not an object; give one with full_attn_layers, num_heads and head_dim")
    return said


def _in_turns(config: Config, kind: ModelType, layers: int, path: Path) -> list[str]:
    """Kinds of layers that take turns, or of which the last ones slide, as ``max_window_layers`` of Qwen2 says."""
    rotated = listed(config, "no_rope_layers", int, layers, path) if kind.interval == "no_rope_layer_interval" else []
    if rotated:  # 1 where queries and keys are rotated
        return [kind.layers[0] if turns else kind.layers[-1] for turns in rotated]
    if kind.layers and not kind.interval:
        return [kind.layers[layer % len(kind.layers)] for layer in range(layers)]
    if kind.layers:
        spelled = (kind.interval, f"_{kind.interval}")  # as Gemma 3's class writes it, and as it reads it
        said = next((config[key] for key in spelled if config.get(key) is not None), None)
        turn = len(said) if isinstance(said, str) else whole(config, spelled, path, len(kind.layers))
        if not turn:
            raise InputError(f"{path}: {kind.interval} = {shown(said)} is not accepted; give the layers of a turn")
        last = 1 + max((i for i, word in enumerate(kind.layers[:-1]) if word == kind.layers[-1]), default=-1)
        words = (*kind.layers[last:-1][:1] * (turn - 1), kind.layers[-1])
        whole_turns = layers - layers % turn if kind.name == "bailing_moe_linear" else layers
        return [words[layer % len(words)] if layer < whole_turns else FULL for layer in range(layers)]
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return [FULL] * layers
    first = 0
    if config.get("max_window_layers") is not None:
        first = whole(config, ("max_window_layers",), path, 0)
    return [FULL if layer < first else SLIDING for layer in range(layers)]


def _without_positions(words: list[str], config: Config, kind: ModelType, path: Path) -> list[str]:
    """The kinds where layers that are not rotated stand beside ``layer_types``, which does not tell them (SmolLM3)."""
    if UNROTATED not in kind.layers:
        return words
    turns = _in_turns(config, kind, len(words), path)
    return [turn if (word, turn) == (FULL, UNROTATED) else word for word, turn in zip(words, turns, strict=True)]


def _without_window(words: list[str], config: Config) -> list[str]:
    """The kinds where a network that could slide states no window."""
    return words if config.get("sliding_window") else [FULL if word == SLIDING else word for word in words]

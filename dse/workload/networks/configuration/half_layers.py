"""Hybrids whose layers are half as large as others': an attention, a state space or an MLP each (Nemotron-H)."""

from pathlib import Path

from dse.base.errors import InputError
from dse.workload.networks.absent import Absent
from dse.workload.networks.configuration.attention_words import FULL, MAMBA
from dse.workload.networks.configuration.attentions import attention_of
from dse.workload.networks.configuration.mlps import mlp_of
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import SPELLINGS, Config, whole
from dse.workload.networks.layers import AttentionKind, Layer, MlpKind

LETTERS = {"M": MAMBA, "*": FULL, "-": "mlp", "E": "moe"}
"""Kinds of layers as ``hybrid_override_pattern`` writes them."""

NAMES = {
    "mamba": MAMBA,
    "attention": FULL,
    "mlp": "mlp",
    "moe": "moe",
    "linear_attention": MAMBA,
    "full_attention": FULL,
}
"""The same as ``layers_block_type`` names them, in two releases' words."""

PATTERN, LIST = "hybrid_override_pattern", "layers_block_type"


def half_layers(config: Config, kind: ModelType, path: Path) -> list[Layer] | None:
    """Return the layers of such a hybrid in their order, None of another network; raises InputError."""
    key = next((key for key in (PATTERN, LIST) if config.get(key)), None)
    if key is None:
        return None
    known = LETTERS if key == PATTERN else NAMES
    if not isinstance(config[key], str if key == PATTERN else list):
        wanted = "a text of letters" if key == PATTERN else "a list of texts"
        raise InputError(f"{path}: {key} = {config[key]!r} is not accepted; give {wanted}, one a layer")
    for word in config[key]:
        if word not in known:
            raise InputError(f"{path}: {key} has {word!r}, which is not covered; known are {', '.join(known)}")
    words = [known[word] for word in config[key]]
    layers = whole(config, SPELLINGS["layers"], path, len(words))
    if layers != len(words):
        raise InputError(f"{path}: {key} states {len(words)} layers, and there are {layers}; give one each")
    return [_half(word, config, kind, path) for word in words]


def _half(word: str, config: Config, kind: ModelType, path: Path) -> Layer:
    halves: tuple[AttentionKind, MlpKind] = (Absent(), Absent())
    if word in ("mlp", "moe"):
        halves = Absent(), mlp_of(word == "moe", config, kind, path)
    else:
        halves = attention_of(word, 0, config, kind, path), Absent()
    return Layer(*halves)

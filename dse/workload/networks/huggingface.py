"""Hugging Face ``config.json`` files: the shape of a network, where its architecture is one that is covered."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.base.csv_table import refuse_twice
from dse.base.errors import InputError
from dse.base.text_file import parsing, printable, read_text
from dse.workload.networks.configuration.attention_words import OF_LIST, STATES, attention_words
from dse.workload.networks.configuration.attentions import attention_of
from dse.workload.networks.configuration.block_configs import block_layers
from dse.workload.networks.configuration.double_layers import double_layers
from dse.workload.networks.configuration.encoders import configured_encoder, left_out
from dse.workload.networks.configuration.half_layers import half_layers
from dse.workload.networks.configuration.mlps import mlp_of, with_experts
from dse.workload.networks.configuration.model_types import (
    ModelType,
    find_model_type,
    model_types,
    type_of_class,
    with_defaults,
)
from dse.workload.networks.configuration.not_decoders import refuse_not_decoders
from dse.workload.networks.configuration.values import SPELLINGS, Config, refuse_unclear, whole
from dse.workload.networks.layers import PARALLEL, PRE, Layer
from dse.workload.networks.network import Network

_OF_BLOCKS = ("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text")
"""Model types whose layers attend chosen blocks."""

_UNSUPPORTED = {
    "is_encoder_decoder": (),
    "state_size": (),
    "mamba_d_ssm": ("falcon_h1",),
    "attn_layer_period": (),
    "cross_attention_layers": (),
    "add_cross_attention": (),
    "num_key_value_heads_per_layer": (),
    "block_configs": ("nemotron-nas",),
    "block_types": (),
    "compress_ratios": ("compressed",),
    "compress_rates": ("compressed",),
    "hc_mult": ("compressed",),
    "sparse_attention_config": _OF_BLOCKS,
    "hidden_size_per_layer_input": (),
    "num_kv_shared_layers": (),
    "attention_other_setting": ("step3p5", "step3p7"),
    "num_sliding_attention_heads": ("step3p5", "step3p7"),
    "hybrid_layer_pattern": ("mimo_v2_flash",),
    "kv_lora_rank": ("latent", "sparse_latent"),
    "q_lora_rank": ("latent", "sparse_latent", "compressed"),
    "index_topk": ("sparse_latent", "compressed"),
    "ssm_state_size": ("nemotron_h",),
    "hybrid_override_pattern": ("nemotron_h",),
    "mamba_d_state": ("granitemoehybrid", "bamba", "falcon_h1"),
    "full_attention_interval": ("linear",),
    "attention_chunk_size": ("chunked",),
    "n_shared_experts": ("count", "nemotron_h", "share_expert_dim", *_OF_BLOCKS),
    "num_shared_experts": ("count",),
    "num_shared_expert": ("count",),
    "moe_num_shared_experts": ("count",),
    "shared_expert_intermediate_size": ("shared_expert_intermediate_size",),
    "shared_intermediate_size": ("shared_intermediate_size", *_OF_BLOCKS),
    "moe_latent_size": ("nemotron_h",),
    "use_cla": (),
    "use_mla": ("latent", "sparse_latent"),
    "ngram_vocab_size_ratio": (),
    "total_ut_steps": (),
    "mean_recurrence": (),
    "sparse_config": (),
    "residual_moe": (),
    "parallel_attn_mlp_res": (),
    "draft_vocab_size": (),
    "medusa_num_heads": (),
}
"""Keys of architectures that are read of some model types alone, told by their attention, their kinds of layers, what
every token passes, or their name; of others, whose kernels are not described here, they are refused."""

_NEEDED = {"use_mla": ("latent", "sparse_latent"), "multi_query_attention": ("chatglm",)}
"""Keys of what some model types, told by attention or name, do without where they are false: they then attend in
another way."""

MOST_LAYERS = 10_000
"""Layers that a configuration may state: each is looked at by itself."""

_TEXT = ("text_config", "llm_config", "language_config")
"""Keys of the part of a configuration that describes its language model."""

_TIED = ("tie_word_embeddings", "tie_embedding")
"""Keys that say whether the head's weights are the embedding's."""

_PARALLEL = ("use_parallel_residual", "parallel_attn")
"""Keys that say whether attention and MLP run side by side, whatever their model type does without."""


def read_config(path: Path) -> Config:
    """Return what a config.json holds; raises InputError where it cannot be read, is no object, or has a key twice."""

    def once(pairs: list[tuple[str, Any]]) -> Config:
        refuse_twice(path, (key for key, _ in pairs), "key")
        return dict(pairs)

    text = read_text(path)
    with parsing(path, "JSON"):
        config = json.loads(text, object_pairs_hook=once)
    if not isinstance(config, dict):
        raise InputError(f"{path}: holds {type(config).__name__}, not an object; give a Hugging Face config.json")
    return config


def config_network(path: Path) -> Network:
    """Return the network that a config.json describes.

    Raises InputError naming file, key and value for what is missing, wrong, or of an architecture whose kernels are not
    described here.
    """
    whole_file = read_config(path)
    config = text_config(whole_file, path)
    kind = _model_type(config, whole_file, path)
    refuse_unclear(config, path)
    refuse_not_decoders(config, whole_file, path)
    _refuse_uncovered(config, kind, path)
    is_part = not whole_file.keys().isdisjoint(_TEXT)
    network = _network(with_defaults(config, kind, path, is_part), kind, path)
    encoder = configured_encoder(whole_file, network.hidden, path)
    return replace(network, title=network.title + left_out(whole_file, encoder), encoder=encoder)


def _model_type(config: Config, whole_file: Config, path: Path) -> ModelType:
    """The model type of a language model: its own, else that of the whole, whose part it is, else of the class that the
    file names; Llama's where none is named. Raises InputError where it is not covered."""
    if config.get("model_type"):
        return find_model_type(str(config["model_type"]).lower(), path)
    if whole_file.get("model_type"):
        of_whole = str(whole_file["model_type"]).lower()
        return find_model_type(f"{of_whole}_text" if f"{of_whole}_text" in model_types() else of_whole, path)
    named = config.get("architectures") or whole_file.get("architectures")
    if named:
        return type_of_class(named, path)
    _refuse_other_file(config, path)
    return find_model_type("llama", path)


_OTHER_FILES = {
    ("dim", "n_layers"): "the publisher's own params.json",
    ("peft_type",): "an adapter's adapter_config.json",
    ("_class_name",): "a file of diffusers",
    ("_diffusers_version",): "a file of diffusers",
}
"""Keys of files that stand where a config.json is expected -> what these files are."""


def _refuse_other_file(config: Config, path: Path) -> None:
    """Raise InputError where a file without model type is one of another kind, by its keys."""
    for keys, what in _OTHER_FILES.items():
        if all(key in config for key in keys):
            raise InputError(f"{path}: is {what}, by its key {keys[0]!r}; give the config.json of the whole network")


def text_config(config: Config, path: Path) -> Config:
    """Return the part of a configuration that describes its language model: all of it, or ``text_config`` with what the
    whole says of the output layer. Raises InputError where that is no object."""
    key = next((key for key in _TEXT if key in config), None)
    text = config if key is None else config[key]
    if not isinstance(text, dict):
        raise InputError(f"{path}: {key} is not an object; give a Hugging Face config.json")
    tied = text.get("tie_word_embeddings")
    return text | {"tie_word_embeddings": config.get("tie_word_embeddings") if tied is None else tied}


def _refuse_uncovered(config: Config, kind: ModelType, path: Path) -> None:
    """Raise InputError naming the first key of an architecture that the model type has not."""
    has = {kind.name, kind.attention, kind.shared, *kind.layers}
    for key, readers in _UNSUPPORTED.items():
        if config.get(key) and has.isdisjoint(readers):
            raise InputError(
                f"{path}: {key} = {config[key]!r}: this architecture is not covered with model_type = {kind.name!r}; "
                "docs/workloads.md lists the kinds of layers that are read, and of which model types"
            )
    for key, needing in _NEEDED.items():
        if config.get(key) is False and not has.isdisjoint(needing):
            raise InputError(f"{path}: {key} = False: this architecture is not covered with model_type = {kind.name!r}")
    attended = config.get(OF_LIST)
    all_tokens = isinstance(attended, list) and all(layer == 1 for layer in attended)
    if attended and not all_tokens and kind.name not in STATES:
        raise InputError(f"{path}: {OF_LIST} = {attended!r}: this architecture is not covered; 1 alone is")


def _network(config: Config, kind: ModelType, path: Path) -> Network:
    hidden, vocab = (whole(config, SPELLINGS[key], path) for key in ("hidden", "vocab"))
    tied = next((config[key] for key in _TIED if config.get(key) is not None), None)
    name = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    return Network(
        name=name,
        title=printable(str(config.get("_name_or_path") or name)),
        hidden=hidden,
        vocab=vocab,
        layers=_labelled(_counted(_layers(config, kind, path))),
        norm=kind.norm,
        tied=bool(kind.tied if tied is None else tied),
        positions=whole(config, SPELLINGS["positions"], path, 0),
        source=str(path),
        logit_softcap=bool(config.get("final_logit_softcapping")),
        embedded=_embedded(config, hidden, path),
    )


def _embedded(config: Config, hidden: int, path: Path) -> int:
    """Elements of a token's embedding where they are projected to the stream's (OPT-350M), else 0."""
    elements = whole(config, ("word_embed_proj_dim",), path, 0)
    return 0 if elements == hidden else elements


def _layers(config: Config, kind: ModelType, path: Path) -> list[Layer]:
    """Every layer in its order."""
    own = half_layers(config, kind, path) or block_layers(config, kind, path)
    if own is not None:
        return own
    layers = whole(config, SPELLINGS["layers"], path)
    if layers > MOST_LAYERS:
        raise InputError(f"{path}: {layers:,} layers are not accepted; give at most {MOST_LAYERS:,}")
    if (twice := double_layers(config, kind, path)) is not None:
        return twice
    words, experts = attention_words(config, kind, layers, path), with_experts(config, kind, layers, path)
    arrangement, streams = _arrangement(config, kind), whole(config, ("hc_mult",), path, 1) or 1
    return [
        Layer(
            attention_of(words[layer], layer, config, kind, path),
            mlp_of(experts[layer], config, kind, path),
            arrangement=arrangement,
            streams=streams,
        )
        for layer in range(layers)
    ]


def _arrangement(config: Config, kind: ModelType) -> str:
    said = next((config[key] for key in _PARALLEL if isinstance(config.get(key), bool)), None)
    if said is None or kind.arrangement not in (PRE, PARALLEL):
        return kind.arrangement
    return PARALLEL if said else PRE


def _counted(layers: list[Layer]) -> list[tuple[Layer, int]]:
    """The kinds of layers with their counts, in the order in which they come first."""
    return [(layer, layers.count(layer)) for layer in dict.fromkeys(layers)]


def _labelled(layers: list[tuple[Layer, int]]) -> tuple[tuple[Layer, int], ...]:
    """The same with labels that tell them apart: what their attention is, their MLP, or both."""
    if len(layers) == 1:
        return tuple(layers)
    words = [(_word(layer.attention.kind), _word(layer.mlp.kind)) for layer, _ in layers]
    told = [len(set(column)) > 1 for column in zip(*words, strict=True)]
    tell = ["_".join(w for w, tells in zip(pair, told, strict=True) if tells and w != "none") for pair in words]
    labels = [label or next(w for w in pair if w != "none") for label, pair in zip(tell, words, strict=True)]
    seen: dict[str, int] = {}
    found = []
    for (layer, count), label in zip(layers, labels, strict=True):
        seen[label] = seen.get(label, 0) + 1
        found.append((replace(layer, label=label if seen[label] == 1 else f"{label}_{seen[label]}"), count))
    return tuple(found)


def _word(kind: str) -> str:
    """A kind in one word: experts where it has any, else what it is first."""
    return "experts" if kind.endswith("mixture") else kind.removeprefix("gated ").partition(" ")[0].lower()

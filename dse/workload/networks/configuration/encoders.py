"""Encoders of a configuration: what ``vision_config`` or ``audio_config`` describes beside the language model."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.workload.networks.configuration.model_types import UNKNOWN
from dse.workload.networks.configuration.values import SPELLINGS, Config, numbered, whole
from dse.workload.networks.encoder import Encoder
from dse.workload.networks.encoder_attention import EncoderAttention
from dse.workload.networks.images import BUDGET, CROPS, FIXED, TILES, Images, Sounds
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense

MEDIA = {"vision_config": "vision", "audio_config": "audio", "img_processor": "vision"}
"""Keys of a configuration that say that a network has an encoder -> of what."""

PARTS = {
    "vision": ("vision", "visual", "image", "img", "vit_"),
    "audio": ("audio", "speech", "acoustic", "sound", "voice"),
    "encoder": ("encoder", "tower"),
}
"""What an encoder takes -> what keys of a configuration hold that describe one of another layout."""

MEDIUM_OF = {"images": "vision", "sounds": "audio"}
"""What an encoder takes, as a part of a configuration calls it."""

OF = {
    "layers": ("vt_num_hidden_layers", "depth", "encoder_layers", *SPELLINGS["layers"]),
    "hidden": ("vt_hidden_size", "embed_dim", "d_model", "hidden_size"),
    "heads": ("vt_num_attention_heads", "num_heads", "encoder_attention_heads", *SPELLINGS["heads"]),
    "ffn": ("vt_intermediate_size", "encoder_ffn_dim", "intermediate_size"),
    "channels": ("in_channels", "in_chans", "num_channels"),
    "merge": ("spatial_merge_size", "merge_kernel_size", "pooling_kernel_size", "merge"),
}
"""Spellings of the same quantity of an encoder."""

OF_WHOLE = ("spatial_merge_size", "vision_soft_tokens_per_image")
"""Keys that stand beside the encoder's part of a configuration and are about it."""


@dataclass(frozen=True)
class EncoderType:
    """A row of ``networks/encoder_types.csv``: what the class of an encoder decides, whatever its configuration says.

    ``networks``: model types of the whole in which it is scaled and projected so, since others take the same encoder
    otherwise; ``positions``: what gives the number of learnt ones; ``sizing``: how an image is scaled
    (:mod:`dse.workload.networks.images`); ``projector``: what its products widen to; ``defaults`` of keys.
    """

    networks: tuple[str, ...]
    medium: str
    norm: str
    arrangement: str
    gated: bool
    activation: str
    qk_norm: bool
    rotary: bool
    positions: str
    sizing: str
    pooled: bool
    projector: tuple[str, ...]
    defaults: dict[str, Any]


@cache
def encoder_types() -> dict[str, EncoderType]:
    """Return the kinds of encoders that are covered, by their names and other names."""
    found = {}
    for row in read_table("networks/encoder_types.csv"):
        kind = EncoderType(
            tuple(row["networks"].split(";")),
            row["medium"],
            row["norm"],
            row["arrangement"],
            row["gated"] == "1",
            row["activation"],
            row["qk_norm"] == "head",
            row["rotary"] == "1",
            row["positions"],
            row["sizing"],
            row["pooled"] == "1",
            tuple(row["projector"].split()),
            settings(row["defaults"]),
        )
        found |= dict.fromkeys((row["encoder_type"], *filter(None, row["aliases"].split(";"))), kind)
    return found


def settings(text: str) -> dict[str, Any]:
    """Return what a cell of ``key=value`` states: whole numbers, and lists of them in brackets."""
    pairs = (pair.split("=") for pair in filter(None, text.split(";")))
    return {key: _value(value) for key, value in pairs}


def _value(text: str) -> Any:
    if text == UNKNOWN:
        return text
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return numbers if text.startswith("[") else numbers[0]


def configured_encoder(whole_file: Config, hidden: int, path: Path) -> Encoder | None:
    """Return the encoder of a network whose residual stream is ``hidden`` wide, the first where there are several; None
    where it has none of a known kind, or one whose sizes are not all given."""
    found = (_configured(key, whole_file, hidden, path) for key in MEDIA if _is_part(whole_file.get(key)))
    return next(filter(None, found), None)


def _configured(key: str, whole_file: Config, hidden: int, path: Path) -> Encoder | None:
    part, of_whole = whole_file[key], str(whole_file.get("model_type") or "").lower()
    kind = encoder_types().get(str(part.get("model_type") or of_whole).lower())
    if kind is None or kind.medium != MEDIA[key] or (of_whole and of_whole not in kind.networks):
        return None
    beside = {key: whole_file[key] for key in OF_WHOLE if key in whole_file}
    try:
        return encoder_of(beside | part, kind, hidden, path)
    except InputError:
        return None


def left_out(whole_file: Config, encoder: Encoder | None) -> str:
    """Return what of a configuration's encoders the ``encoder`` that is read leaves out, as a note; "" for nothing."""
    taken = MEDIUM_OF.get(encoder.medium) if encoder else None
    words = {word: None for key, value in whole_file.items() if _is_part(value) and (word := _medium(key)) != taken}
    words.pop("", None)
    named = " and ".join(f"{word} encoder" if word != "encoder" else word for word in words)
    return f" (language model alone, without its {named})" if words else ""


def _medium(key: str) -> str:
    """What an object of a configuration encodes, by its key; "" where it encodes nothing."""
    if key in MEDIA:
        return MEDIA[key]
    return next((word for word, parts in PARTS.items() if any(part in key.lower() for part in parts)), "")


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


@cache
def shipped_encoder(network: str, hidden: int) -> Encoder | None:
    """Return the encoder of a shipped network, None where it has none."""
    for row in read_table("networks/encoders.csv"):
        if row["network"] == network:
            return encoder_of(settings(row["settings"]), encoder_types()[row["encoder_type"]], hidden, Path(network))
    return None


def encoder_of(given: Config, kind: EncoderType, out: int, path: Path) -> Encoder:
    """Return the encoder that a part of a configuration describes, its results ``out`` wide; raises InputError."""
    config = _with_defaults(given, kind, path)
    hidden, heads = whole(config, OF["hidden"], path), whole(config, OF["heads"], path)
    ratio = whole(config, ("mlp_ratio",), path, 0)
    ffn = ratio * hidden if ratio else whole(config, OF["ffn"], path)
    dim = whole(config, ("head_dim",), path, hidden // heads)
    mlp = Dense(ffn, kind.gated, kind.activation)
    patch = whole(config, ("patch_size",), path) if "patch_size" in config else 1
    window = whole(config, ("window_size",), path, 0) // patch
    full = EncoderAttention(heads, dim, kind.rotary, kind.qk_norm)
    windowed = EncoderAttention(heads, dim, kind.rotary, kind.qk_norm, window)
    depth, all_see = whole(config, OF["layers"], path), len(numbered(config, "fullatt_block_indexes", path))
    layers: tuple[tuple[Layer, int], ...] = ((Layer(full, mlp, "", kind.arrangement), depth),)
    if window and all_see < depth:
        parts = ((windowed, "window", depth - all_see), (full, "full", all_see))
        layers = tuple((Layer(a, mlp, label, kind.arrangement), n) for a, label, n in parts if n)
    source = _sounds(config, path) if kind.medium == "audio" else _images(config, kind, path)
    bare = Encoder(source, hidden, layers, kind.norm, _positions(config, kind, path), kind.pooled, ())
    known = {"merged": bare.merged, "hidden": hidden, "out": out}
    widths = tuple(known[word] if word in known else whole(config, (word,), path) for word in kind.projector)
    projectors = 1 + len(numbered(config, "deepstack_visual_indexes", path))
    return Encoder(source, hidden, layers, kind.norm, bare.positions, kind.pooled, widths, projectors)


def _with_defaults(given: Config, kind: EncoderType, path: Path) -> Config:
    config = dict(given)
    for key, value in kind.defaults.items():
        spellings = key.split("|")
        if any(given.get(spelling) is not None for spelling in spellings):
            continue
        if value == UNKNOWN:
            raise InputError(f"{path}: {key} of the encoder is missing; give it, as the publisher's config.json does")
        config[spellings[0]] = value
    return config


def _images(config: Config, kind: EncoderType, path: Path) -> Images:
    patch, frames = whole(config, ("patch_size",), path), whole(config, ("temporal_patch_size",), path, 1)
    values = whole(config, OF["channels"], path, 3) * frames * patch**2
    sized = kind.sizing in (FIXED, TILES, CROPS)
    budget = ("vision_soft_tokens_per_image", "default_output_length")
    limits = {TILES: ("tiles",), CROPS: ("num_crops",), BUDGET: budget}
    return Images(
        patch,
        whole(config, OF["merge"], path, 1),
        values,
        kind.sizing,
        whole(config, ("image_size",), path) if sized else 0,
        whole(config, limits[kind.sizing], path) if kind.sizing in limits else 0,
        whole(config, ("class_tokens",), path, 0),
    )


def _sounds(config: Config, path: Path) -> Sounds:
    keys = ("num_mel_bins", "max_source_positions", "seconds", "merge")
    return Sounds(*(whole(config, (key,), path) for key in keys))


def _positions(config: Config, kind: EncoderType, path: Path) -> int:
    """Learnt positions: one of each patch of a fixed image, or a product of numbers and keys."""
    if kind.positions == "grid":
        side = whole(config, ("image_size",), path) // whole(config, ("patch_size",), path)
        return side**2 + whole(config, ("class_tokens",), path, 0)
    count = 1 if kind.positions else 0
    for factor in filter(None, kind.positions.split("*")):
        count *= int(factor) if factor.isdigit() else whole(config, (factor,), path)
    return count

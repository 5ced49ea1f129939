"""Types that a checkpoint states: how its publisher quantised weights, activations and cache."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.workload.networks.configuration.values import Config
from dse.workload.networks.huggingface import read_config, text_config


@dataclass(frozen=True)
class StatedTypes:
    """What a checkpoint says of its types: ``method`` in its own words, "" where it is not quantised, and the
    ``settings`` of a workload that say the same, none where no pair of types does."""

    method: str = ""
    settings: dict[str, str] = field(default_factory=dict)


KEYS = ("quantization_config", "compression_config")
"""Keys of a configuration under which its publisher says how weights are quantised."""

BESIDE = "hf_quant_config.json"
"""The file beside a configuration in which ModelOpt says it."""

EXPERTS = "expert_dtype"
"""Key of DeepSeek-V4 for the type of its experts, nearly all of its weights, beside fp8 of the others."""

WORDS = re.compile(r"nvfp4|mxfp4|fp8|int8|int4|w8a8|w4a16|awq|gptq", re.IGNORECASE)
"""Words of a network's name that say how its weights are quantised."""

ALGORITHMS = {
    "FP8": "fp8_static",
    "NVFP4": "nvfp4",
    "FP8_PB_WO": "fp8_block",
    "W4A8_AWQ": "w4a8",
    "W4A16_AWQ": "w4a16",
    "W4A16": "w4a16",
    "INT4_AWQ": "w4a16",
    "W8A16": "w8a16",
    "INT8_SQ": "int8_sq",
    "MXFP4": "w4a16_mxfp4",
}
"""ModelOpt's ``quant_algo`` -> the pair of types."""

GROUPS = {
    (8, "float", 8): "fp8",
    (8, "int", 8): "w8a8",
    (8, "int", None): "w8a16",
    (4, "int", None): "w4a16",
    (4, "int", 8): "w4a8",
    (4, "float", 4): "nvfp4",
}
"""Bits and kind of weights, bits of activations of a ``config_groups`` -> the pair of types."""

WEIGHTS_ALONE = ("awq", "awq_marlin", "gptq", "gptq_marlin", "auto-round", "intel/auto-round")
"""Methods that leave activations as they are."""

CACHES: dict[str, dict[str, str]] = {"": {}, "NONE": {}, "AUTO": {}, "FP8": {"kv": "fp8"}}
"""Types of a cache, as ModelOpt writes them -> the settings that say the same."""

WIDE = {"float16": "fp16", "float32": "fp32"}
"""Types of a checkpoint that is not quantised, where they are not bf16."""


def types_of_name(name: str) -> StatedTypes:
    """Return what the name of a network says of its types: a method, never which pair of types it is."""
    named = WORDS.search(name)
    return StatedTypes(named[0]) if named else StatedTypes()


def types_of_file(path: Path) -> StatedTypes:
    """Return what a config.json, or the file of ModelOpt beside it, says of its types; raises InputError where that is
    no object."""
    config, beside = read_config(path), path.parent / BESIDE
    parts = {"": config, "text_config: ": text_config(config, path)}
    stated: dict[str, Any] = {f"{part}{key}": part_of.get(key) for part, part_of in parts.items() for key in KEYS}
    if path.name == "config.json" and beside.is_file():
        stated[BESIDE] = read_config(beside).get("quantization")
    for key, said in stated.items():
        if said and not isinstance(said, dict):
            raise InputError(f"{path}: {key} = {said!r} is not accepted; give an object with quant_method")
        if said and key != BESIDE and parts[""].get(EXPERTS) == "fp4":
            return StatedTypes(f"{_method(said, key)}, {EXPERTS} fp4", {"dtype": "w4a8_mxfp4_mxfp8"})
        if said:
            return StatedTypes(_method(said, key), _settings(said))
    return StatedTypes()


def wide_type(path: Path) -> str:
    """Return the type of a checkpoint's numbers that are not quantised."""
    config = read_config(path)
    text = text_config(config, path)
    said = next(filter(None, (c.get(key) for c in (text, config) for key in ("dtype", "torch_dtype"))), "bfloat16")
    return WIDE.get(str(said), "bf16")


def _method(said: Config, key: str) -> str:
    method = said.get("quant_algo") or said.get("quant_method") or key
    layers = said.get("quantized_layers")
    if isinstance(layers, dict):
        method = f"{method} of {', '.join(sorted({str(_part(layer, 'quant_algo')) for layer in layers.values()}))}"
    cache = _cache(said)
    method = f"{method} with a cache of {cache}" if cache not in CACHES else method
    return f"{method} of {said['bits']} bits" if "bits" in said else str(method)


def _part(said: Any, key: str) -> Any:
    """What an object says of a key; nothing where it is none."""
    return said.get(key) if isinstance(said, dict) else None


def _cache(said: Config) -> str:
    """The type of the cache as ModelOpt writes it, "" where it is not quantised, else what is said of it."""
    cache = said.get("kv_cache_quant_algo") or said.get("kv_cache_scheme") or ""
    eight = (_part(cache, "num_bits"), _part(cache, "type")) == (8, "float")
    return "FP8" if eight else str(cache).upper()


def _settings(said: Config) -> dict[str, str]:
    """The settings that say the same; none where it is not known which types are meant."""
    pair, cache = _pair(said), _cache(said)
    return {} if pair is None or cache not in CACHES else {"dtype": pair} | CACHES[cache]


def _pair(said: Config) -> str | None:
    method, algorithm = str(said.get("quant_method", "")).lower(), said.get("quant_algo")
    if algorithm:
        return ALGORITHMS.get(str(algorithm))
    if method == "fbgemm_fp8":
        return "fp8"
    if method == "fp8":
        blocks = said.get("weight_block_size")
        if blocks:
            return "fp8_block" if blocks == [128, 128] else None
        return "fp8_static" if said.get("activation_scheme") == "static" else "fp8"
    if method in WEIGHTS_ALONE:
        return {"4": "w4a16", "8": "w8a16"}.get(str(said.get("bits") or said.get("w_bit")))
    return "w4a16_mxfp4" if method == "mxfp4" else _of_groups(said)


def _of_groups(said: Config) -> str | None:
    """The pair of types of compressed-tensors' groups, where all say the same."""
    groups = said.get("config_groups")
    pairs = {_of_group(group) for group in groups.values()} if isinstance(groups, dict) else set()
    return pairs.pop() if len(pairs) == 1 else None


def _of_group(group: Any) -> str | None:
    """The pair of types of a group; none where its blocks are others than those that kernels have."""
    weights, inputs = _part(group, "weights"), _part(group, "input_activations")
    said = _part(weights, "num_bits"), _part(weights, "type"), _part(inputs, "num_bits")
    pair = next((pair for bits, pair in GROUPS.items() if bits == said), None)
    if pair == "nvfp4":
        return pair if _part(weights, "group_size") in (None, 16) else None
    if _part(weights, "strategy") == "block":
        return "fp8_block" if pair == "fp8" and _part(weights, "block_structure") in (None, [128, 128]) else None
    return "fp8_static" if pair == "fp8" and _part(inputs, "dynamic") is False else pair

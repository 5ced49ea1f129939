"""Compressed attention of a configuration: how many tokens a key of each layer stands for, and the sizes."""

from pathlib import Path

from dse.base.errors import InputError, shown
from dse.workload.networks.compressed_attention import CompressedAttention
from dse.workload.networks.compressor import OVERLAPPED
from dse.workload.networks.configuration.values import MOST, SPELLINGS, Config, listed, whole

RATIOS = "compress_ratios"
"""Key of the tokens of a key, layer by layer, those that predict further tokens after the others; 0: a window alone."""

RATES = "compress_rates"
"""Key of the same by the words of ``layer_types``."""

WORDS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
"""What ``layer_types`` calls them, with the tokens of a key where RATES does not say (transformers deepseek_v4)."""


def compressed_attention(layer: int, config: Config, path: Path) -> CompressedAttention:
    """Return the attention of a ``layer``; raises InputError."""
    ratio = _ratios(config, path)[layer]
    index = {
        f"index_{name}": whole(config, (f"index_{key}",), path)
        for name, key in (("heads", "n_heads"), ("dim", "head_dim"), ("topk", "topk"))
    }
    return CompressedAttention(
        whole(config, SPELLINGS["heads"], path),
        whole(config, ("head_dim",), path),
        whole(config, ("q_lora_rank",), path),
        whole(config, ("qk_rope_head_dim",), path),
        whole(config, ("sliding_window",), path),
        whole(config, ("o_groups",), path),
        whole(config, ("o_lora_rank",), path),
        ratio,
        **(
            index if 0 < ratio <= OVERLAPPED else {}
        ),  # inference/model.py: a layer of little compression has an indexer
    )


def _ratios(config: Config, path: Path) -> list[int]:
    """Tokens of a key of every layer."""
    layers, given = whole(config, SPELLINGS["layers"], path), config.get(RATIOS)
    if given is None:
        words = listed(config, "layer_types", str, layers, path)
        if not words:
            raise InputError(f"{path}: {RATIOS} is missing; give a list of whole numbers, one a layer")
        if unknown := next((word for word in words if word not in WORDS), None):
            raise InputError(f"{path}: layer_types has {unknown!r}, which is not covered; known are {', '.join(WORDS)}")
        said = config.get(RATES) or {}
        rates = WORDS | (said if isinstance(said, dict) else {})
        given = [rates[word] for word in words]
    if not isinstance(given, list) or len(given) < layers or not all(_is_ratio(item) for item in given):
        raise InputError(
            f"{path}: {RATIOS} = {shown(given)} is not accepted; give a list of whole numbers, one for each of the "
            f"{layers} layers at least"
        )
    return given[:layers]


def _is_ratio(item: object) -> bool:
    return type(item) is int and 0 <= item <= MOST

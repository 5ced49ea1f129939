"""Attention to chosen blocks in a configuration: which layers have it, and the sizes of its indexer (MiniMax-M3)."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.block_sparse_attention import BlockSparseAttention
from dse.workload.networks.configuration.values import SPELLINGS, Config, listed, whole

KEY = "sparse_attention_config"

FREQUENCY, WITHOUT_VALUES = "sparse_attention_freq", "sparse_disable_index_value"
"""Keys of the layers that choose blocks, and of those whose indexer has no values of its own: 1 or 0 for each."""

INDEX = {
    "index_heads": "num_index_heads",
    "index_dim": "index_dim",
    "index_block": "block_size",
    "index_topk": "topk_blocks",
}
"""Sizes of the indexer -> what keys of them end with."""


def block_sparse(
    every: GroupedQueryAttention, layer: int, config: Config, path: Path
) -> GroupedQueryAttention | BlockSparseAttention:
    """Return the attention of a ``layer``, whose attention to all tokens is ``every``; raises InputError."""
    said = config.get(KEY)
    if not said:
        return every
    if not isinstance(said, dict):
        raise InputError(f"{path}: {KEY} is not an object; give one with sparse_topk_blocks and sparse_block_size")
    layers = whole(config, SPELLINGS["layers"], path)
    chooses, without = (listed(said, key, int, layers, path) for key in (FREQUENCY, WITHOUT_VALUES))
    if said.get("use_sparse_attention") is False or (chooses and not chooses[layer]):
        return every
    if without and not without[layer]:
        raise InputError(
            f"{path}: {WITHOUT_VALUES} of layer {layer} is 0: an indexer with values of its own is not covered; 1 is"
        )
    sizes: dict[str, Any] = {field.name: getattr(every, field.name) for field in fields(every)}
    sizes |= {name: whole(said, (f"sparse_{key}",), path) for name, key in INDEX.items()}
    return BlockSparseAttention(**sizes)

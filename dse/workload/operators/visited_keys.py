"""Blocks of keys that a prompt's CTAs visit under a mask, and how much longer the longest of them is."""

from math import ceil
from typing import NamedTuple

import numpy as np

from dse.workload.operators.attended import Attention
from dse.workload.operators.attention_library import AttentionLibrary, Block


class Lengths(NamedTuple):
    """Key blocks that the CTAs of a tile of heads visit: of the mean and of the longest CTA."""

    mean: float
    longest: float

    @property
    def ratio(self) -> float:
        """Time of the longest CTA over the mean's; start and end count as one block."""
        return (self.longest + 1.0) / (self.mean + 1.0)


def key_blocks(
    attention: Attention, library: AttentionLibrary, block: Block, group: float, step: Block | None = None
) -> np.ndarray:
    """Return the key blocks that each tile of queries visits (tiles,), ``group`` query heads side by side in a tile.

    Causal CTAs skip the blocks above the diagonal, those that left the window and those of earlier chunks, where the
    library does; ``step``: the block that is skipped as a whole, where that is another than a tile's.
    """
    tiles = np.arange(ceil(attention.queries * group / block.rows))
    if not attention.causal or not library.skips:
        return np.full(len(tiles), ceil(attention.keys / block.columns), float)
    unit = step or block
    window = (attention.window if library.skips_windows else 0) or attention.keys
    rows = tiles * block.rows // unit.rows * unit.rows  # the first row that skips with a tile's
    last = attention.prefix + np.minimum(attention.queries, np.ceil((rows + unit.rows) / group))
    query = attention.prefix + rows // group
    first = query // attention.chunk * attention.chunk if attention.chunk else np.maximum(0.0, query + 1 - window)
    return (np.ceil(last / unit.columns) - first // unit.columns) * (unit.columns / block.columns)

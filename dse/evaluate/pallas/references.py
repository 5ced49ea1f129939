"""What kernels read beside their own block of designs: arrays that all blocks share, and tables of groups."""

from collections.abc import Sequence
from typing import Any

from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton


def whole(array: Array) -> Any:
    """Return the specification of an array of which each block sees all."""
    return pl.BlockSpec(array.shape, lambda block: (0,) * array.ndim)


def gathered(tables: Sequence[Any], groups: Sequence[Array], kernel: Array, terms: int) -> list[Array]:
    """Return the ``terms`` of a kernel and each design's group; at most one of each: a reference to (groups, terms,
    kernels), and the numbers of the groups (designs,)."""
    return [
        triton.load(table.at[group, term, kernel])
        for group, table in zip(groups, tables, strict=True)
        for term in range(terms)
    ]

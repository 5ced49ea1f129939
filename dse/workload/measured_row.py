"""A row of a measured table as a product, an attention or an all-reduce: its shape, and where the harness leaves its
operands."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from dse.errors import InputError
from dse.workload.attention import Attention
from dse.workload.collective import all_reduce_operator
from dse.workload.dtypes import element_bytes
from dse.workload.gemm import Gemm, blas_result
from dse.workload.operator import Operator

PRODUCTS = ("gemm", "gemm_bias", "bmm")
"""Operators that are matrix products; a bias is taken as free."""

ATTENTION = ("attn_prefill", "attn_decode")
"""Operators that are attention over a prompt, and over one token a request."""

ALL_REDUCE = "all_reduce"
"""Operator of ``rows`` x ``cols`` activations that are summed over ``tp`` GPUs."""

PRODUCT_SHAPE = ("m", "n", "k")
ATTENTION_SHAPE = ("batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv")
VECTOR_SHAPE = ("rows", "cols")
"""Columns of the shape of a product (``batch`` is 1 where none is given), an attention, and a vector kernel."""

Distances = Callable[[float, float, float], tuple[float, float, float]]
"""Bytes of A, of the weights B and of C -> bytes touched between two uses of each."""


def product_of(row: Any, distances: Distances) -> Gemm:
    """The matrix product of a row of PRODUCTS, its operands where the harness leaves them."""
    kind = row.dtype
    said = float(getattr(row, "batch", 1.0))
    batch = said if said > 1 else 1.0  # nan: the table says nothing
    notes = notes_of(row).split(";")  # BLAS's transpositions, where a source states them
    layout = {"a_along_k": "A=T" in notes, "b_along_k": "B=N" in notes}
    bare = Gemm(row.m, row.n, row.k, batch, kind, kind, kind, blas_result(str(kind)), **layout)
    a, b, c = distances(bare.a_bytes, bare.b_bytes, bare.out_bytes)
    return replace(bare, a_distance=a, b_distance=b, out_distance=c)


def attention_of(row: Any, **kernel: bool) -> Attention:
    """The attention of a row, its operands as warm as the L2 allows; ``kernel``: what else is known of its kernel.

    A row that does not say whether it is ``causal`` is. Raises InputError where the numbers make no attention.
    """
    if row.seq_kv < row.seq_q:
        raise InputError("fewer keys (seq_kv) than queries (seq_q); keys count the queries' own")
    heads = int(row.heads), int(row.kv_heads), int(row.head_dim)
    bare = Attention(
        row.batch, *heads, row.seq_q, row.seq_kv, causal=_causal(row), dtype=row.dtype, kv=row.dtype, **kernel
    )
    touched = 2 * bare.q_bytes + bare.kv_bytes
    return replace(bare, q_distance=touched, kv_distance=touched, out_distance=touched)


def _causal(row: Any) -> bool:
    said = getattr(row, "causal", 1.0)
    if said not in (0, 1) and not pd.isna(said):
        raise InputError(f"causal is {said!r}; 1 masks later keys, 0 masks none")
    return said != 0


def reduction_of(row: Any) -> Operator:
    """Return the all-reduce of a row, by latency and bandwidth of the links."""
    size = element_bytes(row.dtype) * row.rows * row.cols
    return all_reduce_operator(ALL_REDUCE, size, int(row.tp), "kernel")


def notes_of(row: Any) -> str:
    """The notes of a row, "" where it has none."""
    notes = getattr(row, "notes", "")
    return notes if isinstance(notes, str) else ""

"""A row of a measured table as a product or an attention: its shape, and where the harness leaves its operands."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dse.workload.attention import Attention
from dse.workload.gemm import Gemm

PRODUCTS = ("gemm", "gemm_bias", "bmm")
"""Operators that are matrix products; a bias is taken as free."""

Distances = Callable[[float, float, float], tuple[float, float, float]]
"""Bytes of A, of the weights B and of C -> bytes touched between two uses of each."""


def product_of(row: Any, distances: Distances) -> Gemm:
    """The matrix product of a row of PRODUCTS, its operands where the harness leaves them."""
    kind = row.dtype
    out = {"int8": "fp32", "fp8": "bf16"}.get(str(kind), str(kind))  # 32-bit sums; fp8's results go on in 16 bits
    batch = float(row.batch) if row.op == "bmm" and row.batch > 0 else 1.0
    notes = notes_of(row).split(";")  # BLAS's transpositions, where a source states them
    layout = {"a_along_k": "A=T" in notes, "b_along_k": "B=N" in notes}
    bare = Gemm(row.m, row.n, row.k, batch, kind, kind, kind, out, **layout)
    a, b, c = distances(bare.a_bytes, bare.b_bytes, bare.out_bytes)
    return replace(bare, a_distance=a, b_distance=b, out_distance=c)


def attention_of(row: Any, **kernel: bool) -> Attention:
    """The attention of a row, its operands as warm as the L2 allows; ``kernel``: what else is known of its kernel."""
    keys = max(row.seq_kv, row.seq_q)
    heads = int(row.heads), int(row.kv_heads), int(row.head_dim)
    bare = Attention(row.batch, *heads, row.seq_q, keys, dtype=row.dtype, kv=row.dtype, **kernel)
    touched = 2 * bare.q_bytes + bare.kv_bytes
    return replace(bare, q_distance=touched, kv_distance=touched, out_distance=touched)


def notes_of(row: Any) -> str:
    """The notes of a row, "" where it has none."""
    notes = getattr(row, "notes", "")
    return notes if isinstance(notes, str) else ""

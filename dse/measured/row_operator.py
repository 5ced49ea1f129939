"""A row of a measured table as the operator that ran: its cache state, its library, the kernels to choose from."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dse.measured.protocol import Protocol, protocol_of, protocols
from dse.measured.quantisation_passes import library_for, quantises
from dse.measured.row_shape import (
    ALL_REDUCE,
    ATTENTION,
    ENCODER,
    LATENT,
    PRODUCTS,
    attention_library,
    attention_of,
    framework_of,
    notes_of,
    product_of,
    reduction_of,
)
from dse.measured.row_vector import VECTOR, vector_family, vector_of
from dse.workload.operator import Operator
from dse.workload.operators.attention import attention_operator
from dse.workload.operators.attention_library import OF_ENCODER, PLAIN, latent_kinds, window_kind
from dse.workload.operators.gemm import gemm_operator
from dse.workload.operators.gemm_library import REPRESENTATIVE, SIMT_TILES, Library
from dse.workload.target import Target

KERNEL_TILE = re.compile(r"kernel=\S*?(?:sgemm_|tilesize)(\d+)x(\d+)")
"""Tile of a product on CUDA cores in the notes of its row."""

WRITES = "KV-cache write kernel"
"""Words in the notes of attention rows whose time holds the kernel that writes the new keys and values."""


def operator(
    row: Any,
    capability: float,
    protocol: Protocol | None = None,
    library: Library = REPRESENTATIVE,
    warpgroup: bool = True,
    sm_count: float = 0.0,
) -> Operator:
    """The operator of a row in the cache state of its protocol (aiconfigurator's: weights rotated, the rest as warm as
    the L2 allows), with the kernels of a library; raises InputError where no instruction computes in its type.

    ``sm_count`` [1] tells the tiles of the product before it; 0: nothing is known of them.
    """
    protocol = protocol or protocols()["aiconfigurator"]
    target = (capability, capability)
    if row.op in VECTOR:
        return vector_of(row, protocol, sm_count)
    if row.op == ALL_REDUCE:
        return reduction_of(row)
    notes = notes_of(row)
    if row.op in PRODUCTS:
        product = product_of(row, protocol.as_noted(notes).distances)
        ran = library_for(quantises(row, protocol), _that_ran(notes, library))
        return gemm_operator("gemm", product, target, warpgroup, library=ran)
    decoding = row.op in ("attn_decode", "mla_decode")
    writes = row.op != ENCODER and (WRITES in notes or row.op in LATENT or protocol.writes(row))
    attention = attention_of(row, writes_cache=writes, decoding=decoding)
    plain = (PLAIN, OF_ENCODER) if row.op == ENCODER else (PLAIN, *window_kind(attention.window, decoding))
    kinds = latent_kinds(decoding, attention.narrow) if row.op in LATENT else plain
    ran = attention_library(row, warpgroup, kinds)
    return attention_operator("attention", attention, target, warpgroup, library=ran)


def operator_on(numbers: Mapping[str, float], row: Any) -> Operator:
    """The operator of a row on a GPU (its attributes as numbers), measured as its source measures, with the kernels
    that stand for any library."""
    way, target = protocol_of(str(getattr(row, "source", ""))), Target.of([numbers])
    capability, sm_count = numbers["compute_capability"], numbers["sm_count"]
    return operator(row, capability, way, target.library, target.warpgroup, sm_count)


def none_runs(row: Any, gpu: str) -> str:
    """Why a row has no time on a GPU that runs none of its kernels."""
    heads = f" with heads of {row.head_dim:g}" if row.op in (*ATTENTION, ENCODER, *LATENT) else ""
    return f"{gpu} runs none of the kernels of {row.op} {row.dtype}{heads}"


def _that_ran(notes: str, library: Library) -> Library:
    """The library with the framework that the notes name, and with the tile on CUDA cores alone that they name, in both
    orders: libraries that store columns first swap the sides."""
    named = KERNEL_TILE.search(notes)
    sides = sorted(int(side) for side in named.groups()) if named else []
    tiles = tuple(t for t in SIMT_TILES if sorted(t[:2]) == sides) or SIMT_TILES
    return replace(library, simt_tiles=tiles, framework=framework_of(notes))


def family(row: Any) -> str:
    """Name of a row's shape family: rows of one family never stand on both sides of a split."""
    if row.op in PRODUCTS:
        return f"g{row.n:g}_{row.k:g}"
    if row.op in (*VECTOR, ALL_REDUCE):
        return vector_family(row)
    return f"{row.op}{row.heads:g}_{row.kv_heads:g}_{row.head_dim:g}"

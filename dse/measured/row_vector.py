"""A row of a measured table as a vector kernel: the operator, its cache state, its shape family."""

from dataclasses import replace
from math import ceil, log2
from typing import Any

from dse.base.constants import constant
from dse.hardware.data_types import canonical, element_bytes
from dse.measured.protocol import Protocol
from dse.measured.row_shape import measured_network
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.operator import FOREVER, Operator
from dse.workload.operators.vector import has_kernel, vector_operator, vector_ops

VECTOR = tuple(vector_ops())
"""Operators of a table's column ``op`` that are vector kernels."""

VECTOR_DTYPES = ("bf16", "fp16", "fp32")

TILE_ROWS, SMALL_TILE, LARGE_TILE = 128, 128, 256
"""Rows of a CTA's results, and columns of the small and of the large one, that a library of products chooses from."""

SMALL_WAVE = constant("small_tile_wave")
"""Time of a wave of small tiles in those of large ones: 78 of 145 us on an RTX PRO 6000, k of 5120 (LLMServingSim)."""

BLOCKS = 4
"""Shape families a doubling of the rows: a run of row counts is left out together, not one between two neighbours."""


def vector_of(row: Any, protocol: Protocol, sm_count: float) -> Operator:
    """Return the operator of a row in the cache state of its protocol, with the kernels that it measured.

    Inputs and results were last touched one launch ago where the protocol keeps them warm; a table of embeddings is
    cold. ``sm_count`` [1] of the GPU, 0 where it is not known. Raises InputError where no library of the protocol has
    such a kernel.
    """
    inputs, results, residual = distances_of(row, protocol, sm_count)
    known = [name for name in protocol.vector if has_kernel(name, row.op)] or list(protocol.vector[:1])
    made = [
        vector_operator(
            row.op,
            row.op,
            row.rows,
            row.cols,
            canonical(str(row.dtype)),
            name,
            second=keys_of(row),
            input_distance=inputs,
            out_distance=results,
            residual_distance=residual,
        )
        for name in known
    ]
    return replace(made[0], candidates=tuple(c for operator in made for c in operator.candidates))


def distances_of(row: Any, protocol: Protocol, sm_count: float) -> tuple[float, float, float]:
    """Return the bytes touched since a row's inputs, its results' buffer and its residual stream were used [B].

    The last is 0 where none is known to be older than the inputs. ``sm_count`` [1] of the GPU.
    """
    what, dtype = vector_ops()[row.op], canonical(str(row.dtype))
    written = element_bytes(what.out or dtype)
    touched = row.rows * row.cols * (what.reads * element_bytes(dtype) + what.writes * written)
    warm = touched if protocol.warm_activations else FOREVER
    inputs = warm * (protocol.large_tile_age if of_large_tiles(row, sm_count) else 1.0)
    return FOREVER if row.op == "embedding" else inputs, warm, residual_distance(row)


def of_large_tiles(row: Any, sm_count: float) -> bool:
    """Whether the product that wrote a gated activation's inputs had large tiles, since its waves then take less time.

    LLMServingSim's silu_and_mul has two speeds: 2.4 TB/s at 1152 rows of 12800 columns, 4.1 at 1200. It changes from
    one to the other where the gate-and-up product before it does, in whose times both tiles can be counted: of large
    tiles less stays in the L2. Why is not known. Norms follow products that split k, where no such thing shows.
    """
    if row.op != "silu_and_mul" or sm_count == 0:
        return False
    along_m, columns = ceil(row.rows / TILE_ROWS), 2.0 * row.cols  # gate and up in one product
    small, large = (ceil(along_m * ceil(columns / side) / sm_count) for side in (SMALL_TILE, LARGE_TILE))
    return large <= SMALL_WAVE * small


def residual_distance(row: Any) -> float:
    """Return the bytes touched between two uses of the residual stream around attention [B]; 0 where nothing is known.

    Weights of two projections, and the activations between: norm, queries and keys and values, attention, projection.
    One GPU's, since tables of several GPUs repeat its norms.
    """
    net = measured_network(row) if row.op == "add_rmsnorm" else None
    attention = net and net.shared(GroupedQueryAttention)
    if net is None or attention is None:
        return 0.0
    queries, keys = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    weights = attention.parameters(net.hidden)
    activations = row.rows * (3.0 * net.hidden + 3.0 * queries + 2.0 * keys)
    return element_bytes(canonical(str(row.dtype))) * (weights + activations)


def keys_of(row: Any) -> float:
    """Return the columns of a rotation's keys, 0 where nothing is known of the heads."""
    if row.op != "rope":
        return 0.0
    heads, kv_heads = getattr(row, "heads", 0.0), getattr(row, "kv_heads", 0.0)
    if not (heads > 0 and kv_heads > 0):
        net = measured_network(row)
        attention = net and net.shared(GroupedQueryAttention)
        heads, kv_heads = (attention.heads, attention.kv_heads) if attention is not None else (1.0, 0.0)
    return row.cols * kv_heads / (heads + kv_heads)


def vector_family(row: Any) -> str:
    """Return the name of a row's shape family: operator, columns, and the row count's quarter of a doubling."""
    return f"{row.op}_{row.cols:g}_{int(BLOCKS * log2(max(row.rows, 1.0)))}"

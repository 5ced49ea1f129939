"""The step that a row of a module of attention stands for: its tokens, its types, and the bytes between two of it."""

from typing import Any

from dse.base.errors import InputError
from dse.hardware.data_types import canonical, element_bytes
from dse.workload.dtypes import precision
from dse.workload.networks.layers import AttentionKind
from dse.workload.networks.step import Step
from dse.workload.target import Target

PROJECTIONS = "proj="
"""Begins what a row's block_format says of its projections: their type."""


def module_step(row: Any, attention: AttentionKind, decodes: bool, target: Target, hidden: int) -> Step:
    """Return the step of a row's ``attention`` in a stream of ``hidden`` elements, ``decodes`` one token or a prompt;
    raises InputError where its keys are fewer than its queries, or its types are not known."""
    if row.seq_kv < row.seq_q:
        raise InputError("fewer keys (seq_kv) than queries (seq_q); keys count the queries' own")
    said = getattr(row, "block_format", "")
    named = said.removeprefix(PROJECTIONS) if isinstance(said, str) and said.startswith(PROJECTIONS) else str(row.dtype)
    kv = getattr(row, "kv_dtype", None)
    types = precision(row.op, canonical(named), kv=str(kv) if isinstance(kv, str) else "bf16")
    weights = attention.parameters(hidden) * element_bytes(types.weights)
    cache = row.batch * attention.cache_bytes(row.seq_kv, types, 1)
    return Step(
        "decode" if decodes else "prefill",
        int(row.batch),
        int(row.seq_q),
        float(row.seq_kv),
        hidden,
        "rmsnorm",
        types,
        1,
        target,
        weights + cache,
        weights + cache,
    )

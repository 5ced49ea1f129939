"""A row of a whole module of latent attention as kernels: from the network's stream to its output projection."""

from typing import Any

import pandas as pd

from dse.base.errors import InputError
from dse.hardware.data_types import canonical, element_bytes
from dse.workload.dtypes import precision
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.target import Target

MODULES = ("mla_prefill_module", "mla_decode_module")
"""Operators that are projections and attention of a layer, with ``heads`` of one GPU."""

PROJECTIONS = "proj="
"""Begins what a row's block_format says of its projections: their type."""

NOPE = 128
"""Elements of a head of keys without positions, which no column states (DeepSeek-V2 and all that followed)."""

VALUES = 128
"""Elements of a head of values: a row of one token states the latent's instead."""


def module_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of MODULES; raises InputError where its numbers make no attention."""
    missing = [c for c in ("hidden", "kv_lora_rank", "rope_dim") if pd.isna(getattr(row, c, None))]
    if missing:
        raise InputError(f"no {', '.join(missing)}")
    if row.seq_kv < row.seq_q:
        raise InputError("fewer keys (seq_kv) than queries (seq_q); keys count the queries' own")
    decodes = row.op == "mla_decode_module"
    said = getattr(row, "block_format", "")
    named = said.removeprefix(PROJECTIONS) if isinstance(said, str) and said.startswith(PROJECTIONS) else str(row.dtype)
    kv = getattr(row, "kv_dtype", None)
    types = precision(row.op, canonical(named), kv=str(kv) if isinstance(kv, str) else "bf16")
    rank = getattr(row, "q_lora_rank", 0.0)
    attention = LatentAttention(
        int(row.heads), 0 if pd.isna(rank) else int(rank), int(row.kv_lora_rank), NOPE, int(row.rope_dim), VALUES
    )
    weights = attention.parameters(int(row.hidden)) * element_bytes(types.weights)
    cache = row.batch * attention.cache_bytes(row.seq_kv, types, 1)
    step = Step(
        "decode" if decodes else "prefill",
        int(row.batch),
        int(row.seq_q),
        float(row.seq_kv),
        int(row.hidden),
        "rmsnorm",
        types,
        1,
        target,
        weights + cache,
        weights + cache,
    )
    return tuple(attention.operators(step))

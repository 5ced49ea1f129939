"""A row of a whole module of latent attention as kernels: from the network's stream to its output projection."""

from typing import Any

import pandas as pd

from dse.base.errors import InputError
from dse.measured.compound.module_step import module_step
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.operator import Operator
from dse.workload.operators.forms import usual_form
from dse.workload.target import Target

MODULES = ("mla_prefill_module", "mla_decode_module")
"""Operators that are projections and attention of a layer, with ``heads`` of one GPU."""

NOPE = 128
"""Elements of a head of keys without positions, which no column states (DeepSeek-V2 and all that followed)."""

VALUES = 128
"""Elements of a head of values: a row of one token states the latent's instead."""


def module_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of MODULES; raises InputError where its numbers make no attention."""
    missing = [c for c in ("hidden", "kv_lora_rank", "rope_dim") if pd.isna(getattr(row, c, None))]
    if missing:
        raise InputError(f"no {', '.join(missing)}")
    rank = getattr(row, "q_lora_rank", 0.0)
    attention = LatentAttention(
        int(row.heads), 0 if pd.isna(rank) else int(rank), int(row.kv_lora_rank), NOPE, int(row.rope_dim), VALUES
    )
    step = module_step(row, attention, row.op == "mla_decode_module", target, int(row.hidden))
    return tuple(usual_form(list(attention.operators(step))))

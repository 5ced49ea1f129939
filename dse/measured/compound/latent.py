"""A row of a whole module of latent attention as kernels: from the network's stream to its output projection."""

from dataclasses import replace
from typing import Any

from dse.base.errors import InputError
from dse.hardware.data_types import BITS
from dse.measured.compound.module_step import module_step
from dse.measured.row_shape import attention_library, given
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.operator import Operator
from dse.workload.operators.attention_library import latent_kinds
from dse.workload.operators.forms import usual_form
from dse.workload.target import Target

MODULES = ("mla_prefill_module", "mla_decode_module")
"""Operators that are projections and attention of a layer, with ``heads`` of one GPU."""

NOPE = 128
"""Elements of a head of keys without positions, which no column states (DeepSeek-V2 and all that followed)."""

VALUES = 128
"""Elements of a head of values: a row of one token states the latent's instead."""

HIDDEN = {(1536.0, 512.0): 7168.0}
"""Ranks of queries and of keys -> width of the stream of the networks that have them, where a row states none:
DeepSeek-V3's and all that took its attention (config.json of deepseek-ai/DeepSeek-V3)."""


def module_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of MODULES; raises InputError where its numbers make no attention."""
    sizes = {name: given(row, name, 0.0) for name in ("hidden", "q_lora_rank", "kv_lora_rank", "rope_dim")}
    rank, keys = sizes["q_lora_rank"], sizes["kv_lora_rank"]
    hidden = sizes["hidden"] = sizes["hidden"] or HIDDEN.get((rank, keys), 0.0)
    missing = [name for name, value in sizes.items() if not value and name != "q_lora_rank"]
    if missing:
        raise InputError(f"no {', '.join(missing)}")
    attention = LatentAttention(int(row.heads), int(rank), int(keys), NOPE, int(sizes["rope_dim"]), VALUES)
    decodes = row.op == "mla_decode_module"
    step = module_step(row, attention, decodes, target, int(hidden))
    kinds = latent_kinds(decodes, BITS[step.precision.kv] < BITS[step.precision.output])
    ran = attention_library(row, target.warpgroup, kinds)
    return tuple(usual_form(list(attention.operators(replace(step, target=replace(target, attention=ran))))))

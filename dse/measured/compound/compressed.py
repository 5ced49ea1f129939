"""A row of a whole module of DeepSeek-V4's compressed attention as kernels, and rows of two of these kernels alone."""

import re
from dataclasses import dataclass, replace
from typing import Any

from dse.base.errors import InputError
from dse.measured.compound.module_step import module_step
from dse.measured.row_shape import notes_of
from dse.workload.networks.compressed_attention import CompressedAttention
from dse.workload.networks.names import load_network
from dse.workload.operator import Operator
from dse.workload.target import Target

COMPRESSED_KERNELS = {"dsv4_hca_attn": "latent_attention", "dsv4_mqa_logits": "index_scores"}
"""Operators that are one kernel of such a module -> that kernel."""

COMPRESSED_MODULES = (
    "dsv4_csa_decode_module",
    "dsv4_csa_prefill_module",
    "dsv4_hca_decode_module",
    "dsv4_hca_prefill_module",
    *COMPRESSED_KERNELS,
)
"""Operators that are projections, compression, choice and attention of a layer, with ``heads`` of one GPU; and kernels
of it."""

NETWORKS = ("deepseek_v4_flash", "deepseek_v4_pro")
"""Networks whose layers were measured, told apart by the heads of all GPUs."""

COMPRESS = re.compile(r"compress=(\d+)")
"""What notes say of the tokens of a compressed key."""


@dataclass(frozen=True)
class _Layer:
    """A layer of a network: the width of its stream, and its attention on one GPU."""

    hidden: int
    attention: CompressedAttention


def compressed_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of COMPRESSED_MODULES; raises InputError where it names no layer that is known."""
    layer, alone = _layer(row), COMPRESSED_KERNELS.get(row.op, "")
    decodes = "prefill" not in row.op if not alone else row.seq_q == 1
    step = module_step(row, layer.attention, decodes, target, layer.hidden)
    return tuple(made for made in layer.attention.operators(step) if not alone or made.name == alone)


def _layer(row: Any) -> _Layer:
    """The layer whose heads, all GPUs' together, and tokens of a key a row states."""
    heads, said = row.heads * max(row.tp, 1.0), COMPRESS.search(notes_of(row))
    if said is None:
        raise InputError("notes do not say how many tokens a key stands for (compress=)")
    for name in NETWORKS:
        network = load_network(name)
        for layer, _ in network.layers:
            attention = layer.attention
            assert isinstance(attention, CompressedAttention)  # all layers of both are
            if (attention.heads, attention.ratio) == (heads, int(said[1])):
                groups = max(1, int(attention.groups * row.heads // heads))
                return _Layer(network.hidden, replace(attention, heads=int(row.heads), groups=groups))
    raise InputError(f"no layer of {' or '.join(NETWORKS)} has {heads:g} heads and a key for {said[1]} tokens")

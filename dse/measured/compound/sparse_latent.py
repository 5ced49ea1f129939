"""A row of a whole module of sparse latent attention as kernels: indexer, choice, and attention to what was chosen."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pandas as pd

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.hardware.data_types import BITS
from dse.measured.compound.module_step import module_step
from dse.measured.row_shape import notes_of
from dse.workload.kernel import Kernel
from dse.workload.networks.sparse_latent_attention import SparseLatentAttention
from dse.workload.networks.step import Step
from dse.workload.operator import Candidate, Operator
from dse.workload.target import Target

ATTENTION = "latent_attention"

SPARSE_KERNELS = {"dsa_attn": ATTENTION, "dsa_mqa_logits": "index_scores"}
"""Operators that are one kernel of such a module -> that kernel."""

SPARSE_MODULES = ("dsa_prefill_module", "dsa_decode_module", *SPARSE_KERNELS)
"""Operators that are projections, indexer and attention of a layer, with ``heads`` of one GPU; and kernels of it."""

SPARSE_SHAPE = ("batch", "heads", "seq_q", "seq_kv")
"""Columns of their shape; the rest their network decides."""


@dataclass(frozen=True)
class _Sizes:
    """What the network of a row decides, by the name of its architecture in the notes."""

    query_rank: int
    nope_dim: int
    value_dim: int
    index_heads: int
    hidden: int


NETWORKS = {"DeepseekV32": _Sizes(1536, 128, 128, 64, 7168), "GlmMoeDsa": _Sizes(2048, 192, 256, 32, 6144)}
"""DeepSeek-V3.2 and GLM-5 (config.json of deepseek-ai/DeepSeek-V3.2 and zai-org/GLM-5)."""

INDEX_DIM = 128
"""Elements of a head of the indexer of both."""

WITHOUT_INDEXER = ("skip_indexer", "dense_mha")
"""Words of notes: the tokens were chosen before, or all are attended and none is scored."""

DENSE = "dense_mha"

UNSPLIT = "flash_mla_sparse_fwd"
"""A kernel that reads 16 bits and gives all keys of a query to one CTA (deepseek-ai/FlashMLA, sparse prefill)."""

UNSPLIT_AS = ("sglang_dsa_indexer_flashmla_sparse", "sglang_dsa_skip_indexer_flashmla_sparse", "FLASHMLA_SPARSE")
"""Other names of it in notes (sgl-project/sglang, nsa_backend.py; vllm-project/vllm, flashmla_sparse.py), where the
cache has 16 bits."""

SEPARATE = "trtllm-"
"""A framework that runs it on Hopper (NVIDIA/TensorRT-LLM, sparse/dsa), in a build for separate linking
(cpp/tensorrt_llm/flash_mla/CMakeLists.txt)."""

SEPARATE_LOOP = constant("separate_sparse_loop")
"""How many times as long it takes there."""

UNSPLIT_ON_HOPPER = (SEPARATE, "vllm-0.19")
"""Releases that run it there without naming it."""

PADDED, HOPPER, BLACKWELL = 128, 9.0, 10.0
"""Heads of its tile from this compute capability on (sgl-project/sglang, nsa_backend.py: 64 on Hopper, 128 since)."""


def sparse_operators(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row of SPARSE_MODULES; raises InputError where it names no network or sizes."""
    notes = notes_of(row)
    named = next((name for name in NETWORKS if name in notes), None)
    if named is None:
        raise InputError(f"notes name none of {', '.join(NETWORKS)}, whose sizes its module has")
    alone, needed = SPARSE_KERNELS.get(row.op, ""), ("kv_lora_rank", "rope_dim", "sparse_topk")
    missing = [c for c in ("hidden", *needed)[bool(alone) :] if pd.isna(getattr(row, c, None))]
    if missing:
        raise InputError(f"no {', '.join(missing)}")
    if DENSE in notes:
        raise InputError("attention to all tokens with keys and values made, in place of the chosen ones")
    sizes = NETWORKS[named]
    attention = SparseLatentAttention(
        _computed_heads(int(row.heads), notes, target),
        sizes.query_rank,
        int(row.kv_lora_rank),
        sizes.nope_dim,
        int(row.rope_dim),
        sizes.value_dim,
        index_heads=sizes.index_heads,
        index_dim=INDEX_DIM,
        index_topk=int(row.sparse_topk),
    )
    if any(word in notes for word in WITHOUT_INDEXER):
        attention = replace(attention, index_heads=0)
    decodes, hidden = row.op == "dsa_decode_module", row.hidden
    if alone:
        decodes, hidden = row.seq_q == 1, sizes.hidden
    step = module_step(row, attention, decodes, target, int(hidden))
    made = attention.operators(_widened(step) if UNSPLIT in notes else step)
    kept = (operator for operator in made if not alone or operator.name == alone)
    stretch = _stretch_unsplit(row, notes, target)
    return tuple(
        _unsplit(operator, stretch) if stretch and operator.name == ATTENTION else operator for operator in kept
    )


def _stretch_unsplit(row: Any, notes: str, target: Target) -> float:
    """Return how many times as long the kernel takes where one CTA attends all keys of a query, 0 where none does."""
    if UNSPLIT in notes:
        return 1.0
    oldest = target.capabilities[0] if target.capabilities else 0.0
    hopper = HOPPER <= oldest < BLACKWELL
    unnamed = hopper and any(name in notes for name in UNSPLIT_ON_HOPPER)
    if BITS.get(str(row.kv_dtype), 0) != 16 or not (unnamed or any(name in notes for name in UNSPLIT_AS)):
        return 0.0
    return SEPARATE_LOOP if hopper and SEPARATE in notes else 1.0


def _computed_heads(heads: int, notes: str, target: Target) -> int:
    """Heads that are computed: on Blackwell sglang fills the kernel's tile of PADDED with zeros."""
    newest = target.capabilities[0] if target.capabilities else 0.0
    return ceil(heads / PADDED) * PADDED if UNSPLIT in notes and newest >= BLACKWELL else heads


def _widened(step: Step) -> Step:
    """A step whose cache is read in 16 bits: a narrow one is widened before the kernel."""
    return replace(step, precision=replace(step.precision, kv=step.precision.output))


def _unsplit(operator: Operator, stretch: float) -> Operator:
    """An operator without the candidates that split the keys, its kernels ``stretch`` times as long."""
    return replace(operator, candidates=tuple(_stretched(operator.candidates, stretch)))


def _stretched(candidates: Iterable[Candidate], stretch: float) -> Iterator[Candidate]:
    for candidate in candidates:
        assert isinstance(candidate.kernel, Kernel)  # generated, never recorded
        if candidate.kernel.launches == 1:
            yield replace(candidate, kernel=replace(candidate.kernel, stretch=stretch))

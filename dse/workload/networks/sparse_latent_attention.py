"""Latent attention over the tokens that an indexer chooses (DeepSeek-AI, *DeepSeek-V3.2-Exp* (2025), 2.1).

Small heads in eight bits score every token of the past; the best are attended, in a prompt too with the projections
absorbed, since each token attends others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.kernel import Interval, Kernel
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention
from dse.workload.operators.gemm import Gemm
from dse.workload.operators.vector import vector_operator

INDEX = "fp8"
"""Type of the indexer's queries and keys; their scales have SCALE."""

SCALE = "fp32"


@dataclass(frozen=True)
class SparseLatentAttention(LatentAttention):
    """Latent attention over at most ``index_topk`` tokens, chosen by ``index_heads`` of ``index_dim`` elements.

    Without heads of its own it attends the tokens that the layer before it has chosen.
    """

    index_heads: int = 0
    index_dim: int = 0  # [element]
    index_topk: int = 0  # [token]

    @property
    def kind(self) -> str:
        """What of the past it attends, in words."""
        return f"sparse latent {self.index_topk}" + ("" if self.index_heads else " (chosen before)")

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: each has the whole indexer."""
        queries = (self.query_rank or hidden) * self.index_heads * self.index_dim
        keys = hidden * (self.index_dim + self.index_heads) if self.index_heads else 0
        return super().parameters(hidden, gpus) + float((queries + keys) * gpus)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: latents, and the indexer's keys."""
        return super().cache_bytes(tokens, precision, gpus) + tokens * self._index_key_bytes

    @property
    def _index_key_bytes(self) -> float:
        """Bytes of a token's key and its scale."""
        return self.index_dim * element_bytes(INDEX) + element_bytes(SCALE) if self.index_heads else 0.0

    def _absorbed(self, step: Step, heads: int) -> Iterator[Operator]:
        """The choice of tokens, and attention to their latents."""
        if self.index_heads:
            yield from self._indexed(step)
        yield from super()._absorbed(step, heads)

    def _attended(self, step: Step, heads: int) -> Iterator[Operator]:
        """A prompt's tokens attend latents as one token's do, each its own."""
        yield from self._absorbed(step, heads)

    def _attention(self, step: Step, heads: int, kv_heads: int, head_dim: int, **shape: int) -> Attention:
        """Attention as over all tokens, of which each query gathers those that were chosen for it."""
        return replace(super()._attention(step, heads, kv_heads, head_dim, **shape), gathered=self.index_topk)

    def _indexed(self, step: Step) -> Iterator[Operator]:
        """Yield the indexer: its queries and keys, their rotation and scales, scores of every token, the choice."""
        width, rows = self.index_heads * self.index_dim, step.rows
        yield from step.gemm("index_queries", rows, width, self.query_rank or step.hidden)
        yield from step.gemm("index_keys", rows, self.index_dim + self.index_heads, step.hidden)
        yield step.vector("index_norm", "layernorm", rows, self.index_dim)
        yield step.vector("index_rope", "rope", rows, (self.index_heads + 1) * self.rope_dim, second=self.rope_dim)
        yield step.vector("index_quantise", "elementwise_quant_bf16_fp8", rows, width + self.index_dim)
        yield self._scores(step)
        yield self._choice(step)

    def _scores(self, step: Step) -> Operator:
        """Products of the heads' queries with the keys, summed over the heads within the kernel."""
        visible = Attention(step.batch, 1, 1, 1, step.queries, step.keys).visible
        product = Gemm(
            float(step.queries * self.index_heads),
            visible,
            self.index_dim,
            float(step.batch),
            INDEX,
            INDEX,
            INDEX,
            SCALE,
            a_distance=2.0 * step.rows * self.index_heads * self.index_dim,
            b_distance=step.step_bytes,
            out_distance=2.0 * step.rows * visible * element_bytes(SCALE),
        )
        made = step.product("index_scores", product)
        keys, scores = step.batch * step.keys * self._index_key_bytes, step.rows * visible * element_bytes(SCALE)
        candidates = []
        for candidate in made.candidates:
            kernel = candidate.kernel
            assert isinstance(kernel, Kernel)  # generated, never recorded
            summed: dict[str, Any] = {
                "end": self._summed_end(kernel.end),
                "cold_bytes": keys,
                "write_bytes": scores,
                "result_bytes": scores,
                "l2_bytes": max(kernel.l2_bytes - product.out_bytes, 0.0) + scores,
            }
            if kernel.launches == 1:  # no split of so short a sum
                candidates.append(replace(candidate, kernel=replace(kernel, **summed)))
        return replace(made, candidates=tuple(candidates))

    def _summed_end(self, end: Interval) -> Interval:
        """A tile's end whose lanes clip, weigh and add up the heads' products in registers: two instructions each, and
        one number of all heads leaves them (deepseek-ai/DeepGEMM, sm90_fp8_mqa_logits.cuh)."""
        left = 1.0 / self.index_heads
        return replace(
            end,
            instructions=end.instructions + 0.5 * end.fp32,  # a conversion takes one and a half
            fp32=2.0 * end.fp32,
            shared_bytes=end.shared_bytes * left,
            store_bytes=end.store_bytes * left,
        )

    def _choice(self, step: Step) -> Operator:
        """The tokens with the largest scores, found in passes over them as a softmax makes."""
        seen = Attention(step.batch, 1, 1, 1, step.queries, step.keys)
        scores, chosen = seen.visible, replace(seen, window=self.index_topk).visible
        kept: dict[str, Any] = {"outputs": chosen / scores, "phase": step.phase}
        kept["input_distance"] = 2.0 * step.rows * scores * element_bytes(SCALE)
        return vector_operator("index_choice", "softmax", step.rows, scores, SCALE, **kept)

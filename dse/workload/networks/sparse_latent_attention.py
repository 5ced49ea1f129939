"""Latent attention over the tokens that an indexer chooses (DeepSeek-AI, *DeepSeek-V3.2-Exp* (2025), 2.1).

A prompt, too, is attended with the projections absorbed, since each of its tokens attends others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dse.workload.dtypes import Precision
from dse.workload.networks.indexer import Indexer
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention


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
        keys = tokens * self._indexer.key_bytes if self.index_heads else 0.0
        return super().cache_bytes(tokens, precision, gpus) + keys

    @property
    def _indexer(self) -> Indexer:
        return Indexer(self.index_heads, self.index_dim, self.index_topk)

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
        indexer, rows = self._indexer, step.rows
        yield from step.gemm("index_queries", rows, indexer.width, self.query_rank or step.hidden)
        yield from step.gemm("index_keys", rows, self.index_dim + self.index_heads, step.hidden)
        yield step.vector("index_norm", "layernorm", rows, self.index_dim)
        yield step.vector("index_rope", "rope", rows, (self.index_heads + 1) * self.rope_dim, second=self.rope_dim)
        yield step.vector("index_quantise", "elementwise_quant_bf16_fp8", rows, indexer.width + self.index_dim)
        yield indexer.scores(step)
        yield indexer.choice(step)

"""Grouped-query attention to the blocks of tokens that an indexer chooses, as MiniMax-M3 has it.

MiniMax-AI/MiniMax-M3 (vllm-project/vllm, models/minimax_m3: indexer and sparse_attention). A head of the indexer for
each key-value head scores every token; a block counts as its best token. Each query gathers the blocks chosen for it,
as vLLM's Triton kernel does; kernels that gather the queries of a block, as Blackwell's, are not described.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.indexer import Indexer
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention


@dataclass(frozen=True)
class BlockSparseAttention(GroupedQueryAttention):
    """Attention to at most ``index_topk`` blocks of ``index_block`` tokens, chosen by ``index_heads`` that share a key
    of ``index_dim`` elements in the stream's type."""

    index_heads: int = 0
    index_dim: int = 0  # [element]
    index_block: int = 0  # [token]
    index_topk: int = 0  # blocks

    @property
    def kind(self) -> str:
        """What of the past it attends, in words."""
        return f"block sparse {self.index_topk} x {self.index_block}"

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: each has the projection to the indexer's keys."""
        index = self._index_heads(gpus) + 1
        return super().parameters(hidden, gpus) + float(hidden * index * self.index_dim * gpus)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: keys and values, and the indexer's keys."""
        index = tokens * self.index_dim * element_bytes(precision.output)
        return super().cache_bytes(tokens, precision, gpus) + index

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield what grouped-query attention has, with the choice of blocks before it attends."""
        for made in super().operators(step):
            if made.name == "attention":
                yield from self._indexed(step)
            yield made

    def _indexed(self, step: Step) -> Iterator[Operator]:
        """Yield the indexer: its queries and key, their norms and rotation, scores of every token, the choice."""
        heads = self._index_heads(step.gpus)
        indexer = Indexer(
            heads, self.index_dim, self.index_topk, block=self.index_block, by_head=True, dtype=step.precision.output
        )
        yield step.unquantised("index_projection", indexer.width + self.index_dim, step.hidden)
        yield step.vector("index_norm", "rmsnorm", step.rows * (heads + 1), self.index_dim)
        yield step.vector("index_rope", "rope", step.rows, indexer.width + self.index_dim, second=self.index_dim)
        yield indexer.scores(step)
        yield indexer.choice(step)

    def _shape(self, step: Step, heads: int, kv_heads: int) -> Attention:
        """Attention of which each query gathers its blocks, where there are more tokens than these hold."""
        every, reach = super()._shape(step, heads, kv_heads), self.index_topk * self.index_block
        return replace(every, gathered=reach) if step.keys > reach else every

    def _index_heads(self, gpus: int) -> int:
        """Heads of the indexer on a GPU: those of its key-value heads."""
        return max(1, self.index_heads // gpus)

"""Attention to a window of tokens and to keys that stand for several tokens each, as DeepSeek-V4 has it.

DeepSeek-AI, *DeepSeek-V4* (2026), 2.3 (inference/model.py, Attention). All heads share one vector a token, which is key
and value. Layers with little compression choose among the compressed keys by an indexer; those with much attend all.
Results pass two projections, the first of each group of heads by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.compressor import Compressor
from dse.workload.networks.indexer import Indexer
from dse.workload.networks.latent_attention import LATENT
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator


@dataclass(frozen=True)
class CompressedAttention:
    """Causal attention to the last ``window`` tokens and to keys of ``ratio`` tokens each: the ``index_topk`` that
    ``index_heads`` choose, or all where there are none."""

    heads: int  # query heads
    head_dim: int  # [element] of a head, and of the vector that is kept of a token
    query_rank: int  # [element] of the queries' latent
    rope_dim: int  # [element] of a head that carries the position
    window: int  # [token] that a query attends as they are
    groups: int  # of heads, each projected by itself
    output_rank: int  # [element] of a group's result
    ratio: int = 0  # [token] of a compressed key (0: there are none)
    index_heads: int = 0  # of the indexer (0: there is none)
    index_dim: int = 0  # [element]
    index_topk: int = 0  # compressed keys that are chosen

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads}/1 x {self.head_dim}"}

    @property
    def kind(self) -> str:
        """What of the past it attends, in words."""
        if not self.ratio:
            return f"window {self.window}"
        if not self.index_heads:
            return f"compressed {self.ratio}"
        return f"sparse compressed {self.ratio}, best {self.index_topk}"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share heads and groups out; ``name`` of the workload, ``title`` of
        the network."""
        refuse_uneven(self.heads, "attention heads", gpus, name, title)
        refuse_uneven(self.groups, "groups of heads", gpus, name, title)

    @property
    def _compressor(self) -> Compressor:
        return Compressor(self.ratio, self.head_dim)

    @property
    def _indexer(self) -> Indexer:
        return Indexer(self.index_heads, self.index_dim, self.index_topk, self.ratio)

    @property
    def _index_compressor(self) -> Compressor:
        return Compressor(self.ratio, self.index_dim)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: each has the projections down, compressors and indexer."""
        copied = float(hidden * (self.query_rank + self.head_dim))
        if self.ratio:
            copied += self._compressor.parameters(hidden)
        if self.index_heads:
            copied += self._index_compressor.parameters(hidden) + hidden * self.index_heads
            copied += self.query_rank * self._indexer.width
        of_heads = self.heads * self.head_dim * (self.query_rank + self.output_rank)
        return copied * gpus + of_heads + self.groups * self.output_rank * hidden

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: those in the window, compressed keys, and
        what waits to be compressed, on every GPU."""
        element = element_bytes(precision.kv)
        kept = min(tokens, self.window) * self.head_dim * element
        if self.ratio:
            kept += tokens / self.ratio * self.head_dim * element + self._compressor.state_bytes
        if self.index_heads:
            kept += tokens / self.ratio * self._indexer.key_bytes + self._index_compressor.state_bytes
        return kept

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projections down and up, norms, rotation, the write to the cache, compression, the choice, attention,
        and the two projections of the result."""
        heads, groups = self.heads // step.gpus, self.groups // step.gpus
        down = self.query_rank + self.head_dim
        yield from step.gemm("latent_projection", step.rows, down, step.hidden)
        yield step.vector("latent_norm", "rmsnorm", step.rows, down)
        yield from step.gemm("query_projection", step.rows, heads * self.head_dim, self.query_rank)
        yield step.vector("query_norm", "rmsnorm", step.rows * heads, self.head_dim)
        yield step.vector("rope", "rope", step.rows, (heads + 1) * self.rope_dim, second=self.rope_dim)
        written = {"out_dtype": step.precision.kv, "out_distance": step.step_bytes}
        yield step.vector("kv_write", "copy", step.rows, self.head_dim, **written)
        if self.ratio:
            yield from self._compressor.operators(step, "compressor")
        if self.index_heads:
            yield from self._indexed(step)
        yield self._attention(step, heads)
        yield step.vector("result_rope", "rope", step.rows, heads * self.rope_dim)  # the keys' positions are taken back
        yield from step.gemm(
            "group_projection", step.rows, self.output_rank, heads // groups * self.head_dim, batch=float(groups)
        )
        yield from step.gemm("output_projection", step.rows, step.hidden, groups * self.output_rank)

    def _indexed(self, step: Step) -> Iterator[Operator]:
        """Yield the indexer: its queries, its own compressed keys, rotation and scales, scores, the choice."""
        indexer = self._indexer
        yield from step.gemm("index_queries", step.rows, indexer.width, self.query_rank)
        yield from self._index_compressor.operators(step, "index", more=self.index_heads)
        yield step.vector("index_rope", "rope", step.rows, self.index_heads * self.rope_dim)
        yield step.vector("index_quantise", "elementwise_quant_bf16_fp8", step.rows, indexer.width)
        yield indexer.scores(step)
        yield indexer.choice(step)

    def _attention(self, step: Step, heads: int) -> Operator:
        """Each query gathers its window and its compressed keys, as many as the mean query has."""
        p, target, gathered = step.precision, step.target, ceil(self.attended(step.queries, step.keys))
        attention = Attention(
            step.batch,
            heads,
            1,
            self.head_dim,
            step.queries,
            max(step.keys, float(gathered)),
            dtype=p.output,
            kv=p.kv,
            q_distance=2.0 * step.activation_bytes(heads * self.head_dim),
            kv_distance=step.step_bytes,
            out_distance=step.layer_bytes,
            v_dim=self.head_dim,
            latent=True,
            sinks=True,
            gathered=gathered,
        )
        ran = {"library": target.attention, "elsewhere": True}
        return attention_operator(LATENT, attention, target.capabilities, target.warpgroup, step.phase, **ran)

    def attended(self, queries: float, keys: float) -> float:
        """Return the tokens and compressed keys that a query attends, averaged over the ``queries`` that end ``keys``
        tokens."""
        seen = Attention(1, 1, 1, 1, queries, keys)
        near = replace(seen, window=self.window).visible
        if not self.ratio:
            return near
        chosen = replace(seen, window=self.index_topk * self.ratio) if self.index_heads else seen
        return near + chosen.visible / self.ratio

"""The indexer of sparse attention: small heads score what is before a token, and the best is attended.

DeepSeek-AI, *DeepSeek-V3.2-Exp* (2025), 2.1; *DeepSeek-V4* (2026), 2.3.1, where a key of it stands for some tokens.
"""

from dataclasses import dataclass, replace
from typing import Any

from dse.hardware.data_types import BITS, element_bytes
from dse.workload.kernel import Interval, Kernel
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention
from dse.workload.operators.gemm import Gemm
from dse.workload.operators.vector import vector_operator

INDEX = "fp8"
"""Type of an indexer's queries and keys, mostly; scores, and scales of a type so narrow, have SCALE."""

SCALE = "fp32"


@dataclass(frozen=True)
class Indexer:
    """``heads`` of ``dim`` elements that choose ``topk`` keys for every token; a key stands for ``ratio`` tokens.

    Scores are summed over the heads. With ``by_head`` each head has its own, and chooses for itself ``topk`` blocks of
    ``block`` keys, each of which counts as its best key.
    """

    heads: int
    dim: int  # [element] of a head, and of the key that all heads share
    topk: int  # keys that are chosen
    ratio: int = 1  # [token] of a key
    block: int = 1  # keys that are chosen together
    by_head: bool = False  # whether each head chooses for itself
    dtype: str = INDEX

    @property
    def width(self) -> int:
        """Elements of a token's queries."""
        return self.heads * self.dim

    @property
    def key_bytes(self) -> float:
        """Bytes of a key and its scale."""
        return self.dim * element_bytes(self.dtype) + (element_bytes(SCALE) if BITS[self.dtype] < 16 else 0.0)

    @property
    def _scored(self) -> float:
        """Scores that leave the kernel, of a token and a key."""
        return (self.heads if self.by_head else 1.0) / self.block

    def scores(self, step: Step) -> Operator:
        """Return the products of the heads' queries with the keys, summed or reduced to blocks within the kernel."""
        visible = self._seen(step).visible / self.ratio
        scores = step.rows * visible * self._scored * element_bytes(SCALE)
        product = Gemm(
            float(step.queries * self.heads),
            visible,
            self.dim,
            float(step.batch),
            self.dtype,
            self.dtype,
            self.dtype,
            SCALE,
            a_distance=2.0 * step.rows * self.width * element_bytes(self.dtype),
            b_distance=step.step_bytes,
            out_distance=2.0 * scores,
        )
        made = step.product("index_scores", product)
        keys = step.batch * step.keys / self.ratio * self.key_bytes
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
        few numbers leave them (deepseek-ai/DeepGEMM, sm90_fp8_mqa_logits.cuh)."""
        left = self._scored / self.heads
        return replace(
            end,
            instructions=end.instructions + 0.5 * end.fp32,  # a conversion takes one and a half
            fp32=2.0 * end.fp32,
            shared_bytes=end.shared_bytes * left,
            store_bytes=end.store_bytes * left,
        )

    def choice(self, step: Step) -> Operator:
        """Return the choice of the keys with the largest scores, found in passes over them as a softmax makes."""
        seen = self._seen(step)
        near = replace(seen, window=self.topk * self.block * self.ratio)
        scores = seen.visible / self.ratio * self._scored
        kept: dict[str, Any] = {"outputs": near.visible / seen.visible, "phase": step.phase}
        kept["input_distance"] = 2.0 * step.rows * scores * element_bytes(SCALE)
        return vector_operator("index_choice", "softmax", step.rows, scores, SCALE, **kept)

    @staticmethod
    def _seen(step: Step) -> Attention:
        """What a query sees: all tokens before it."""
        return Attention(step.batch, 1, 1, 1, step.queries, step.keys)

"""The indexer of sparse attention: small heads in eight bits score what is before a token, and the best is attended.

DeepSeek-AI, *DeepSeek-V3.2-Exp* (2025), 2.1; *DeepSeek-V4* (2026), 2.3.1, where a key of it stands for some tokens.
"""

from dataclasses import dataclass, replace
from typing import Any

from dse.hardware.data_types import element_bytes
from dse.workload.kernel import Interval, Kernel
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention
from dse.workload.operators.gemm import Gemm
from dse.workload.operators.vector import vector_operator

INDEX = "fp8"
"""Type of the indexer's queries and keys; their scales have SCALE."""

SCALE = "fp32"


@dataclass(frozen=True)
class Indexer:
    """``heads`` of ``dim`` elements that choose ``topk`` keys for every token; a key stands for ``ratio`` tokens."""

    heads: int
    dim: int  # [element] of a head, and of the key that all heads share
    topk: int  # keys that are chosen
    ratio: int = 1  # [token] of a key

    @property
    def width(self) -> int:
        """Elements of a token's queries."""
        return self.heads * self.dim

    @property
    def key_bytes(self) -> float:
        """Bytes of a key and its scale."""
        return self.dim * element_bytes(INDEX) + element_bytes(SCALE)

    def scores(self, step: Step) -> Operator:
        """Return the products of the heads' queries with the keys, summed over the heads within the kernel."""
        visible = self._seen(step).visible / self.ratio
        product = Gemm(
            float(step.queries * self.heads),
            visible,
            self.dim,
            float(step.batch),
            INDEX,
            INDEX,
            INDEX,
            SCALE,
            a_distance=2.0 * step.rows * self.width,
            b_distance=step.step_bytes,
            out_distance=2.0 * step.rows * visible * element_bytes(SCALE),
        )
        made = step.product("index_scores", product)
        keys, scores = step.batch * step.keys / self.ratio * self.key_bytes, step.rows * visible * element_bytes(SCALE)
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
        left = 1.0 / self.heads
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
        scores, chosen = seen.visible / self.ratio, replace(seen, window=self.topk * self.ratio).visible / self.ratio
        kept: dict[str, Any] = {"outputs": chosen / scores, "phase": step.phase}
        kept["input_distance"] = 2.0 * step.rows * scores * element_bytes(SCALE)
        return vector_operator("index_choice", "softmax", step.rows, scores, SCALE, **kept)

    @staticmethod
    def _seen(step: Step) -> Attention:
        """What a query sees: all tokens before it."""
        return Attention(step.batch, 1, 1, 1, step.queries, step.keys)

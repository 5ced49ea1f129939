"""Multi-head latent attention: keys and values of all heads are made of one latent, which alone is kept.

DeepSeek-AI, *DeepSeek-V2* (2024), 2.1. One token's heads attend the latent itself, with the projections that would have
made keys and values absorbed into queries and results; a prompt's keys and values are made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.forms import either

LATENT = "latent_attention"
"""Name of the operator whose kernels no interval covers."""

ABSORBED, MADE = "absorbed", "made"
"""Forms of the attention, as labels of kernels name them."""

LEFT_OUT, SMALL = 16.0, 4e9
"""A decode step whose made keys and values take so many times the multiply-adds of the latent, or of the small work
that passes while a kernel starts, is not tried: no design does them as fast."""


@dataclass(frozen=True)
class LatentAttention:
    """Causal attention over a latent of ``kv_rank`` and ``rope_dim`` elements a token, whatever the number of heads."""

    heads: int  # query heads
    query_rank: int  # [element] of the queries' latent (0: queries are projected at once)
    kv_rank: int  # [element] of the latent of keys and values
    nope_dim: int  # [element] of a head of queries and keys without positions
    rope_dim: int  # [element] of a head that carries the position, of keys the same for all heads
    value_dim: int  # [element] of a head of values
    rotary: bool = True  # whether the part for positions is rotated

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads} x {self.key_dim}"}

    @property
    def kind(self) -> str:
        """What of the past it attends, in words."""
        return "latent"

    @property
    def key_dim(self) -> int:
        """Elements of a head of queries and keys."""
        return self.nope_dim + self.rope_dim

    @property
    def kept(self) -> int:
        """Elements that are kept of a token."""
        return self.kv_rank + self.rope_dim

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out; ``name`` of the workload, ``title`` of the
        network."""
        refuse_uneven(self.heads, "attention heads", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: each has the projections to the latents."""
        queries = self.query_rank or hidden
        down = hidden * (self.query_rank + self.kept)
        heads = queries * self.key_dim + self.kv_rank * (self.nope_dim + self.value_dim) + self.value_dim * hidden
        return float(down * gpus + self.heads * heads)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: their latents, on every GPU."""
        return self.kept * tokens * element_bytes(precision.kv)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield the projections to latents, norms, queries, rotation, the write to the cache, attention, projection."""
        heads, queries = self.heads // step.gpus, self.heads // step.gpus * self.key_dim
        first = self.query_rank or queries
        yield from step.gemm("latent_projection", step.rows, first + self.kept, step.hidden)
        yield step.vector("latent_norm", "rmsnorm", step.rows, self.query_rank + self.kv_rank)
        if self.query_rank:
            yield from step.gemm("query_projection", step.rows, queries, self.query_rank)
        if self.rotary:
            yield step.vector("rope", "rope", step.rows, (heads + 1) * self.rope_dim, second=self.rope_dim)
        written = {"out_dtype": step.precision.kv, "out_distance": step.step_bytes}
        yield step.vector("kv_write", "copy", step.rows, self.kept, **written)
        yield from self._attended(step, heads)
        yield from step.gemm("output_projection", step.rows, step.hidden, heads * self.value_dim)

    def _attended(self, step: Step, heads: int) -> Iterator[Operator]:
        """Attention in the form that is faster on each design: absorbed, as engines decode, or with keys and values
        made, as they read prompts."""
        absorbed, made = list(self._absorbed(step, heads)), list(self._made(step, heads))
        if step.phase != "decode":
            yield from either(MADE, made, ABSORBED, absorbed)
        elif _work(made) > LEFT_OUT * max(_work(absorbed), SMALL):
            yield from absorbed
        else:
            yield from either(ABSORBED, absorbed, MADE, made)

    def _absorbed(self, step: Step, heads: int) -> Iterator[Operator]:
        """One token a request: heads attend the latent, a slice of which is their value."""
        yield self._of_heads(step, "absorbed_queries", heads, self.kv_rank, self.nope_dim)
        attention = self._attention(step, heads, 1, self.kept, v_dim=self.kv_rank, latent=True)
        yield self._operator(step, replace(attention, kv=step.precision.kv, kv_distance=step.step_bytes))
        yield self._of_heads(step, "absorbed_values", heads, self.value_dim, self.kv_rank)

    def _made(self, step: Step, heads: int) -> Iterator[Operator]:
        """A prompt: keys and values of every head are made of the latents of all tokens that are attended."""
        columns, rows = heads * (self.nope_dim + self.value_dim), float(step.batch * ceil(step.keys))
        yield from step.gemm("key_value_projection", rows, columns, self.kv_rank)
        attention = self._attention(step, heads, heads, self.key_dim, v_dim=self.value_dim)
        made = replace(attention, kv=step.precision.kv)
        yield self._operator(step, replace(made, kv_distance=2.0 * made.kv_bytes))

    def _attention(self, step: Step, heads: int, kv_heads: int, head_dim: int, **shape: int) -> Attention:
        p = step.precision
        return Attention(
            step.batch,
            heads,
            kv_heads,
            head_dim,
            step.queries,
            step.keys,
            dtype=p.output,
            kv=p.output,
            q_distance=2.0 * step.activation_bytes(heads * head_dim),
            out_distance=step.layer_bytes,
            v_dim=shape["v_dim"],
            latent=bool(shape.get("latent")),
        )

    @staticmethod
    def _operator(step: Step, attention: Attention) -> Operator:
        target = step.target
        ran = {"library": target.attention, "elsewhere": True}
        return attention_operator(LATENT, attention, target.capabilities, target.warpgroup, step.phase, **ran)

    @staticmethod
    def _of_heads(step: Step, name: str, heads: int, columns: int, depth: int) -> Operator:
        """A product of each head's rows with its own part of the up-projections, in the stream's type."""
        return step.unquantised(name, columns, depth, float(heads))


def _work(operators: Sequence[Operator]) -> float:
    """Multiply-adds of the operators in all."""
    return sum(float(operator.candidates[0].kernel.fma) for operator in operators)

"""Kinds of attention: the operators of each, its parameters, and what it keeps of a request's past."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator

NO_NORM, BY_HEAD, WHOLE = "none", "head", "whole"
"""Norms of queries and keys: none, each head by itself, all heads of a token together."""


@dataclass(frozen=True)
class GroupedQueryAttention:
    """Causal softmax attention whose query heads share key-value heads, all of them (multi-query) to none.

    With a ``window`` a query attends only that many tokens, with a ``chunk`` only those of its own stretch of so many.
    """

    heads: int  # query heads
    kv_heads: int  # key-value heads
    head_dim: int  # [element] of a head
    window: int = 0  # [token] that a query attends at most (0: all before it)
    rotary: bool = True  # whether queries and keys are rotated by their positions
    chunk: int = 0  # [token] of the stretches whose tokens attend each other alone (0: there are none)
    qk_norm: str = NO_NORM  # norms of queries and keys: none, head (each head's own), whole (all heads together)
    output_gate: bool = False  # whether a projection as wide as the queries gates the result
    sinks: bool = False  # whether every head's softmax has one more term, learnt, that no token stands for
    softcap: bool = False  # whether the scores' magnitude is capped by a tanh
    keys_as_values: bool = False  # whether values are the keys before their norm, without a projection of their own
    value_dim: int = 0  # [element] of a head of values (0: as of keys)

    @property
    def values(self) -> int:
        """Elements of a head of values."""
        return self.value_dim or self.head_dim

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        values = f"/{self.value_dim}" if self.value_dim else ""
        return {"heads": f"{self.heads}/{self.kv_heads} x {self.head_dim}{values}"}

    @property
    def kind(self) -> str:
        """What of the past it attends, in words."""
        return f"window {self.window}" if self.window else f"chunk {self.chunk}" if self.chunk else "full"

    @property
    def reach(self) -> int:
        """Tokens that a query attends at most (0: all before it)."""
        return self.window or self.chunk

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out; ``name`` of the workload, ``title`` of the
        network."""
        refuse_uneven(self.heads, "attention heads", gpus, name, title)
        if self.kv_heads % gpus and gpus % self.kv_heads:
            raise InputError(
                f"{name}: tp={gpus} neither divides the {self.kv_heads} key-value heads of {title} "
                "nor is a multiple of them"
            )

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together, those of copied heads as often as they are held."""
        ends = self.head_dim + self.values * (2.0 if self.output_gate else 1.0)  # queries, results, their gates
        kept = self.head_dim + (0.0 if self.keys_as_values else self.values)
        return hidden * (self.heads * ends + self._kv_heads(gpus) * gpus * kept)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: its heads' keys and values in reach."""
        in_reach = min(tokens, self.reach) if self.reach else tokens
        return self._kv_heads(gpus) * (self.head_dim + self.values) * in_reach * element_bytes(precision.kv)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projection, norms, rotation, the write to the cache, attention, its gate, and projection."""
        heads, kv_heads = self.heads // step.gpus, self._kv_heads(step.gpus)
        queries, keys = heads * self.head_dim, kv_heads * self.head_dim
        results, values = heads * self.values, kv_heads * self.values
        projected = (results if self.output_gate else 0) + (0 if self.keys_as_values else values)
        yield from step.gemm("qkv_projection", step.rows, queries + keys + projected, step.hidden)
        yield from self._norms(step, heads, kv_heads)
        if self.rotary:
            yield step.vector("rope", "rope", step.rows, queries + keys, second=keys)
        yield step.vector(
            "kv_write",
            "copy",
            step.rows,
            keys + values,
            out_dtype=step.precision.kv,
            input_distance=3.0 * step.activation_bytes(keys + values),
            out_distance=step.step_bytes,
        )
        yield self._attention(step, heads, kv_heads)
        if self.output_gate:  # the same arrays, and one product less an element
            yield step.vector("attention_gate", "silu_and_mul", step.rows, results)
        yield from step.gemm("output_projection", step.rows, step.hidden, results)

    def _norms(self, step: Step, heads: int, kv_heads: int) -> Iterator[Operator]:
        """Norms of queries, of keys, and of values where these are keys."""
        normed = {"query_norm": heads, "key_norm": kv_heads} if self.qk_norm != NO_NORM else {}
        normed |= {"value_norm": kv_heads} if self.keys_as_values else {}
        for name, count in normed.items():
            apart = 1 if self.qk_norm == WHOLE else count
            yield step.vector(name, "rmsnorm", step.rows * apart, count // apart * self.head_dim)

    def _attention(self, step: Step, heads: int, kv_heads: int) -> Operator:
        target, attention = step.target, self._shape(step, heads, kv_heads)
        ran = {"library": target.attention, "elsewhere": True}
        return attention_operator("attention", attention, target.capabilities, target.warpgroup, step.phase, **ran)

    def _shape(self, step: Step, heads: int, kv_heads: int) -> Attention:
        p, decodes = step.precision, step.phase == "decode"
        queries, kept = heads * self.head_dim, kv_heads * (self.head_dim + self.values)
        return Attention(
            step.batch,
            heads,
            kv_heads,
            self.head_dim,
            step.queries,
            self._attended(step),
            window=self.window,
            chunk=self.chunk,
            sinks=self.sinks,
            softcap=self.softcap,
            v_dim=self.value_dim,
            dtype=p.output,
            kv=p.kv,
            q_distance=2.0 * step.activation_bytes(queries),
            kv_distance=step.step_bytes
            if decodes or step.keys > step.queries
            else 2.0 * step.activation_bytes(queries + kept),
            out_distance=step.layer_bytes,
        )

    def _attended(self, step: Step) -> float:
        """Tokens of a request that any of its queries sees: of those before them no more than are in reach."""
        if step.phase == "decode":
            return min(step.keys, self.reach) if self.reach else step.keys
        before = step.keys - step.queries
        if self.window:
            before = min(before, self.window)
        return step.queries + (before % self.chunk if self.chunk else before)

    def _kv_heads(self, gpus: int) -> int:
        """Key-value heads a GPU holds: shared out, or copied where there are fewer than GPUs."""
        return max(1, self.kv_heads // gpus)

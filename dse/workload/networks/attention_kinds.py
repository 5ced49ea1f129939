"""Kinds of attention: the operators of each, its parameters, and what it keeps of a request's past."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator


@dataclass(frozen=True)
class GroupedQueryAttention:
    """Causal softmax attention whose query heads share key-value heads, all of them (multi-query) to none."""

    heads: int  # query heads
    kv_heads: int  # key-value heads
    head_dim: int  # [element] of a head
    window: int = 0  # [token] that a query attends at most (0: all before it)
    rotary: bool = True  # whether queries and keys are rotated by their positions

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads}/{self.kv_heads} x {self.head_dim}"}

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
        return 2.0 * hidden * self.head_dim * (self.heads + self._kv_heads(gpus) * gpus)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: its heads' keys and values in reach."""
        in_reach = min(tokens, self.window) if self.window else tokens
        return 2.0 * self._kv_heads(gpus) * self.head_dim * in_reach * element_bytes(precision.kv)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projection, rotation, the write to the cache, attention, and projection."""
        p = step.precision
        heads, kv_heads = self.heads // step.gpus, self._kv_heads(step.gpus)
        queries, keys = heads * self.head_dim, kv_heads * self.head_dim
        yield from step.gemm("qkv_projection", step.rows, queries + 2 * keys, step.hidden)
        if self.rotary:
            yield step.vector("rope", "rope", step.rows, queries + keys, second=keys)
        yield step.vector(
            "kv_write",
            "copy",
            step.rows,
            2 * keys,
            out_dtype=p.kv,
            input_distance=3.0 * step.activation_bytes(2 * keys),
            out_distance=step.step_bytes,
        )
        decodes = step.phase == "decode"
        attention = Attention(
            step.batch,
            heads,
            kv_heads,
            self.head_dim,
            step.queries,
            min(step.keys, self.window) if decodes and self.window else step.keys,
            window=self.window,
            dtype=p.output,
            kv=p.kv,
            q_distance=2.0 * step.activation_bytes(queries),
            kv_distance=step.step_bytes if decodes else 2.0 * step.activation_bytes(queries + 2 * keys),
            out_distance=step.layer_bytes,
        )
        target = step.target
        yield attention_operator(
            "attention",
            attention,
            target.capabilities,
            target.warpgroup,
            step.phase,
            library=target.attention,
            elsewhere=True,
        )
        yield from step.gemm("output_projection", step.rows, step.hidden, queries)

    def _kv_heads(self, gpus: int) -> int:
        """Key-value heads a GPU holds: shared out, or copied where there are fewer than GPUs."""
        return max(1, self.kv_heads // gpus)

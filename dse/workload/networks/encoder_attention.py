"""Attention of an encoder: every patch of an image attends all others of it, or those of its window."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from dse.workload.dtypes import Precision
from dse.workload.networks.images import Grid
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator

ONE = Grid(1, 1, 1, 1)
"""Of an encoder that has nothing to encode yet."""


@dataclass(frozen=True)
class EncoderAttention:
    """Softmax attention without a mask and without a cache, over all patches of a piece or a ``window`` of them."""

    heads: int
    head_dim: int  # [element] of a head
    rotary: bool  # whether queries and keys are rotated by their positions
    qk_norm: bool  # whether each head of queries and keys has a norm
    window: int = 0  # [patch] of a window's side (0: a piece as a whole)
    grid: Grid = ONE

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads} x {self.head_dim}"}

    @property
    def kind(self) -> str:
        """What of an image a patch attends, in words."""
        return f"windows of {self.window} x {self.window} patches" if self.window else "all patches"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out; ``name`` of the workload, ``title`` of the
        network."""
        refuse_uneven(self.heads, "heads of the encoder", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: none twice."""
        return 4.0 * hidden * self.heads * self.head_dim

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return no bytes: an encoder keeps nothing."""
        return 0.0

    def attended(self) -> tuple[float, float]:
        """Return the sequences of a piece and the patches of each; of windows that the edge cuts the mean."""
        if not self.window:
            return 1.0, float(self.grid.patches)
        windows = ceil(self.grid.rows / self.window) * ceil(self.grid.columns / self.window)
        return float(windows), self.grid.patches / windows

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projection, norms, rotation, attention and projection."""
        heads = self.heads // step.gpus
        width = heads * self.head_dim
        yield from step.gemm("qkv_projection", step.rows, 3 * width, step.hidden)
        if self.qk_norm:
            for name in ("query_norm", "key_norm"):
                yield step.vector(name, "rmsnorm", step.rows * heads, self.head_dim)
        if self.rotary:
            yield step.vector("rope", "rope", step.rows, 2 * width, second=width)
        yield self._attention(step, heads)
        yield from step.gemm("output_projection", step.rows, step.hidden, width)

    def _attention(self, step: Step, heads: int) -> Operator:
        target, dtype, width = step.target, step.precision.output, heads * self.head_dim
        sequences, patches = self.attended()
        shape = (step.batch * sequences, heads, heads, self.head_dim, patches, patches)
        warm = 3.0 * step.activation_bytes(width)
        made = Attention(
            *shape,
            causal=False,
            dtype=dtype,
            kv=dtype,
            decoding=False,
            q_distance=warm,
            kv_distance=warm,
            out_distance=step.layer_bytes,
        )
        ran = {"library": target.attention, "elsewhere": True}
        return attention_operator("attention", made, target.capabilities, target.warpgroup, step.phase, **ran)

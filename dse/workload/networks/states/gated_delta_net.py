"""Gated delta net: linear attention whose state forgets, and replaces what it holds under a key.

Yang, Kautz and Hatamizadeh, *Gated Delta Networks* (2024); as Qwen3-Next and Qwen3.5 have it. The triangular solve
within a chunk is left out of a prompt's operations.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.base.constants import constant
from dse.workload.networks.states.recurrence import Recurrence, Recurrent
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator

CHUNK = int(constant("delta_net_chunk"))
"""Tokens of a chunk of a prompt's scan."""

PRODUCTS = 3.0
"""Multiply-adds of a number of the state a token: what it holds under the key, what replaces it, the result."""


@dataclass(frozen=True)
class GatedDeltaNet(Recurrent):
    """A state of ``key_dim`` x ``value_dim`` for each of ``value_heads``, which share queries and keys in groups."""

    key_heads: int
    value_heads: int
    key_dim: int  # [element] of a head of queries and keys
    value_dim: int  # [element] of a head of values
    conv: int  # [token] that the convolution before it sees

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.value_heads}/{self.key_heads} x {self.value_dim}"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "gated delta net"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out."""
        refuse_uneven(self.key_heads, "key heads", gpus, name, title)
        refuse_uneven(self.value_heads, "value heads", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: projections in, taps, projection out."""
        return float(hidden * (self._projected + self._values) + self._channels * self.conv)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projections, convolution, update or scan, the gated norm, and projection."""
        heads = self.value_heads // step.gpus
        yield from step.gemm("delta_projection", step.rows, self._projected // step.gpus, step.hidden)
        yield from self.recurrence(step.gpus).operators(step, "delta")
        yield step.vector("delta_norm", "rmsnorm", step.rows * heads, self.value_dim, inputs=2.0)
        yield from step.gemm("output_projection", step.rows, step.hidden, heads * self.value_dim)

    @property
    def _values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def _channels(self) -> int:
        return 2 * self.key_heads * self.key_dim + self._values

    @property
    def _projected(self) -> int:
        """Queries, keys and values, gates of the results, and each head's decay and rate."""
        return self._channels + self._values + 2 * self.value_heads

    def recurrence(self, gpus: int) -> Recurrence:
        heads, channels = self.value_heads // gpus, self._channels // gpus
        return Recurrence(heads, self.key_dim, self.value_dim, channels, self.conv, CHUNK, PRODUCTS)

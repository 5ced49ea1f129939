"""Lightning attention: linear attention whose state forgets at a constant rate of each head.

Qin and others, *Lightning Attention-2* (2024), 3; as MiniMax-Text-01 has it, with a gate as wide as the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.workload.networks.states.recurrence import ADDED_AND_READ, Recurrence, Recurrent
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator


@dataclass(frozen=True)
class LightningAttention(Recurrent):
    """A state of ``head_dim`` x ``head_dim`` for each of ``heads``, without a convolution before it."""

    heads: int
    head_dim: int  # [element] of a head of queries, keys and values
    scan_chunk: int  # [token] of a chunk of a prompt's scan

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads} x {self.head_dim}"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "lightning attention"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out."""
        refuse_uneven(self.heads, "heads of a state", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: none twice."""
        return 5.0 * hidden * self.heads * self.head_dim

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projection, its activation, update or scan, norm, gate, and projection."""
        width = self.heads // step.gpus * self.head_dim
        yield from step.gemm("state_projection", step.rows, 3 * width, step.hidden)
        yield step.vector("state_silu", "gelu", step.rows, 3 * width)
        yield from self.recurrence(step.gpus).operators(step, "state")
        yield step.vector("state_norm", "rmsnorm", step.rows, width)
        yield from step.gemm("gate_projection", step.rows, width, step.hidden)
        yield step.vector("state_gate", "silu_and_mul", step.rows, width)
        yield from step.gemm("output_projection", step.rows, step.hidden, width)

    def recurrence(self, gpus: int) -> Recurrence:
        return Recurrence(self.heads // gpus, self.head_dim, self.head_dim, 0, 0, self.scan_chunk, ADDED_AND_READ)

"""Kimi delta attention: a gated delta net whose state forgets each channel of its keys at a rate of its own.

Moonshot AI, *Kimi Linear* (2025), 3; as Kimi-Linear-48B-A3B has it. Rates and the result's gate come through a narrow
projection of one head's size. The triangular solve within a chunk is left out of a prompt's operations.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.workload.networks.states.gated_delta_net import CHUNK, PRODUCTS
from dse.workload.networks.states.recurrence import Recurrence, Recurrent
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator


@dataclass(frozen=True)
class KimiDelta(Recurrent):
    """A state of ``head_dim`` x ``head_dim`` for each of ``heads``."""

    heads: int
    head_dim: int  # [element] of a head of queries, keys and values
    conv: int  # [token] that the convolution before it sees

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads} x {self.head_dim}"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "Kimi delta attention"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out."""
        refuse_uneven(self.heads, "heads of a state", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: each has the narrow projections down."""
        width = self.heads * self.head_dim
        shared = width * (4 * hidden + 2 * self.head_dim + 3 * self.conv) + hidden * self.heads
        return float(shared + 2 * hidden * self.head_dim * gpus)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projections, rates and gates, convolution, update or scan, the gated norm, and projection."""
        heads = self.heads // step.gpus
        width = heads * self.head_dim
        yield from step.gemm("delta_projection", step.rows, 3 * width + heads + 2 * self.head_dim, step.hidden)
        yield from step.gemm("delta_rates", step.rows, width, self.head_dim)
        yield from step.gemm("delta_gates", step.rows, width, self.head_dim)
        yield from self.recurrence(step.gpus).operators(step, "delta")
        yield step.vector("delta_norm", "rmsnorm", step.rows * heads, self.head_dim, inputs=2.0)
        yield from step.gemm("output_projection", step.rows, step.hidden, width)

    def recurrence(self, gpus: int) -> Recurrence:
        heads, d = self.heads // gpus, self.head_dim
        return Recurrence(heads, d, d, 3 * heads * d, self.conv, CHUNK, PRODUCTS)

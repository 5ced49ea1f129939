"""Mamba2: a state space whose decay is one number a head and token (Dao and Gu, *Transformers are SSMs*, 2024, 7)."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.workload.networks.states.recurrence import ADDED_AND_READ, Recurrence, Recurrent
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator


@dataclass(frozen=True)
class Mamba2(Recurrent):
    """A state of ``state`` x ``head_dim`` for each of ``heads``, which share what reads and writes it in ``groups``."""

    heads: int
    head_dim: int  # [element] of a head
    state: int  # [element] of the state a channel of a head
    groups: int  # of heads that share what they write to the state and read off it
    conv: int  # [token] that the convolution before it sees
    scan_chunk: int  # [token] of a chunk of a prompt's scan

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.heads} x {self.head_dim}"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "Mamba2"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads out."""
        refuse_uneven(self.heads, "Mamba2 heads", gpus, name, title)
        if self.groups > gpus:
            refuse_uneven(self.groups, "groups of Mamba2 heads", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together, those of copied groups as often as they are held."""
        channels = self._channels(gpus) * gpus
        return float(hidden * (self._projected(gpus) * gpus + self._width) + channels * self.conv)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projections, convolution, update or scan, the gated norm, and projection."""
        width = self._width // step.gpus
        yield from step.gemm("state_projection", step.rows, self._projected(step.gpus), step.hidden)
        yield from self.recurrence(step.gpus).operators(step, "state")
        groups = self._groups(step.gpus)
        yield step.vector("state_norm", "rmsnorm", step.rows * groups, width / groups, inputs=2.0)
        yield from step.gemm("output_projection", step.rows, step.hidden, width)

    @property
    def _width(self) -> int:
        return self.heads * self.head_dim

    def _groups(self, gpus: int) -> int:
        """Groups a GPU holds: shared out, or copied where there are fewer than GPUs."""
        return max(1, self.groups // gpus)

    def _channels(self, gpus: int) -> int:
        """Channels of the convolution on one GPU: its heads' inputs, and its groups' keys and queries."""
        return self._width // gpus + 2 * self._groups(gpus) * self.state

    def _projected(self, gpus: int) -> int:
        """Columns of the projection on one GPU: channels, gates of the results, and each head's decay."""
        return self._channels(gpus) + self._width // gpus + self.heads // gpus

    def recurrence(self, gpus: int) -> Recurrence:
        heads, channels = self.heads // gpus, self._channels(gpus)
        return Recurrence(heads, self.state, self.head_dim, channels, self.conv, self.scan_chunk, ADDED_AND_READ)

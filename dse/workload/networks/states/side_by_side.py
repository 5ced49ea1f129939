"""Attention and a state space side by side, whose results are added (TII, *Falcon-H1*, 2025, 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.workload.dtypes import Precision
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.states.mamba2 import Mamba2
from dse.workload.networks.step import Step
from dse.workload.operator import Operator

STATE = "state_"
"""Begins the names of kernels of the state space that an attention has, too."""


@dataclass(frozen=True)
class SideBySide:
    """Both halves of a layer's mixer; each token passes both."""

    attention: GroupedQueryAttention
    state: Mamba2

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.attention.facts['heads']} + {self.state.facts['heads']}"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return f"{self.attention.kind} beside {self.state.kind}"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the heads of either out."""
        self.attention.check(gpus, name, title)
        self.state.check(gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters of both that ``gpus`` hold together."""
        return self.attention.parameters(hidden, gpus) + self.state.parameters(hidden, gpus)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` [B]: keys and values, and the state."""
        return sum(half.cache_bytes(tokens, precision, gpus) for half in (self.attention, self.state))

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield the operators of one after those of the other, and the sum of their results."""
        yield from self.attention.operators(step)
        for operator in self.state.operators(step):
            name = operator.name
            yield operator if name.startswith(STATE) else operator.times(1.0, name=f"{STATE}{name}")
        yield step.vector("mixer_sum", "add", step.rows, step.hidden)

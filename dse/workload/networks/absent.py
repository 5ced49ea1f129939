"""The half that a layer does not have: hybrids have layers of an attention alone, and of an MLP alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.workload.dtypes import Precision
from dse.workload.networks.step import Step
from dse.workload.operator import Operator


@dataclass(frozen=True)
class Absent:
    """No attention, or no MLP: nothing is held, kept or run, its norm neither."""

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it: nothing."""
        return {}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "none"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Accept any number of GPUs."""

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return no parameters."""
        return 0.0

    def active_parameters(self, hidden: int) -> float:
        """Return no parameters."""
        return 0.0

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return no bytes."""
        return 0.0

    def columns(self, gpus: float) -> float:
        """Return no elements."""
        return 0.0

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield nothing."""
        yield from ()

"""Short convolutions between two gates, in place of attention (Liquid AI, *LFM2 Technical Report*, 2025, 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.states.recurrence import convolution, kept_channels
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator


@dataclass(frozen=True)
class ShortConvolution:
    """A convolution of ``conv`` tokens over ``channels`` of its own each, gated before and after."""

    channels: int  # [element] of a token
    conv: int  # [token] that the convolution sees

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"heads": f"{self.channels} channels"}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "short convolution"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the channels out."""
        refuse_uneven(self.channels, "channels of a convolution", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: two gates' and the input's projection, taps, result's."""
        return float(self.channels * (4 * hidden + self.conv))

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request [B]: its last tokens, whatever its length."""
        return kept_channels(self.channels // gpus, self.conv, element_bytes(precision.output))

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield the projection, the gate before the convolution, this, the gate after it, and projection."""
        channels = self.channels // step.gpus
        yield from step.gemm("conv_projection", step.rows, 3 * channels, step.hidden)
        yield step.vector("conv_gate", "mul", step.rows, channels, implementation="pytorch_vector")
        yield convolution(step, "conv", channels, self.conv)
        yield step.vector("conv_result_gate", "mul", step.rows, channels, implementation="pytorch_vector")
        yield from step.gemm("output_projection", step.rows, step.hidden, channels)

"""What makes one key of several tokens: a gated pooling over them, each channel with weights of its own.

DeepSeek-AI, *DeepSeek-V4* (2026), 2.3.1 and 2.3.2 (inference/model.py, Compressor). Norm, rotation and the write of the
keys that come out are fused into the pooling.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dse.hardware.data_types import element_bytes
from dse.workload.networks.step import Step
from dse.workload.operator import Operator

STATE = "fp32"
"""Type of the values and weights that wait for the rest of their tokens."""

OVERLAPPED = 4
"""Tokens of a key up to which pooled stretches overlap: each token then stands in two (model.py: ratio 4)."""


@dataclass(frozen=True)
class Compressor:
    """Keys of ``dim`` elements, each of ``ratio`` tokens."""

    ratio: int  # [token] of a key
    dim: int  # [element] of a key

    @property
    def columns(self) -> int:
        """Elements that a token is projected to: a value and a weight for each stretch that it stands in."""
        return 2 * self._stretches * self.dim

    @property
    def _stretches(self) -> int:
        return 2 if self.ratio <= OVERLAPPED else 1

    def parameters(self, hidden: int) -> float:
        """Return the parameters of its projection."""
        return float(hidden * self.columns)

    @property
    def state_bytes(self) -> float:
        """Bytes that are kept of a request: values and weights of the tokens of one stretch."""
        return self._stretches * self.ratio * self.columns * element_bytes(STATE)

    def operators(self, step: Step, name: str, more: int = 0) -> Iterator[Operator]:
        """Yield the projection, with ``more`` columns that others need of the same input, and the pooling."""
        yield step.unquantised(f"{name}_projection", self.columns + more, step.hidden)
        elements = self.columns / 2
        yield step.vector(f"{name}_pooling", "softmax", step.rows, elements, inputs=2.0, outputs=self._pooled)

    @property
    def _pooled(self) -> float:
        """Elements of keys that come out, of one of a token's values."""
        return 1.0 / (self.ratio * self._stretches)

"""Kernels of layers that keep a state instead of keys and values: convolution, one token's update, a prompt's scan.

A state has ``keys`` x ``values`` numbers a head, in 32 bits. One token reads and writes it. A prompt is cut into
chunks: within one, tokens attend each other; from one to the next the state is passed (Dao and Gu, *Transformers are
SSMs* (2024), 6; Yang and others, *Gated Delta Networks* (2024), 3.3).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.kernel import Kernel
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.gemm import Gemm
from dse.workload.operators.vector import vector_operator

STATE = "fp32"
"""Type of the numbers of a state."""

ADDED_AND_READ = 2.0
"""Multiply-adds of a number of a state a token: what comes in, and what is read off."""


@dataclass(frozen=True)
class Recurrence:
    """The state of a layer on one GPU: ``heads`` of ``keys`` x ``values`` numbers, and what updates it."""

    heads: int
    keys: int  # [element] of a head along which the state is read
    values: int  # [element] of a head that come out
    channels: int  # that the convolution before it passes
    taps: int  # [token] that a channel of the convolution sees (0: there is none)
    chunk: int  # [token] of a prompt's scan
    products: float  # [FMA] of a number of the state a token

    def bytes(self, element: float) -> float:
        """Return what is kept of a request [B]: the state, and the last tokens of the convolution's channels, which
        have ``element`` [B] each."""
        kept = kept_channels(self.channels, self.taps, element)
        return self.heads * self.keys * self.values * element_bytes(STATE) + kept

    def operators(self, step: Step, name: str) -> Iterator[Operator]:
        """Yield the convolution, then the update of one token or the scan of a prompt; ``name`` begins theirs."""
        if self.taps:
            yield convolution(step, name, self.channels, self.taps)
        yield from self._scan(step, name) if step.phase != "decode" else self._update(step, name)

    def _update(self, step: Step, name: str) -> Iterator[Operator]:
        """Read the state, decay it, add the token to it, read the result off it, and write it."""
        rows = float(step.batch * self.heads * self.keys)
        yield _of_state(step, f"{name}_update", rows, self.values, self.products * rows * self.values)

    def _scan(self, step: Step, name: str) -> Iterator[Operator]:
        """Scores within chunks and their values, what each chunk adds to the state, and what it reads of it."""
        chunk = min(self.chunk, step.queries)
        chunks = step.batch * self.heads * step.queries / chunk
        shapes = {
            "scores": (chunk, chunk, self.keys),
            "values": (chunk, self.values, chunk),
            "states": (self.keys, self.values, chunk),
            "results": (chunk, self.values, self.keys),
        }
        for part, shape in shapes.items():
            if part == "results":
                yield _of_state(step, f"{name}_passing", chunks * self.keys, self.values, 0.0)
            yield self._product(step, f"{name}_{part}", shape, chunks)

    @staticmethod
    def _product(step: Step, name: str, shape: tuple[int, int, int], chunks: float) -> Operator:
        p = step.precision.output
        m, n, k = map(float, shape)
        product = Gemm(m, n, k, chunks, p, p, p, p)
        near = {"a_distance": 2.0 * product.a_bytes, "b_distance": 2.0 * product.b_bytes}
        return step.product(name, replace(product, **near, out_distance=2.0 * product.out_bytes))


class Recurrent(ABC):
    """A kind of layer that keeps a state, of any length the same."""

    @abstractmethod
    def recurrence(self, gpus: int) -> Recurrence:
        """Return the state on one of ``gpus`` that share the heads out."""

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request [B]: its state, whatever its length."""
        return self.recurrence(gpus).bytes(element_bytes(precision.output))


def kept_channels(channels: int, taps: int, element: float) -> float:
    """Return what a convolution keeps of a request [B]: its last tokens but one, of ``element`` [B] a channel."""
    return channels * max(taps - 1, 0) * element


def convolution(step: Step, name: str, channels: int, taps: int) -> Operator:
    """Return the kernel that multiplies every channel's last tokens with its taps: one token's are kept of the step
    before, and kept again."""
    arrays = float(taps) if step.phase == "decode" else 1.0
    far = {"input_distance": step.step_bytes} if step.phase == "decode" else {}
    return step.vector(f"{name}_convolution", "causal_conv", step.rows, channels, inputs=arrays, outputs=arrays, **far)


def _of_state(step: Step, name: str, rows: float, columns: float, fma: float) -> Operator:
    """A kernel that reads and writes numbers of states, last touched a step ago or, in a prompt, just now."""
    size = 2.0 * rows * columns * element_bytes(STATE)
    distance = step.step_bytes if step.phase == "decode" else size
    far: dict[str, Any] = {"input_distance": distance, "out_distance": distance, "phase": step.phase}
    made = vector_operator(name, "state_update", rows, columns, STATE, **far)
    candidates = []
    for candidate in made.candidates:
        assert isinstance(candidate.kernel, Kernel)  # generated, never recorded
        candidates.append(replace(candidate, kernel=replace(candidate.kernel, fma=fma, fma_lanes=1.0)))
    return replace(made, kind="state", candidates=tuple(candidates))

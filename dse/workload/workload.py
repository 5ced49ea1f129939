"""A workload: the operators that run, what they need of a GPU's memory, and what they produce."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import jax
import numpy as np

from dse.base.brief import block
from dse.base.units import GIGA
from dse.workload.kernel import Kernel, RecordedKernel
from dse.workload.operator import Candidate, Operator
from dse.workload.serving_engine import Engine, Host


@dataclass(frozen=True)
class MemoryFootprint:
    """Bytes that must fit the DRAM of one GPU."""

    weights: float = 0.0
    kv: float = 0.0
    activations: float = 0.0

    @property
    def total(self) -> float:
        """All of it [B]."""
        return self.weights + self.kv + self.activations


@dataclass(frozen=True)
class Phase:
    """A part of a workload that is timed on its own and runs ``runs`` times, with what a ``host`` does in each run."""

    name: str
    runs: float = 1.0
    host: Host = field(default_factory=Host, repr=False)


@dataclass(frozen=True)
class Workload:
    """Operators with how often each runs; ``gpus`` work together (tensor parallel), ``memory`` is per GPU.

    ``tokens`` of all requests come out of one run: generated ones, or those of the prompts in a prefill (0: none).
    ``engine`` whose host the phases wait for; None: kernels alone. ``caution``: what of it goes beyond what was made
    for it, "" for nothing. ``prompts``: how many are read together, 0 where none is.
    """

    name: str
    description: str
    operators: tuple[Operator, ...]
    phases: tuple[Phase, ...]
    memory: MemoryFootprint = field(default_factory=MemoryFootprint)
    gpus: int = 1
    tokens: float = 0.0
    engine: Engine | None = None
    caution: str = field(default="", repr=False)
    prompts: int = 0

    def __repr__(self) -> str:
        kernels = sum(len(operator.candidates) for operator in self.operators)
        phases = ", ".join(phase.name for phase in self.phases)
        held = f"{self.memory.total / GIGA:.4g} GB" + (f" on each of {self.gpus} GPUs" if self.gpus > 1 else "")
        many = f"{phases}: {len(self.operators)} operators, {kernels} candidate kernels, {held}"
        return block(self, f"{self.name!r}: {self.description}", many)

    @property
    def static_batch(self) -> str:
        """What a server does with prompts that are read together here, as a sentence; "" where that is one or none."""
        if self.prompts < 2:
            return ""
        return (
            f"one static batch: its {self.prompts:,} prompts are read together and have their first tokens together; a "
            "server reads prompts as they come, in chunks between decode steps, so that the first token of a lone "
            "prompt comes sooner and other requests wait for the chunks"
        )

    @cached_property
    def kernels(self) -> Kernel:
        """Every candidate of every operator, in order, as one batched record of shape (candidates,); not of traces."""
        return Kernel.stack([c.kernel for o in self.operators for c in o.candidates])

    def with_kernels(self, kernels: Kernel) -> "Workload":
        """Return the workload with another record of its candidates, of the same shape; its operators stay."""
        other = replace(self)
        vars(other)["kernels"] = kernels
        return other

    @property
    def recorded(self) -> tuple[RecordedKernel, ...]:
        """The recorded kernels of the operators; none where kernels were generated."""
        kernels = [o.candidates[0].kernel for o in self.operators]
        return tuple(kernel for kernel in kernels if not isinstance(kernel, Kernel))

    @property
    def implementations(self) -> np.ndarray:
        """Numbers of the implementations that its generated kernels are of, each once."""
        return np.unique(np.array([])) if self.recorded else np.unique(self.kernels.implementation)

    def arrays(self) -> Iterator[np.ndarray]:
        """Return every array that decides its results, for a hash."""
        for kernel in self.recorded:
            yield from kernel.arrays()
        if not self.recorded:
            yield from jax.tree.leaves(self.kernels)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where each operator's candidates stand in ``kernels``."""
        ends = np.cumsum([len(o.candidates) for o in self.operators]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    @property
    def starts(self) -> np.ndarray:
        """Where each operator's candidates begin in ``kernels``, (operators,)."""
        return np.array([part.start for part in self.slices])

    @cached_property
    def choices(self) -> tuple[tuple[tuple[slice, ...], ...], ...]:
        """What is chosen together: for each operator, or run of operators with several forms, where the candidates of
        every form stand in ``kernels``, (operators, forms)."""
        found: list[list[tuple[slice, ...]]] = []
        before: tuple[str, ...] = ("",)
        for operator, part in zip(self.operators, self.slices, strict=True):
            forms = operator.forms
            ends = part.start + np.cumsum([sum(c.form == form for c in operator.candidates) for form in forms])
            parts = tuple(slice(a, b) for a, b in zip([part.start, *ends[:-1].tolist()], ends.tolist(), strict=True))
            if len(forms) > 1 and forms == before:
                found[-1].append(parts)
            else:
                found.append([parts])
            before = forms
        return tuple(map(tuple, found))

    @property
    def parts(self) -> tuple[slice, ...]:
        """Where the candidates of each form of each operator stand in ``kernels``, one after the other."""
        return tuple(part for together in self.choices for operator in together for part in operator)

    def candidate(self, operator: int, place: int) -> Candidate:
        """Return the candidate of an operator that stands at ``place`` in ``kernels``."""
        return self.operators[operator].candidates[place - self.slices[operator].start]

    def phase_repeats(self, phase: str) -> np.ndarray:
        """How often each operator runs in one run of ``phase``; 0 for operators of other phases."""
        return np.array([o.repeats if o.phase == phase else 0.0 for o in self.operators])

    def host(self, phase: str) -> Host | None:
        """What the host does in one run of ``phase``; None where the GPU never waits for it."""
        found = next(p.host for p in self.phases if p.name == phase)
        return None if found == Host() else found

    @property
    def waits(self) -> bool:
        """Whether the GPU may wait for the host in any phase."""
        return any(self.host(phase.name) is not None for phase in self.phases)

    @property
    def candidate_count(self) -> int:
        """Kernels evaluated for each design."""
        return self.slices[-1].stop

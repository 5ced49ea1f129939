"""An operator: one step of a workload, with the kernels that could carry it out."""

from dataclasses import dataclass, replace

from dse.workload.kernel import AnyKernel

FOREVER = 1e15
"""Reuse distance [B] of bytes that no cache holds when they are asked for."""


@dataclass(frozen=True)
class Candidate:
    """One realistic implementation of an operator; ``label`` says which (tile, split, instruction), ``form`` which of
    the ways in which it and the operators next to it are done together ("": there is one)."""

    label: str
    kernel: AnyKernel
    form: str = ""


@dataclass(frozen=True)
class Operator:
    """A step of a workload: on each design the fastest of its candidates runs, as a tuned library would choose.

    ``kind`` is the kernel class (gemm, attention_prefill, attention_decode, norm, elementwise, all_reduce, trace ...);
    ``repeats`` says how often it runs; ``phase`` is ``prefill``, ``decode``, ``forward`` or ``kernel``; ``shape`` is
    for people; ``operands``: data types of what a matrix product or attention reads, and of its instructions.
    """

    name: str
    kind: str
    candidates: tuple[Candidate, ...]
    repeats: float = 1.0
    phase: str = "kernel"
    shape: str = ""
    operands: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        what = ", ".join(filter(None, (self.kind, self.shape, self.phase)))
        return f"Operator({self.name!r}: {what}, repeats={self.repeats:g}, candidates={len(self.candidates)})"

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms of its candidates, which stand form by form."""
        return tuple(dict.fromkeys(candidate.form for candidate in self.candidates))

    def tensor_types(self) -> set[str]:
        """Return the data types of the tensor instructions that its candidates use."""
        return set().union(*(candidate.kernel.tensor_types for candidate in self.candidates))

    def times(self, repeats: float, phase: str | None = None, name: str | None = None) -> "Operator":
        """Return the same operator run ``repeats`` times as often (in another phase, under another name)."""
        return replace(
            self, repeats=self.repeats * repeats, phase=phase or self.phase, name=self.name if name is None else name
        )

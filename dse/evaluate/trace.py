"""The kernels of an Accel-Sim trace directory timed, and their watts: what ``dse trace`` asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.brief import block, with_table
from dse.base.errors import expect, listed, path_of
from dse.evaluate.trace_watts import traced_watts
from dse.power.models import PowerChoice, power_choice
from dse.timing.traced.trace_answer import TraceQuestion


@dataclass(frozen=True)
class TraceResult:
    """A trace's kernels on a GPU: ``results`` one a kernel, in order; ``question`` holds the GPU, the model, notes."""

    question: TraceQuestion
    results: Sequence[Any]

    def __repr__(self) -> str:
        return block(self, f"{len(self.results)} kernels of {self.question.directory.path}, {self.question.timing}")

    def _repr_html_(self) -> str:
        return with_table(self, self.to_frame())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, assumed or ignored."""
        return self.question.notes

    def document(self) -> list[dict[str, Any]]:
        """Return the JSON document of ``dse trace --json``."""
        return [result.document() for result in self.results]

    def to_frame(self) -> pd.DataFrame:
        """Return a row a kernel: its cycles by cause, time [us], and watts where they were asked for."""
        return pd.DataFrame(self.document())


def trace(
    directory: str | Path,
    gpu: str | Path | None = None,
    timing: str | None = None,
    *,
    representative: int | None = None,
    kernels: Sequence[str] = (),
    power: str | PowerChoice | None = None,
) -> TraceResult:
    """Time the kernels of a trace directory, as ``dse trace`` does; with ``power`` their watts too.

    ``gpu``: a name, a GPU TOML or a GCoM .config; without it that of the trace. ``timing``: gcom, amali, mdm or
    roofline. ``kernels``: numbers in the list or names, by default all. Raises InputError.
    """
    expect("gpu", gpu, str | Path | None, "give a name, a GPU TOML or a GCoM .config, or leave it out")
    expect("representative", representative, int | None, "give the number of a warp, or leave it out")
    names = map(str, listed("kernels", kernels, "give a list of numbers and names, as [1, 'k2']"))
    named = None if gpu is None else str(gpu)
    question = TraceQuestion.of(path_of("directory", directory), named, timing, representative, tuple(names))
    return trace_result(question, power_choice(power, "power") if isinstance(power, str) else power)


def trace_result(question: TraceQuestion, power: PowerChoice | None = None) -> TraceResult:
    """Return the answer of a question about a trace, with watts of a power model where one is given."""
    return TraceResult(question, question.answer() if power is None else traced_watts(question, power.model))

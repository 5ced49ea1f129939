"""Intervals of GPUs of which something is new: the widening learnt from classes left out, judged on classes unseen.

An interval begins as that of GPUs left out one by one (:func:`dse.validation.error_quantiles.unseen`). Its half width,
of logarithms, is multiplied by the root of a sum of shares: one of a GPU, one more where its memory type is new, one
more where its generation is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from dse.hardware.presets import load_sheet
from dse.timing.novelty import GENERATION, GPU, KINDS, MEMORY_TYPE, generation, memory_type
from dse.validation.error_quantiles import unseen

SHARE = 0.8

GRID = (np.arange(100) + 0.5) / 100
"""A case counts by these quantiles of its errors, however many rows it has."""

MOST = 100.0
"""A share is no larger: ten times as wide."""

CLASS_OF: dict[str, Callable[[str], str]] = {
    GPU: str,
    MEMORY_TYPE: lambda gpu: memory_type(load_sheet(gpu)),
    GENERATION: lambda gpu: generation(load_sheet(gpu)),
}
"""Kind of novelty -> the class of a GPU that is left out whole."""


@dataclass(frozen=True)
class Case:
    """The rows of one kind of kernels on one GPU under a fit that has not seen it."""

    kernels: str
    gpu: str
    alone: bool
    memory_type: str
    generation: str
    rows: pd.DataFrame = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The kind of its novelty: the memory type where that is new, else the generation, else the GPU alone."""
        return MEMORY_TYPE if self.memory_type else GENERATION if self.generation else GPU

    @property
    def new(self) -> np.ndarray:
        """What of it is new, 0 or 1 in the order of KINDS."""
        return np.array([1.0, bool(self.memory_type), bool(self.generation)])


def cases(rows: pd.DataFrame) -> list[Case]:
    """Return the cases of ``class_errors.parquet``."""
    keys = ["kernels", "fit", "gpu", "alone", "memory_type", "generation"]
    groups = rows.groupby(keys, sort=True)
    return [Case(k, gpu, bool(alone), new, of, part) for (k, _, gpu, alone, new, of), part in groups]


def normalised(case: Case, others: Sequence[Case]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how far each error lies from the middle of its interval, in half widths, and the half widths, by what the
    ``others`` that were left out alone say of the same kernels; None where none do."""
    alone = [one.rows for one in others if one.alone and one.kernels == case.kernels]
    if not alone:
        return None
    known = {one.regime: one for one in unseen(alone, "", "", "")}
    told = [known.get(where, known["all"]) for where in case.rows["where"]]
    low, high = np.array([(one.q10, one.q90) for one in told]).T
    return (case.rows["error"].to_numpy() - (low + high) / 2) / ((high - low) / 2), (high - low) / 2


class Judged(NamedTuple):
    """A case under a widening that its class has not set: its share of rows within, and the half width."""

    case: Case
    within: float
    half: float


def of_class(case: Case) -> str:
    """Return the class that a case is of, by the kind of its novelty."""
    return CLASS_OF[case.kind](case.gpu)


def apart(case: Case, kind: str, name: str) -> bool:
    """Whether a case is of no GPU of a class."""
    return CLASS_OF[kind](case.gpu) != name


def shares_of(every: Sequence[Case]) -> dict[str, float]:
    """Return kind -> its share of the variance, of that of the interval of GPUs left out one by one.

    First that of a GPU alone; then what a new generation adds, from cases where the memory type is known; last what a
    new memory type adds. A GPU's own errors set none of the intervals that it is held against.
    """
    found: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    for kind in (GPU, GENERATION, MEMORY_TYPE):
        mine = [case for case in every if case.kind == kind]
        found[kind] = _share(mine, every, found) if mine else 0.0
    return found


def _share(mine: Sequence[Case], every: Sequence[Case], known: dict[str, float]) -> float:
    """The share of a kind that makes its cases hold SHARE of their rows, classes counting alike."""
    parts: dict[str, list[tuple[np.ndarray, float]]] = {}
    for case in mine:
        of = normalised(case, [o for o in every if o.gpu != case.gpu])
        if of is not None:
            parts.setdefault(of_class(case), []).append((np.quantile(of[0], GRID), variance(case, known)))

    def share_of_rows(more: float) -> float:
        return float(np.mean([np.mean([_inside(x, before + more) for x, before in part]) for part in parts.values()]))

    tried = np.concatenate([[0.0], np.geomspace(0.01, MOST, 400)])
    wanted = SHARE
    return float(next((more for more in tried if share_of_rows(more) >= wanted), MOST))


def variance(case: Case, shares: dict[str, float]) -> float:
    """Return the sum of the shares of what is new of a case."""
    return float(case.new @ [shares[kind] for kind in KINDS])


def _inside(errors: np.ndarray, share: float) -> float:
    return float((np.abs(errors) <= np.sqrt(max(share, 0.0))).mean())


def judged(every: Sequence[Case], learn: Callable[[Sequence[Case]], dict[str, float]] = shares_of) -> Iterator[Judged]:
    """Yield each case under shares that ``learn`` has found without any GPU of its class."""
    for kind in KINDS:
        for name in sorted({of_class(case) for case in every if case.kind == kind}):
            others = [case for case in every if apart(case, kind, name)]
            shares = learn(others)
            for case in (c for c in every if c.kind == kind and of_class(c) == name):
                of = normalised(case, others)
                if of is not None:
                    share = variance(case, shares)
                    yield Judged(case, _inside(of[0], share), float(np.median(of[1])) * np.sqrt(share))

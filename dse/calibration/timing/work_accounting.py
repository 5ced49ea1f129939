"""The stage of work accounting: instructions that a profiler counted of rows, against those of the kernels that ran.

Each class has one factor for an implementation: the median of executed over generated instructions of the rows that may
be fitted, so that a few rows with another kernel move nothing (the least sum of absolute log errors).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from dse.calibration.timing.stages import StageResult, errors_after
from dse.measured.profiler.executed_instructions import counted
from dse.measured.timed_rows import TimedRows, best
from dse.timing.timing import TimingModel
from dse.timing.work import Work, generated

STAGE = "work accounting"

FEWEST = 8
"""Rows with counts that a class needs."""

LEAST, MOST = 0.1, 10.0
"""Executed over generated instructions [1] that a factor may be: beyond, the kernels that ran are others."""


@dataclass(frozen=True)
class ClassCounts:
    """How near generated kernels come to a profiler's counts of a class: the ``factor`` over them, rows, and mean
    errors of counts [%] of rows that may be fitted and of those left out (None: none), before and with the factor."""

    name: str
    factor: float
    rows: int
    before: float
    after: float
    left_out_before: float | None
    left_out_after: float | None

    def words(self) -> str:
        """Return the counts as a sentence of a note."""
        out = ""
        if self.left_out_after is not None:
            out = f" (families left out {self.left_out_before:.0f} to {self.left_out_after:.0f} %)"
        return (
            f"{self.name}: {self.factor:.3g} executed for one generated, by {self.rows} rows; counts were "
            f"{self.before:.0f} % off and are {self.after:.0f} %{out}"
        )


@dataclass(frozen=True)
class WorkAccount:
    """What a stage of work accounting found of an implementation's rows: the counts by class, the ``work`` of a model,
    and its errors of times before."""

    classes: tuple[ClassCounts, ...]
    before: StageResult

    @property
    def work(self) -> Work:
        """The factors as a timing model holds them."""
        return Work(**{one.name: one.factor for one in self.classes})

    def applied(self, rows: TimedRows) -> TimedRows:
        """Return the rows with candidates that execute what was counted."""
        return replace(rows, kernels=jax.tree.map(np.asarray, self.work.counted(rows.kernels)))

    def as_stage(self, after: StageResult) -> StageResult:
        """Return the errors ``after`` the factors as those of this stage."""
        return replace(after, name=STAGE, rows=max(one.rows for one in self.classes), free=self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes that were counted."""
        return tuple(one.name for one in self.classes)

    def document(self) -> list[dict[str, Any]]:
        """Return the counts by class as JSON."""
        return [vars(one) for one in self.classes]


def work_account(rows: TimedRows, model: TimingModel, out: np.ndarray) -> WorkAccount | None:
    """Return the work of rows whose notes hold counts, None where too few do; ``out`` (rows,) marks those that no fit
    may see. The candidate that ``model`` finds fastest stands for each row."""
    counts = counted(rows.table)
    if not counts:
        return None
    predicted, chosen = best(model, rows)
    kernels = jax.tree.map(lambda x: np.asarray(x, float)[:, 0], chosen.kernels)
    ran = {name: np.asarray(generated(kernels, name), float) for name in counts}
    classes = (_class_counts(name, of, ran[name], out) for name, of in counts.items())
    found = tuple(one for one in classes if one is not None)
    return WorkAccount(found, errors_after("before", rows.table, out, predicted, (), 0)) if found else None


def _class_counts(name: str, counts: np.ndarray, ran: np.ndarray, out: np.ndarray) -> ClassCounts | None:
    known = np.isfinite(counts) & (counts > 0) & (ran > 0)
    if int((known & ~out).sum()) < FEWEST:
        return None
    ratio = np.divide(counts, ran, out=np.ones_like(ran), where=known)
    factor = float(np.clip(np.exp(np.median(np.log(ratio[known & ~out]))), LEAST, MOST))

    def off(scale: float, of: np.ndarray) -> float | None:
        return float(100 * np.abs(scale / ratio[of] - 1).mean()) if of.any() else None

    fitted, left = known & ~out, known & out
    before, after = off(1.0, fitted), off(factor, fitted)
    assert before is not None and after is not None  # there are rows enough
    return ClassCounts(name, factor, int(fitted.sum()), before, after, off(1.0, left), off(factor, left))


def lines(account: WorkAccount, place: str) -> list[str]:
    """Return the TOML lines of the factors, which stand below ``place``, "" or a table's name and a dot."""
    factors: Mapping[str, float] = {one.name: one.factor for one in account.classes}
    words = "warp instructions that a profiler counted, over those of the generated kernels"
    return [f"[{place}work] # {words}", *(f"{name} = {factor:.6g}" for name, factor in factors.items())]

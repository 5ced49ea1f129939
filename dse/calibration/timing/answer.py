"""What fits of the timing model answer: of one implementation's rows, and of all that a GPU's tables hold; as TOML."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.base.atomic_files import write_whole
from dse.base.toml_text import literal, pairs
from dse.calibration.timing.fit import DETERMINED, parameters
from dse.calibration.timing.sensitivity import Sensitivity
from dse.calibration.timing.stages import StagedFit
from dse.calibration.timing.work_accounting import WorkAccount
from dse.calibration.timing.work_accounting import lines as work_lines
from dse.hardware.own_gpus import own_lines
from dse.hardware.presets import GpuSheet
from dse.measured.table import OperatorTable
from dse.timing.calibration import FORMAT, MATRIX, MODEL
from dse.timing.discrepancy import SIZES
from dse.timing.error_quantiles import ErrorQuantiles
from dse.validation.error_quantiles import listed
from dse.workload.implementation import KINDS

LEFT_OUT = 7
"""Shape families whose CRC-32 ends in this decimal digit or a higher one are left out of the fit."""

OVERHEADS = (
    "overhead [us] that the fit took for each way of measuring, the mean of its rows: a record, no prediction reads it"
)

DIGITS = 6
"""Significant digits of a file's numbers."""


@dataclass(frozen=True)
class TimingAnswer:
    """A fit of one implementation: its rows, errors stage by stage, coefficients and errors on left-out rows.

    ``also``: implementations that may have run the same rows instead, and have the same coefficients therefore.
    ``doubts``: that some rows are in another unit. ``harnesses``: overhead of each way, the mean of its rows [us].
    ``sensitivity``: the error over each parameter.
    """

    name: str
    gpus: tuple[str, ...]
    tables: tuple[OperatorTable, ...]
    rows: int
    rows_left_out: int
    harnesses: dict[str, float]
    fit: StagedFit
    error_quantiles: tuple[ErrorQuantiles, ...]
    implementation: str = MATRIX
    also: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    sensitivity: tuple[Sensitivity, ...] = ()  # where it was asked for
    work: WorkAccount | None = None  # where a profiler counted the rows' instructions

    @property
    def verdict(self) -> str:
        """What the fit is worth, in a sentence: its error on rows that no fit has seen beside that of the values that
        it started from."""
        first, last = self.fit.stages[0], self.fit.stages[-1]
        if first.left_out is None or last.left_out is None:
            return (
                f"Too few rows to leave any out: on its own rows the fit is {last.fitted:.1f} % off, and what it "
                f"started from {first.fitted:.1f} %."
            )
        numbers = f"{last.left_out:.1f} % off on rows it has not seen, and what it started from {first.left_out:.1f} %"
        if last.left_out >= first.left_out:
            return f"The fit gained nothing: it is {numbers}. Keep what was there before."
        return f"The fit gained {first.left_out - last.left_out:.1f} points: it is {numbers}."

    def coefficients(self) -> list[dict[str, Any]]:
        """Return the parameters with unit, 95 % interval, share of the answer that is the rows', stage and words."""
        known = self.fit.determined
        units = {p.name: (p.unit, p.stage) for p in parameters(KINDS[self.implementation])}
        rows = zip(known.names, known.share, known.low, known.high, known.bound, strict=True)
        return [
            {
                "name": name,
                "value": self.fit.values[name],
                "unit": units[name][0],
                "low": float(low),
                "high": float(high),
                "data_share": float(share),
                "stage": units[name][1],
                "determined": bool(share >= DETERMINED),
                "at_bound": bool(bound),
            }
            for name, share, low, high, bound in rows
        ]

    def document(self) -> dict[str, Any]:
        """Return the fit as JSON, without what it shares with others of the same tables."""
        return {
            "implementation": self.implementation,
            "also": list(self.also),
            "rows": self.rows,
            "rows_left_out": self.rows_left_out,
            "verdict": self.verdict,
            "harnesses": self.harnesses,
            "stages": [asdict(stage) for stage in self.fit.stages],
            "parameters": self.coefficients(),
            "undetermined": list(self.fit.undetermined),
            "at_bounds": list(self.fit.at_bounds),
            "discrepancy": self._points(),
            **({"work": self.work.document()} if self.work else {}),
            "residuals": [asdict(r) for r in self.error_quantiles],
            **({"sensitivity": [one.document() for one in self.sensitivity]} if self.sensitivity else {}),
        }

    def _points(self) -> dict[str, Any] | None:
        points = self.fit.discrepancy
        if points is None:
            return None
        rows = np.c_[points.sizes[:, : len(SIZES[points.kind])], points.weights].tolist()
        return {"sm_count": points.sm_count, "points": rows}

    def lines(self, place: str = "") -> list[str]:
        """Return the TOML lines of the fit, its tables below ``place``, "" or a table's name and a dot."""
        document = self.document()
        keys = ("implementation", "also", "rows", "rows_left_out", "at_bounds", "undetermined")
        lines = [f"{key} = {literal(document[key])}" for key in keys if key != "also" or self.also]
        none = "none: too few rows or shape families; the errors below are those of the calibration it started from"
        out = f"shape families whose CRC-32 modulo 10 is {LEFT_OUT} or more" if self.rows_left_out else none
        lines += [f"left_out = {literal(out)}", "", listed(self.error_quantiles).rstrip()]
        lines += ["", f"[{place}harnesses] # {OVERHEADS}", *(f"{k} = {v:.6g}" for k, v in self.harnesses.items())]
        lines += ["", *work_lines(self.work, place)] if self.work else []
        lines += ["", *self.fit.discrepancy.lines(place)] if self.fit.discrepancy else []
        for row in document["parameters"]:
            if row["name"] != "overhead_us":
                lines += ["", f"[{place}parameters.{row['name']}]", *pairs(row, DIGITS, ["name"])]
        for stage in document["stages"]:
            lines += ["", f"[[{place}stages]]", *pairs(stage, DIGITS)]
        return lines

    def write(self, path: Path) -> None:
        """Write the fit as a calibration of its own; but for the date the same fit gives the same bytes."""
        _write(path, [*_head(self.name, self.gpus), *self.lines(), *_sources(self.tables)])


@dataclass(frozen=True)
class GpuTimingAnswer:
    """A GPU's calibration: a fit of every implementation that its tables hold enough rows of.

    ``like``: the shipped calibration whose matrix products it keeps where the tables hold none to fit. ``skipped``:
    reason -> rows that no fit has seen. ``own``: the GPU where it is no preset. ``notes``: what was assumed of rows.
    """

    name: str
    gpus: tuple[str, ...]
    tables: tuple[OperatorTable, ...]
    fits: tuple[TimingAnswer, ...]
    like: str
    skipped: dict[str, int]
    own: tuple[GpuSheet, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def products(self) -> TimingAnswer | None:
        """The fit of a tuned library's matrix products, the calibration's first part; None where there is none."""
        return next((fit for fit in self.fits if fit.implementation == MATRIX), None)

    @property
    def others(self) -> tuple[TimingAnswer, ...]:
        """The fits of the other implementations."""
        return tuple(fit for fit in self.fits if fit is not self.products)

    def to_frame(self) -> pd.DataFrame:
        """Return the coefficients, a row each, with the implementation that it is of."""
        return pd.DataFrame([{"implementation": f.implementation} | row for f in self.fits for row in f.coefficients()])

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse calibrate timing --json``."""
        first = {"like": self.like} if self.products is None else self.products.document()
        return {
            "name": self.name,
            "gpus": list(self.gpus),
            "model": MODEL,
            "tables": [{"name": Path(t.path).name, "sha256": t.sha256} for t in self.tables],
            **first,
            "implementations": {fit.implementation: fit.document() for fit in self.others},
            "notes": list(self.notes),
            "rows_skipped": self.skipped,
        }

    def write(self, path: Path) -> None:
        """Write the calibration as TOML; but for the date the same fits give the same bytes."""
        lines = _head(self.name, self.gpus)
        if self.products is None:
            words = "products of a tuned library are those of this shipped calibration: none were measured"
            lines += [f"like = {literal(self.like)} # {words}"]
        else:
            lines += self.products.lines()
        for fit in self.others:
            place = f"implementations.{fit.implementation}"
            lines += ["", f"[{place}]", *fit.lines(f"{place}.")]
        _write(path, [*lines, *_sources(self.tables), *own_lines(self.own)])


def _head(name: str, gpus: Iterable[str]) -> list[str]:
    head = {"format": FORMAT, "name": name, "model": MODEL, "gpus": list(gpus)}
    head |= {"date": datetime.now(UTC).date().isoformat(), "jax": jax.__version__}
    return pairs(head)


def _sources(tables: Iterable[OperatorTable]) -> list[str]:
    lines = []
    for table in tables:
        lines += ["", "[[tables]]", *pairs({"name": Path(table.path).name, "sha256": table.sha256})]
    return lines


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "\n".join(lines) + "\n")

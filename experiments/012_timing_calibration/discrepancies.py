"""The discrepancies of the shipped calibrations of products fitted anew; no parameter changes.

python experiments/012_timing_calibration/discrepancies.py [NAME ...] (twelve minutes for all six). Prints the errors
before and after, and rewrites the discrepancy in ``dse/data/calibration`` with the errors after it. Intervals follow
with ``run.py --intervals``.
"""

import argparse
import importlib
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from dse.base.atomic_files import write_whole
from dse.base.toml_text import pairs
from dse.calibration.timing.answer import DIGITS
from dse.calibration.timing.discrepancy_fit import with_discrepancy
from dse.calibration.timing.fit import Determined
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import DISCREPANCY, StagedFit, StageResult, errors_after, with_points
from dse.measured.table import read_times
from dse.measured.timed_rows import TimedRows, best
from dse.timing.calibration import (
    TimingCalibration,
    implementation_calibration,
    load_timing_calibration,
    shipped_calibrations,
    shipped_implementations,
)
from experiments import data

run = importlib.import_module("experiments.012_timing_calibration.run")

NAMES = ("a100_sxm_80gb", "h100_sxm", "h200", "rtx_pro_6000", "matrix_early", "matrix_early_hopper")
"""The calibrations of products that have a discrepancy: of GPUs, and of the early library."""


def main() -> None:
    """Fit, print and rewrite."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all without any")
    names = parser.parse_args().names or NAMES
    print("| calibration, stage | rows | fitted | left out | fitted > 50 us | left out > 50 us |\n" + "|---" * 6 + "|")
    for name in names:
        known, path, rows = shipped(name)
        before, fit = refitted(known, rows)
        for stage in (before, fit.stages[-1]):
            run.show(replace(stage, name=f"{name}, {stage.name}"))
        write(path, fit)


def shipped(name: str) -> tuple[TimingCalibration, Path, TimedRows]:
    """Return a shipped calibration, its file, and the rows that it was fitted to and judged by."""
    if name in run.EARLY:
        rows = run.early_rows(read_times(data.path(run.EARLY_TABLE)), run.EARLY[name])
        return implementation_calibration(name), shipped_implementations()[name], rows
    place = (run.GRAPHS | run.OTHERS)[name]
    rows = run.load({name: place}, run.MOST_OWN if name in run.GRAPHS else run.MOST_SHARED).rows[name]
    return load_timing_calibration(name), shipped_calibrations()[name], rows


def refitted(known: TimingCalibration, rows: TimedRows) -> tuple[StageResult, StagedFit]:
    """Return the errors of a calibration's equations alone, and its fit with a discrepancy anew."""
    out = left_out(rows.table["family"])
    predicted, _ = best(with_points(known.values, None), rows)
    before = errors_after("equations", rows.table, out, predicted, (), int((~out).sum()))
    nothing = Determined((), *(np.zeros(0) for _ in Determined._fields[1:]))
    return before, with_discrepancy(StagedFit(known.values, (), nothing, predicted), rows, out, "matrix")


def write(path: Path, fit: StagedFit) -> None:
    """Put a fit's discrepancy and the errors after it in place of those of a calibration's TOML."""
    points, stage = fit.discrepancy, fit.stages[-1]
    if points is None:
        raise SystemExit(f"{path}: families left out gain nothing by a discrepancy")
    text = path.read_text(encoding="utf-8")
    table = "\n".join(points.lines())
    text, tables = re.subn(r"\[discrepancy\][^\n]*\n.*?\n\]", lambda _: table, text, count=1, flags=re.DOTALL)
    errors = "\n".join(["[[stages]]", *pairs(asdict(stage), DIGITS), ""])
    old = rf'\[\[stages\]\]\nname = "{DISCREPANCY}"\n(?:[^\n\[][^\n]*\n)*'
    text, stages = re.subn(old, lambda _: errors, text)
    if (tables, stages) != (1, 1):
        raise SystemExit(f"{path}: {tables} discrepancies and {stages} stages of one; a calibration has one of each")
    write_whole(path, text)


if __name__ == "__main__":
    main()

"""What ``dse calibrate power`` answers: a fit to a measured table, judged on what it has not seen, beside baselines."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, path_of
from dse.calibration.power.accelwattch_fit import CLASSES, HEADLINE, ClassErrors, coefficients, judge
from dse.calibration.power.board import calibrate_board
from dse.calibration.power.document import Answer
from dse.measured.table import read_kernels, table_kind

Progress = Callable[[int], None]

VARIANT = "hw"
"""Components that a table of kernels is fitted with where none are named: from hardware counters."""


def calibrate_power(
    table: str | Path, variant: str | None = None, progress: Progress = lambda _: None, gpu: str | None = None
) -> Answer:
    """Fit the power model that a measured table can inform: AccelWattch's multipliers, or the board's coefficients.

    ``progress`` is called with 1 after each of :data:`PARTS` parts. ``gpu``: a preset or TOML that stands for the
    device of a table of operators. Raises InputError for a table that cannot be used.
    """
    table = path_of("table", table)
    if table_kind(table) == "operators":
        if variant is not None:
            raise InputError(f"--variant {variant}: {table} holds operators, not kernels with components; leave it out")
        return calibrate_board(table, progress, PARTS, gpu)
    if gpu:
        raise InputError(f"--gpu: {table} holds kernels with the components of AccelWattch; they need no GPU")
    return _kernels(table, variant or VARIANT, progress)


PARTS = len(CLASSES) + 1

LACKING = "without components, or with meas_W empty or 0"


def _kernels(path: Path, variant: str, progress: Progress) -> Answer:
    table = read_kernels(path, variant)
    evaluated = list(_with_progress((judge(name, table) for name in CLASSES), progress))
    fitted, condition = coefficients(evaluated[0], table)
    progress(1)
    notes = [
        "the train error says nothing: nested leave-one-benchmark-out is the one to quote",
        "a component that is not identified holds the prior, not a measurement",
        "the features of four_parameters were picked with all kernels in sight: its errors are too small",
    ]
    return Answer(
        f"accelwattch_{variant}",
        f"accelwattch_{variant}_refit_{table.sha256[:8]}",
        table.path,
        table.sha256,
        len(table.watts),
        {LACKING: table.skipped} if table.skipped else {},
        evaluated[0].strength,
        "inner leave-one-out",
        [model_row(j) for j in evaluated],
        fitted,
        condition,
        notes,
    )


def model_row(evaluated: ClassErrors) -> dict[str, Any]:
    """One model's errors [%], with the 95 % interval of its leave-one-benchmark-out error over benchmarks."""
    return {
        "name": evaluated.name,
        "meaning": CLASSES[evaluated.name],
        "train": evaluated.train,
        "leave_one_kernel_out": evaluated.leave_one_kernel_out,
        "leave_one_benchmark_out": evaluated.leave_one_benchmark_out,
        "interval": list(evaluated.interval),
        "better_than_published": evaluated.better_than_published,
        "headline": evaluated.name == HEADLINE,
    }


def _with_progress(parts: Iterator[ClassErrors], progress: Progress) -> Iterator[ClassErrors]:
    for part in parts:
        yield part
        progress(1)

"""Measured rows as kernels on a GPU: the fastest of those that can have run, and its timing."""

from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, counted
from dse.evaluate.shared_programs import fastest_kernels
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.measured.row_operator import none_runs, operator_on
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel


class TimedLaunches(NamedTuple):
    """Measured launches on one GPU: rows, the kernel that the timing model finds fastest for each, and its timing."""

    frame: pd.DataFrame
    gpu: Gpu
    kernels: Kernel
    timing: Timing


def load_launches(frame: pd.DataFrame, sheet: GpuSheet, model: TimingModel, skipped: Skipped) -> TimedLaunches | None:
    """Return the launches of a GPU's rows; those without a kernel that it runs count in ``skipped``.

    None where no row is left.
    """
    gpu, numbers = sheet.record(), sheet.numbers()
    operators, kept = [], []
    for place, row in enumerate(frame.itertuples()):
        try:
            operators.append(operator_on(numbers, row))
            kept.append(place)
        except InputError as error:
            skipped[f"{sheet.title}: {row.op} in {row.dtype}: {error}"] += 1
    if not kept:
        return None
    kernels, timing = fastest_kernels(model, operators, gpu)
    frame, runs = frame.iloc[kept], np.asarray(timing.feasible) > 0
    skipped.update(counted(none_runs(row, sheet.title) for row in frame[~runs].itertuples()))
    if not runs.any():
        return None
    return TimedLaunches(frame[runs].reset_index(drop=True), gpu, *jax.tree.map(lambda x: x[runs], (kernels, timing)))

"""Measured rows as launches whose watts can be told: the activity of the kernel that runs."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.evaluate.steps import activities
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.measured.row_kernels import load_launches
from dse.measured.row_operator import family
from dse.power.activity import Activity
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel


class MeasuredLaunches(NamedTuple):
    """Measured launches of one GPU: the table, their activities and timings (rows,), at the measured time and at the
    model's own."""

    table: pd.DataFrame
    gpu: Gpu
    measured: Activity
    measured_timing: Timing
    own: Activity
    own_timing: Timing


def load_rows(
    table: pd.DataFrame, sheet: GpuSheet, skipped: Skipped, model: TimingModel | None = None
) -> MeasuredLaunches | None:
    """Rows of a measured table on a GPU: the candidate that the timing ``model`` (None: AMALI uncalibrated) finds
    fastest stands for each.

    Rows without a kernel that this GPU runs count in ``skipped``; None where no row is left.
    """
    found = load_launches(table, sheet, model or Amali(), skipped)
    if found is None:
        return None
    table = found.frame.assign(family=[family(row) for row in found.frame.itertuples()])
    at_measured = found.timing.stretched(jnp.asarray(table["latency_us"].to_numpy()) / found.timing.microseconds)
    measured, own = (activities(found.kernels, timing, found.gpu) for timing in (at_measured, found.timing))
    return MeasuredLaunches(table, found.gpu, measured, at_measured, own, found.timing)


def taken(record: Any, places: np.ndarray) -> Any:
    """The launches at ``places`` of a record of arrays."""
    return jax.tree.map(lambda x: x[places], record)

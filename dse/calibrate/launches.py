"""Measured rows as launches on a GPU: the kernel that runs, its timing and its activity."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.power.activity import Activity, activity
from dse.timing.amali import Amali
from dse.timing.chosen import fastest_kernels
from dse.timing.timing import Timing, TimingModel
from dse.workload.measured_operator import family, operator_on


class Rows(NamedTuple):
    """Measured launches of one GPU: the table, their activities and timings (rows,), at the measured time and at the
    model's own."""

    table: pd.DataFrame
    gpu: Gpu
    measured: Activity
    measured_timing: Timing
    own: Activity
    own_timing: Timing


def load_rows(
    table: pd.DataFrame, sheet: GpuSheet, skipped: dict[str, int], model: TimingModel | None = None
) -> Rows | None:
    """Rows of a measured table on a GPU: the candidate that the timing ``model`` (None: AMALI uncalibrated) finds
    fastest stands for each.

    Rows without a kernel on this GPU count in ``skipped``; None where no row is left.
    """
    gpu = sheet.record()
    made, operators = [], []
    for place, row in enumerate(table.itertuples()):
        try:
            found = operator_on(gpu, row)
        except InputError as error:
            skipped[f"{row.op}: {error}"] = skipped.get(f"{row.op}: {error}", 0) + 1
            continue
        made.append(place)
        operators.append(found)
    if not made:
        return None
    table = table.iloc[made].reset_index(drop=True)
    kernels, timing = fastest_kernels(model or Amali(), operators, gpu)
    table["family"] = [family(row) for row in table.itertuples()]
    at_measured = timing.stretched(jnp.asarray(table["latency_us"].to_numpy()) / timing.microseconds)
    counted = jax.vmap(lambda kernel, timing: activity(kernel, timing, gpu))
    return Rows(table, gpu, counted(kernels, at_measured), at_measured, counted(kernels, timing), timing)


def taken(record: Any, places: np.ndarray) -> Any:
    """The launches at ``places`` of a record of arrays."""
    return jax.tree.map(lambda x: x[places], record)

"""Measured rows as launches whose watts can be told: the activity of the kernel that runs, on the values it ran on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.constants import constant
from dse.base.skipped_rows import Skipped
from dse.evaluate.steps import activities
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.measured.protocol import protocol_of
from dse.measured.row_kernels import load_launches
from dse.measured.row_operator import family
from dse.power.activity import Activity
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel

UNFILLED_ZEROS = constant("unfilled_cache_zeros")
"""Share of the products with keys and values that nobody wrote which draw what zeros do [1]."""


class MeasuredLaunches(NamedTuple):
    """Measured launches of one GPU: the table, their activities and timings (rows,), at the measured time and at the
    model's own.

    The table tells ``family``, and ``unfilled``: whether keys and values were those of a cache that nobody filled.
    """

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
    unfilled = [protocol_of(str(getattr(row, "source", ""))).reads_unfilled(row) for row in found.frame.itertuples()]
    families = [family(row) for row in found.frame.itertuples()]
    table = found.frame.assign(family=families, unfilled=unfilled)
    at_measured = found.timing.stretched(jnp.asarray(table["latency_us"].to_numpy()) / found.timing.microseconds)
    zeros = jnp.asarray(UNFILLED_ZEROS * np.asarray(unfilled, float))
    measured, own = (
        _over_zeros(activities(found.kernels, timing, found.gpu), zeros) for timing in (at_measured, found.timing)
    )
    return MeasuredLaunches(table, found.gpu, measured, at_measured, own, found.timing)


def _over_zeros(counts: Activity, share: Array) -> Activity:
    """Activities of which a ``share`` (rows,) of attention's products is of zeros, as padding is [1]."""
    zeros = share * counts.softmax_fma
    return counts._replace(softmax_fma=counts.softmax_fma - zeros, padding_fma=counts.padding_fma + zeros)


def taken(record: Any, places: np.ndarray) -> Any:
    """The launches at ``places`` of a record of arrays."""
    return jax.tree.map(lambda x: x[places], record)

"""Measured rows as launches whose watts can be told: the activity of the kernel that runs, on the values it ran on."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.constants import constant
from dse.base.skipped_rows import Skipped
from dse.evaluate.steps import activities
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.measured.protocol import protocol_of
from dse.measured.row_kernels import load_launches
from dse.measured.row_operator import family
from dse.power.activity import Activity, with_still_operands
from dse.timing.amali import Amali
from dse.timing.timing import Timing, TimingModel

UNFILLED, ALIKE = "unfilled cache", "all alike"
"""Keys and values of a cache that nobody filled; one number in weights, activations and cache. Of others nothing is
known, or they are numbers that were drawn."""

UNFILLED_ZEROS = constant("unfilled_cache_zeros")
"""Share of the products with keys and values that nobody wrote which draw what zeros do [1]."""

STILL = {"": (0.0, 0.0), UNFILLED: (UNFILLED_ZEROS, 0.0), ALIKE: (1.0, 1.0)}
"""Operands -> shares of attention's and of other products whose operands do not change [1]."""


class MeasuredLaunches(NamedTuple):
    """Measured launches of one GPU: the table, their activities and timings (rows,), at the measured time and at the
    model's own.

    The table tells ``family`` and what is known of its ``operands`` (:func:`with_operands`).
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
    table = with_operands(found.frame.assign(family=[family(row) for row in found.frame.itertuples()]))
    at_measured = found.timing.stretched(jnp.asarray(table["latency_us"].to_numpy()) / found.timing.microseconds)
    attention, others = jnp.asarray(still_shares(table)).T
    measured, own = (
        with_still_operands(activities(found.kernels, timing, found.gpu), attention, others)
        for timing in (at_measured, found.timing)
    )
    return MeasuredLaunches(table, found.gpu, measured, at_measured, own, found.timing)


def with_operands(table: pd.DataFrame) -> pd.DataFrame:
    """Return measured rows with the column ``operands``: a name of STILL, by how their source measures."""
    ways = ((row, protocol_of(str(getattr(row, "source", "")))) for row in table.itertuples())
    return table.assign(
        operands=[ALIKE if way.of_constants(row) else UNFILLED if way.reads_unfilled(row) else "" for row, way in ways]
    )


def still_shares(table: pd.DataFrame) -> np.ndarray:
    """Return the shares of attention's and of other products whose operands do not change, (rows, 2) [1], of rows of
    :func:`with_operands`."""
    return np.array([STILL[operands] for operands in table["operands"]], float).reshape(-1, 2)


def taken(record: Any, places: np.ndarray) -> Any:
    """The launches at ``places`` of a record of arrays."""
    return jax.tree.map(lambda x: x[places], record)

"""Board power of measured launches, as the board model predicts it within the board's limit."""

import numpy as np
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.base.constants import constant
from dse.evaluate.steps import activities, settle_alone
from dse.hardware.gpu import Gpu
from dse.measured.power_rows import MeasuredLaunches
from dse.measured.row_kernels import TimedLaunches
from dse.power.activity import Activity
from dse.power.board import BoardPower
from dse.timing.timing import Timing

SETTLED_US = constant("settled_power_us")
"""Runs shorter than this hold mostly the power of what ran before them (100 ms polls of loops of 0.3 to 1 s)."""


def predicted(model: BoardPower, counts: Activity, timing: Timing, gpu: Gpu) -> tuple[Array, Array]:
    """Watts, and time over the given time, of a batch of launches."""
    point = settle_alone(model, counts, timing, gpu)
    return point.power.watts, point.timing.nanoseconds / timing.nanoseconds


def watts_of(model: BoardPower, rows: MeasuredLaunches, own_time: bool = False) -> np.ndarray:
    """Predicted watts at the measured time, or at the timing model's own."""
    counts, timing = (rows.own, rows.own_timing) if own_time else (rows.measured, rows.measured_timing)
    return np.asarray(_predicted(model, counts, timing, rows.gpu))


def launch_watts(model: BoardPower, launches: TimedLaunches) -> np.ndarray:
    """Predicted watts of launches at the timing model's own time."""
    counts = activities(launches.kernels, launches.timing, launches.gpu)
    return np.asarray(_predicted(model, counts, launches.timing, launches.gpu), dtype=float)


@quick_filter_jit
def _predicted(model: BoardPower, counts: Activity, timing: Timing, gpu: Gpu) -> Array:
    return predicted(model, counts, timing, gpu)[0]

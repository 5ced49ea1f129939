"""Board power of measured rows that are several kernels in turn: the mean over their kernels."""

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped, counted
from dse.measured.compound.rows import CompoundRows, compound_rows
from dse.measured.device_models import DeviceModel
from dse.measured.power_rows import still_shares, with_operands
from dse.measured.row_operator import none_runs
from dse.measured.step_watts import StepBoard
from dse.measured.timed_rows import can_run, fastest_us
from dse.power.board import BoardPower


def compound_watts(
    frame: pd.DataFrame, used: DeviceModel, power: BoardPower, own_time: bool, skipped: Skipped
) -> list[pd.DataFrame]:
    """Return the rows of one device with ``predicted_w`` and ``operands``, by who measured them; others count in
    ``skipped``.

    ``own_time``: as long as the timing model says, else all kernels are stretched alike to the measured time.
    """
    parts = compound_rows(frame, used.sheet, None, skipped)
    return [_with_watts(rows, used, power, own_time, skipped) for rows in parts]


def _with_watts(
    rows: CompoundRows, used: DeviceModel, power: BoardPower, own_time: bool, skipped: Skipped
) -> pd.DataFrame:
    each, places = fastest_us(used.model, rows.operators)
    kernels = np.array([step.repeats @ each[step.places] for step in rows.steps])
    runs = can_run(kernels)
    skipped.update(counted(none_runs(row, used.sheet.title) for row in rows.table[~runs].itertuples()))
    board = StepBoard(rows.operators, places, used.model, power, used.sheet.record())
    stretch = np.ones(len(kernels)) if own_time else rows.table["latency_us"].to_numpy() / kernels
    kept = [int(i) for i in np.flatnonzero(runs)]
    table = with_operands(rows.table)
    still = still_shares(table)
    energy = [board.energy(rows.steps[i], float(stretch[i]), still=tuple(still[i])) for i in kept]
    return table[runs].assign(predicted_w=[joules / seconds for joules, seconds in energy])

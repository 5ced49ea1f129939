"""Rows to learn watts from: loads of a board, and what it drew, of launches and of runs of whole networks."""

import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, why_skipped
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import launch_watts
from dse.measured.device_models import DeviceModel
from dse.measured.network_runs.kinds import RUNS
from dse.measured.network_runs.power import DeviceWatts, device_watts
from dse.measured.row_kernels import load_launches
from dse.power.board import BoardPower
from dse.prediction.features import DEMANDS
from dse.prediction.learning_rows import LearningRows, joined, load_learning_rows
from dse.prediction.loads import demand_ns, loads
from dse.prediction.quantities import POWER
from dse.prediction.table import MeasuredTable
from dse.timing.timing import TimingModel
from dse.validation.power import FITTED_ON

RUNS_FITTED_ON = ("a100_sxm_40gb", "a100_sxm_80gb", "h100_sxm")
"""Boards whose runs of networks the shipped coefficients were fitted to (experiments/019_whole_networks)."""


def load_rows(measured: MeasuredTable, presets: list[str], model: TimingModel) -> tuple[LearningRows, Skipped]:
    """Return the rows of some devices of a table in its quantity, and how many have no kernel, by reason.

    Raises InputError where none is left.
    """
    of_quantity = _watts if measured.quantity is POWER else load_learning_rows
    return of_quantity(measured, presets, model)


def seen_by_power_model(op: str, preset: str) -> bool:
    """Return whether the shipped coefficients of the power model were fitted to such rows of a board."""
    return preset in (RUNS_FITTED_ON if op in RUNS else FITTED_ON)


def _watts(measured: MeasuredTable, presets: list[str], model: TimingModel) -> tuple[LearningRows, Skipped]:
    power, skipped, parts = BoardPower.from_table(), Skipped(), []
    for preset in presets:
        used, frame = DeviceModel(load_sheet(preset), model, None), measured.of(preset)
        runs = frame["op"].isin(RUNS)
        launches = load_launches(frame[~runs], used.sheet, model, skipped) if not runs.all() else None
        if launches is not None:
            busy = demand_ns(launches.kernels, launches.gpu)
            parts.append(_rows(launches.frame, busy, launch_watts(power, launches), used))
        passes = device_watts(frame[runs], used, power, True, skipped) if runs.any() else None
        if passes is not None:
            parts.append(_rows(passes.table, _busy_ns(passes, used), passes.table["predicted_w"].to_numpy(float), used))
    if not parts:
        raise InputError(f"{measured.path}: nothing to learn from: {why_skipped(skipped)}")
    return joined(parts), skipped


def _busy_ns(passes: DeviceWatts, used: DeviceModel) -> np.ndarray:
    """Return the demands of whole runs (runs, demands) [ns]: those of their launches, added up."""
    each = demand_ns(passes.kernels, used.sheet.record())
    return np.stack(
        [
            np.sum([s.runs * (engine.turn if s.others else 1.0) * (s.repeats @ each[s.places]) for s in steps], axis=0)
            for steps, engine in zip(passes.steps, passes.engines, strict=True)
        ]
    )


def _rows(frame: pd.DataFrame, busy_ns: np.ndarray, watts: np.ndarray, used: DeviceModel) -> LearningRows:
    x = np.column_stack([loads(busy_ns, used.sheet.numbers()["tdp_w"]), watts])
    names = list(DEMANDS)
    memory = busy_ns[:, [names.index(name) for name in ("cold", "warm", "written")]].sum(axis=1)
    arithmetic = busy_ns[:, names.index("arithmetic")]
    frame = frame.reset_index(drop=True)
    return LearningRows(frame, x, frame["power_w"].to_numpy(float), arithmetic, memory, np.ones(len(frame)), POWER)

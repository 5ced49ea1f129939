"""Board power of measured runs of whole networks: the mean over their kernels and over the waits for their host."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.measured.device_models import DeviceModel
from dse.measured.network_runs.rows import network_rows, predicted_runs
from dse.measured.network_runs.steps import Step
from dse.measured.step_watts import StepBoard
from dse.measured.timed_rows import can_run
from dse.power.board import BoardPower
from dse.workload.kernel import Kernel
from dse.workload.serving_engine import Engine


def run_watts(
    frame: pd.DataFrame, models: Mapping[str, DeviceModel], model: BoardPower, own_time: bool, skipped: Skipped
) -> pd.DataFrame:
    """Return the runs of whole networks of a table with ``predicted_w``; others count in ``skipped``.

    ``frame``: with ``tp``; ``models``: what times the kernels of each of its devices. ``own_time``: as long as the
    timing model and the engine say, else kernels and waits are stretched alike to the measured time.
    """
    found = [
        device_watts(mine, models[str(device)], model, own_time, skipped)
        for device, mine in frame.groupby("device", sort=True)
    ]
    parts = [device.table for device in found if device is not None]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


class DeviceWatts(NamedTuple):
    """The runs of one device that its kernels can carry out: ``table`` with ``predicted_w``; their ``steps`` and
    ``engines``, and the kernel of each distinct operator that these name by its place."""

    table: pd.DataFrame
    steps: tuple[tuple[Step, ...], ...]
    engines: tuple[Engine, ...]
    kernels: Kernel


def device_watts(
    frame: pd.DataFrame, used: DeviceModel, model: BoardPower, own_time: bool, skipped: Skipped
) -> DeviceWatts | None:
    """Return the runs of one device as :func:`run_watts` does, None where none is left."""
    rows = network_rows(frame, used.sheet, skipped)
    if rows is None:
        return None
    table, places = predicted_runs(used.model, rows)
    runs = can_run(table["predicted_us"])
    if not runs.all():
        skipped[f"{used.sheet.title} runs none of the kernels of a run"] += int((~runs).sum())
    board = StepBoard(rows.operators, places, used.model, model, used.sheet.record())
    ratio = np.ones(len(table)) if own_time else (table["latency_us"] / table["predicted_us"]).to_numpy()
    kept = [int(i) for i in np.flatnonzero(runs)]
    watts = [_watts(board, rows.steps[i], rows.engines[i], float(ratio[i])) for i in kept]
    return DeviceWatts(
        table[runs].assign(predicted_w=watts),
        tuple(rows.steps[i] for i in kept),
        tuple(rows.engines[i] for i in kept),
        jax.tree.map(lambda x: x[places], rows.operators.kernels),
    )


def _watts(board: StepBoard, steps: tuple[Step, ...], engine: Engine, stretch: float) -> float:
    """Mean watts of a run that takes ``stretch`` times as long as predicted: energy over time of all its steps."""
    hosts = [engine.host(float(s.repeats.sum()), s.reductions, s.requests, s.prompts) for s in steps]
    waits = [(host.overlapped_us, host.waits_us) for host in hosts]
    energy = [board.energy(step, stretch, wait) for step, wait in zip(steps, waits, strict=True)]
    runs = [s.runs * (engine.turn if s.others else 1.0) for s in steps]
    joules, seconds = np.asarray(runs) @ np.asarray(energy)
    return float(joules / seconds)

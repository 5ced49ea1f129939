"""Board power of measured runs of whole networks: the mean over their kernels and over the waits for their host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.base.skipped_rows import Skipped
from dse.evaluate.shared_programs import timings_of_rows
from dse.evaluate.steps import activities, settle_phase, unlimited_power
from dse.hardware.gpu import Gpu
from dse.measured.device_models import DeviceModel
from dse.measured.network_runs.rows import TIMED_TOGETHER, NetworkRows, network_rows, predicted_runs
from dse.measured.network_runs.steps import Step
from dse.measured.timed_rows import can_run
from dse.power.board import BoardPower
from dse.timing.timing import Timing, TimingModel
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
    board = _Board(rows, places, used.model, model, used.sheet.record())
    ratio = np.ones(len(table)) if own_time else (table["latency_us"] / table["predicted_us"]).to_numpy()
    kept = [int(i) for i in np.flatnonzero(runs)]
    watts = [board.watts(i, float(ratio[i])) for i in kept]
    return DeviceWatts(
        table[runs].assign(predicted_w=watts),
        tuple(rows.steps[i] for i in kept),
        tuple(rows.engines[i] for i in kept),
        jax.tree.map(lambda x: x[places], rows.operators.kernels),
    )


@dataclass(frozen=True)
class _Board:
    """The board under the runs of one GPU; ``places`` of the fastest kernel of each distinct operator."""

    rows: NetworkRows
    places: np.ndarray
    timing: TimingModel
    power: BoardPower
    gpu: Gpu

    def watts(self, row: int, stretch: float) -> float:
        """Mean watts of a run that takes ``stretch`` times as long as predicted: energy over time of all its steps."""
        engine = self.rows.engines[row]
        energy = [self._step(step, engine, stretch) for step in self.rows.steps[row]]
        runs = [s.runs * (engine.turn if s.others else 1.0) for s in self.rows.steps[row]]
        joules, seconds = np.asarray(runs) @ np.asarray(energy)
        return float(joules / seconds)

    def _step(self, step: Step, engine: Engine, stretch: float) -> tuple[float, float]:
        """Energy [J] and time [s] of one pass."""
        host = engine.host(float(step.repeats.sum()), step.reductions, step.requests, step.prompts)
        fill = -len(step.places) % TIMED_TOGETHER
        used, repeats = np.pad(step.places, (0, fill)), np.pad(step.repeats, (0, fill))
        kernels = jax.tree.map(lambda x: x[self.places[used]], self.rows.operators.kernels)
        timing = timings_of_rows(self.timing, kernels, jax.tree.map(lambda x: x[used], self.rows.operators.gpus))
        waits = (jnp.asarray(stretch * host.overlapped_us), jnp.asarray(stretch * host.waits_us))
        found = _settled(
            self.power, kernels, timing, jnp.asarray(repeats, float), self.gpu, jnp.asarray(stretch), waits
        )
        return float(found[0]), float(found[1]) * 1e-9


@quick_filter_jit
def _settled(
    power: BoardPower,
    kernels: Kernel,
    timing: Timing,
    repeats: Array,
    gpu: Gpu,
    stretch: Array,
    host: tuple[Array, Array],
) -> tuple[Array, Array]:
    """Energy [J] and time [ns] of launches (launches,) one after another where the board settles."""
    longer = timing.stretched(stretch)
    watts = unlimited_power(power, activities(kernels, longer, gpu), gpu)
    phase = settle_phase(power, True, longer, watts, (repeats, host), gpu)
    return phase.joules, phase.nanoseconds

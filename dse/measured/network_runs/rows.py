"""Measured runs of whole networks: the steps that ran, their kernels' time, and what the engine's host adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.evaluate.shared_programs import timings_of_rows
from dse.hardware.presets import GpuSheet
from dse.measured.network_runs.steps import Step, Steps
from dse.measured.throttling import limited_times, pass_slowdowns, watts_ends
from dse.measured.timed_rows import NEVER_US, TimedRows, can_run, fastest_us
from dse.timing.timing import TimingModel
from dse.workload.serving_engine import COSTS, Engine, host_of

TIMED_TOGETHER = 32
"""Operators of a run that are timed together are filled up to a multiple of this, for few compiled programs."""


@dataclass(frozen=True)
class NetworkRows:
    """Runs of whole networks on one GPU.

    ``table``: the rows, with ``family``, ``engine`` and what the data sheet says (:meth:`Steps.sheet_us`);
    ``operators``: the distinct operators of all their ``steps`` (a tuple a row), one a row.
    """

    table: pd.DataFrame
    engines: tuple[Engine, ...]
    operators: TimedRows
    steps: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Passes:
    """Every step of every row, arrays of shape (steps,): the ``row`` it belongs to and what decides its time."""

    row: np.ndarray
    gpu_us: np.ndarray
    launches: np.ndarray
    requests: np.ndarray
    prompts: np.ndarray
    reductions: np.ndarray
    runs: np.ndarray
    others: np.ndarray

    def total_us(self, costs: Mapping[str, Any]) -> Any:
        """Return each step's time in its row [us] with an engine's ``costs`` (COSTS, scalars or of shape (steps,))."""
        host = host_of(costs, self.launches, self.reductions, self.requests, self.prompts)
        turn = 1.0 + self.others * (costs["turn"] - 1.0)
        return self.runs * turn * (self.gpu_us + host.idle_us(self.gpu_us))


def network_rows(
    frame: pd.DataFrame, sheet: GpuSheet, skipped: Skipped, engine: Engine | None = None
) -> NetworkRows | None:
    """Return the runs of ``frame`` on a GPU with their steps, None where none is left; others count in ``skipped``.

    ``engine`` that all of them ran; None: by their notes.
    """
    made = Steps(sheet, engine)
    kept, columns, engines, steps = [], [], [], []
    for i, row in enumerate(frame.itertuples()):
        try:
            ran, passes = made.run(row)
        except InputError as error:
            skipped[str(error)] += 1
            continue
        kept.append(i)
        engines.append(ran)
        steps.append(passes)
        columns.append({"family": f"{row.group}_{row.tp:g}", "engine": ran.name, **made.sheet_us(passes)})
    if not kept:
        return None
    table = frame.iloc[kept].reset_index(drop=True).assign(**pd.DataFrame(columns))
    return NetworkRows(table, tuple(engines), made.operators(), tuple(steps))


def passes_of(model: TimingModel, rows: NetworkRows) -> tuple[Passes, np.ndarray]:
    """Return every step of the rows, its kernels in the board's power limit, and each operator's fastest candidate."""
    operator_us, places = fastest_us(model, rows.operators)
    return _passes(rows, operator_us, _slower(model, rows, places)), places


def _passes(rows: NetworkRows, operator_us: np.ndarray, slower: np.ndarray) -> Passes:
    """Every step of the rows; ``slower`` (steps,): how many times as long as at the asked clock its kernels take."""
    columns = zip(
        *(
            (
                i,
                times * float(s.repeats @ operator_us[s.places]),
                float(s.repeats.sum()),
                s.requests,
                s.prompts,
                s.reductions,
                s.runs,
                s.others,
            )
            for (i, s), times in zip(_steps(rows), slower, strict=True)
        ),
        strict=True,
    )
    return Passes(*(np.asarray(column) for column in columns))


def _steps(rows: NetworkRows) -> list[tuple[int, Step]]:
    """All steps, each with the row that it belongs to."""
    return [(i, step) for i, steps in enumerate(rows.steps) for step in steps]


def _slower(model: TimingModel, rows: NetworkRows, places: np.ndarray, drawn: float = 1.0) -> np.ndarray:
    """How many times as long each step's kernels take in the limit of boards that draw ``drawn`` times the predicted
    watts."""
    kernels = jax.tree.map(lambda x: x[places], rows.operators.kernels)
    steps = [(step.places, step.repeats) for _, step in _steps(rows)]
    return pass_slowdowns(model, kernels, rows.operators.gpus, steps, drawn)


def predicted_runs(model: TimingModel, rows: NetworkRows) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows with ``predicted_us`` and ``overhead_us``, what the host adds [us]; and the fastest candidates.

    A run with an operator that no kernel of the GPU can carry out takes NEVER_US.
    """
    operator_us, places = fastest_us(model, rows.operators)
    total, kernels = _run_us(rows, _passes(rows, operator_us, _slower(model, rows, places)))
    names = rows.table["engine"]
    found = rows.table.assign(
        predicted_us=total,
        overhead_us=total - kernels,
        shadow_us=0.0,
        kernel=names,
        implementation=names,
        harness=names,
    )
    return found, places


def runs_at_watts_ends(model: TimingModel, rows: NetworkRows) -> pd.DataFrame:
    """Return what :func:`dse.measured.throttling.limited_times` tells of each run."""
    operator_us, places = fastest_us(model, rows.operators)
    slower = [np.ones(len(_steps(rows))), *(_slower(model, rows, places, drawn) for drawn in watts_ends())]
    (_, asked), *ends = (_run_us(rows, _passes(rows, operator_us, one)) for one in slower)
    return limited_times(*(total for total, _ in ends), *(kernels / asked for _, kernels in ends))


def _run_us(rows: NetworkRows, passes: Passes) -> tuple[np.ndarray, np.ndarray]:
    """The time of each row, and that of its kernels alone [us]."""
    costs = {name: np.array([getattr(e, name) for e in rows.engines])[passes.row] for name in COSTS}
    total = np.bincount(passes.row, passes.total_us(costs))
    kernels = np.bincount(passes.row, passes.total_us(dict.fromkeys(COSTS, 0.0) | {"turn": costs["turn"]}))
    return np.where(can_run(kernels), total, NEVER_US), kernels


def run_stack(model: TimingModel, rows: NetworkRows, places: np.ndarray, row: int) -> dict[str, float]:
    """Return the kernels' time of one run at the asked clock by cause [us], causes that cost nothing left out."""
    turn = rows.engines[row].turn
    every = [(s.places, s.repeats * s.runs * (turn if s.others else 1.0)) for s in rows.steps[row]]
    used, weights = (np.concatenate(x) for x in zip(*every, strict=True))
    used, weights = (np.pad(x, (0, -len(x) % TIMED_TOGETHER)) for x in (used, weights))
    kernels = jax.tree.map(lambda x: x[places[used]], rows.operators.kernels)
    timing = timings_of_rows(model, kernels, jax.tree.map(lambda x: x[used], rows.operators.gpus))
    stack = {cause: np.asarray(cycles / timing.clock_ghz) / 1e3 for cause, cycles in timing.stack().items()}
    return {cause: float(weights @ us) for cause, us in stack.items() if weights @ us > 0}

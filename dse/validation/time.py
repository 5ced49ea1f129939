"""A timing model against a measured table: errors by device, operator, data type and regime, beside two rooflines."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.base.drawn import Drawn
from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.measured.columns import evaluated
from dse.measured.compound.rows import COMPOUND, CompoundRows, compound_rows, parts_us, predicted_compound
from dse.measured.coverage import uncovered
from dse.measured.device_models import DeviceModel, Predictor, device_models, device_names, power_limits, predictors
from dse.measured.layer_rows import NVLINK, as_operators
from dse.measured.network_runs.kinds import RUNS, WHY_NOT
from dse.measured.network_runs.rows import network_rows, predicted_runs, run_stack, runs_at_watts_ends
from dse.measured.protocol import Protocol, find_protocol
from dse.measured.quantisation_time import quantising_us
from dse.measured.row_operator import none_runs
from dse.measured.row_shape import ALL_REDUCE, notes_of_masks
from dse.measured.table import OperatorTable, notes_of_gpus, read_times, tensor_parallel
from dse.measured.throttling import limited_times, watts_ends
from dse.measured.timed_rows import TimedRows, blocks, can_run, fastest_us
from dse.validation.baselines import with_rooflines
from dse.validation.group_errors import group_errors, with_intervals
from dse.validation.noise_floor import noise_percent
from dse.validation.notes import notes_of_units, validation_notes
from dse.validation.worst_rows import QUANTISING, PredictedRows, binding_causes, row_stacks, with_limit, worst_rows
from dse.workload.implementation import IMPLEMENTATIONS
from dse.workload.serving_engine import Engine, find_engine
from dse.workload.serving_engine import interval_of as interval_of_run


@dataclass(frozen=True)
class TimeValidation(Drawn):
    """Answer of a validation: ``document`` as JSON has it, what should be said beside it, and what a page shows.

    ``rows``: the predicted rows with the table's columns and those of ``data/schema/evaluated.csv``. ``doubts``: those
    of the notes, their first, without which no error can be read.
    """

    document: dict[str, Any]
    notes: tuple[str, ...]
    table: str
    rows: pd.DataFrame
    predictors: tuple[Predictor, ...]
    doubts: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the predicted rows."""
        return self.rows


def validate_time(
    table: Path,
    timing: str = "amali",
    gpu: str | None = None,
    harness: str | None = None,
    calibration: str | None = None,
    engine: str | None = None,
    bindings: bool = False,
) -> TimeValidation:
    """Return the errors of a timing model on a measured table; raises InputError when no row can be predicted.

    ``gpu``: a preset or TOML for devices without a preset, or for all rows where every device has one. ``harness``:
    how everything was measured (None: by the column ``source``). ``calibration``: None takes the device's shipped
    one, else ``shared``. ``engine``: that all runs of whole networks ran (None: by their notes). Raises
    InputError for either where no row heeds it. ``roofline_mape`` is the data sheet's, ``roofline3_mape`` that of
    overhead and two efficiencies fitted to the device's other families
    (:func:`dse.validation.baselines.with_rooflines`); both and ``mape`` in percent, ``log_ratio`` mean
    |log(predicted/measured)|, ``noise_floor`` the mean deviation of one repeat in percent, None where the table holds
    no repeats (and ``roofline3_mape`` where three of its rows or fewer are predicted). ``bindings``: whether each row
    is to tell the cause that takes most of it (``binding``), which takes a second for some hundred rows.
    """
    measured = read_times(Path(table))
    _refuse_unused(measured, harness, engine)
    noise, left_out = noise_percent(measured.frame, measured.path)
    frame, models, skipped = covered_rows(measured, timing, gpu, calibration, noise=noise)
    way = find_protocol(harness) if harness else None
    served = find_engine(engine, "--engine") if engine else None
    parts = predicted_parts(frame, models, way, served, skipped)
    rows = pd.concat([p.rows for p in parts], ignore_index=True) if parts else pd.DataFrame()
    runs = can_run(rows["predicted_us"]) if parts else np.zeros(0, bool)
    skipped += counted(none_runs(row, models[str(row.device)].sheet.title) for row in rows[~runs].itertuples())
    if not runs.any():
        why = "; ".join((why_skipped(skipped), *notes_of_gpus(measured)))
        raise InputError(f"{table}: no row can be predicted: {why}")
    worst = worst_rows(rows, runs, parts)
    rows = rows.assign(binding=binding_causes(parts) if bindings else "")
    rows = evaluated(with_intervals(with_rooflines(rows[runs].reset_index(drop=True)), models))
    found = predictors(rows, models)
    doubts = notes_of_units(rows)
    notes = [*doubts, *validation_notes(rows, models, found, harness, served, measured.sha256)]
    notes += [*notes_of_masks(rows), *notes_of_gpus(measured), *left_out]
    document = {
        "table": measured.path,
        "table_sha256": measured.sha256,
        "quantity": "time",
        "model": timing,
        "calibrations": {one.device: one.calibration for one in found},
        "notes": notes,
        "doubts": doubts,
        "groups": group_errors(rows),
        "worst": worst,
        "rows_skipped": skipped,
    }
    return TimeValidation(document, tuple(notes), str(table), rows, found, tuple(doubts))


def covered_rows(
    measured: OperatorTable, timing: str, gpu: str | None, calibration: str | None, **columns: Any
) -> tuple[pd.DataFrame, dict[str, DeviceModel], Skipped]:
    """Return the rows of a table that can be predicted, with ``columns`` beside its own, the models of its devices, and
    how many rows are left out, by reason.

    ``gpu`` and ``calibration`` as for :func:`validate_time`.
    """
    tp, device = tensor_parallel(measured), device_names(measured.frame)
    frame = as_operators(measured.frame.assign(tp=tp, device=device, **columns))
    models, unknown = device_models(frame, timing, gpu, calibration)
    reason = uncovered(frame, unknown, power_limits(models))
    return frame[reason == ""], models, measured.skipped + counted(reason)


def _refuse_unused(measured: OperatorTable, harness: str | None, engine: str | None) -> None:
    """Refuse options that no row of a table heeds."""
    path, runs = measured.path, measured.frame["op"].isin((*RUNS, *WHY_NOT))
    if engine and not runs.any():
        raise InputError(
            f"--engine: {path} has no run of a whole network ({', '.join(RUNS)}), only kernels, which no "
            "engine runs; leave the option out"
        )
    if harness and runs.all():
        raise InputError(
            f"--harness: {path} has only runs of whole networks, which take an engine; leave the option "
            "out, or give --engine"
        )


def predicted_parts(
    frame: pd.DataFrame,
    models: Mapping[str, DeviceModel],
    way: Protocol | None,
    engine: Engine | None,
    skipped: Skipped,
) -> list[PredictedRows]:
    """The rows of every device with what is predicted, kernels and whole runs apart; those without count in
    ``skipped``."""
    parts = []
    for device, mine in frame.groupby("device", sort=True):
        used, whole, several = models[str(device)], mine["op"].isin(RUNS), mine["op"].isin(COMPOUND)
        alone = mine[~whole & ~several]
        parts += [_predicted(block, used) for block in blocks(alone, {str(device): used.sheet}, way, skipped)]
        parts += [_predicted_compound(r, used) for r in compound_rows(mine[several], used.sheet, way, skipped)]
        parts += _predicted_runs(mine[whole], used, skipped, engine)
    return parts


def _predicted(block: TimedRows, used: DeviceModel) -> PredictedRows:
    """A block's rows with what is predicted, and the stacks of the chosen kernels."""
    time, places = fastest_us(used.model, block)
    chosen = block.take(places[:, None], used.model)
    quantising = quantising_us(used.model, block)
    predicted = block.read_us(time * chosen.slower) + quantising
    slower = [chosen.slowdowns(used.model, drawn) for drawn in watts_ends()]
    limits = limited_times(*(block.read_us(time * one) + quantising for one in slower), *slower)
    labels = [block.labels[i] for i in chosen.places[:, 0]]
    numbers = np.asarray(chosen.kernels.implementation)[:, 0].astype(int)
    names = [
        NVLINK if op == ALL_REDUCE else IMPLEMENTATIONS[i] for i, op in zip(numbers, block.table["op"], strict=True)
    ]

    def stacks(places: np.ndarray) -> list[dict[str, float]]:
        kernels = jax.tree.map(lambda x: np.asarray(x)[places, 0], chosen.kernels)
        found = row_stacks(used.model, kernels, jax.tree.map(lambda x: np.asarray(x)[places], chosen.gpus))
        more = [{QUANTISING: float(us)} if us > 0 else {} for us in quantising[places]]
        return [with_limit(stack, s) | own for stack, own, s in zip(found, more, chosen.slower[places], strict=True)]

    us = {"predicted_us": predicted, "sheet_us": np.nan}  # a run alone has a roofline of its own
    return PredictedRows(block.table.assign(**us, **limits, kernel=labels, implementation=names), stacks)


def _predicted_compound(rows: CompoundRows, used: DeviceModel) -> PredictedRows:
    """Rows of several kernels with what is predicted; their stacks are the kernels' times."""
    table, each = predicted_compound(used.model, rows)
    us = table["predicted_us"].to_numpy()
    table = table.assign(throttles="", low_power_us=us, high_power_us=us)  # their kernels have no limit

    def stacks(places: np.ndarray) -> list[dict[str, float]]:
        return [dict(parts_us(rows, each, int(i))) for i in places]

    return PredictedRows(table, stacks)


def _predicted_runs(
    frame: pd.DataFrame, used: DeviceModel, skipped: Skipped, engine: Engine | None
) -> list[PredictedRows]:
    """Runs of whole networks on one GPU with what is predicted, and their interval's ends ``low`` and ``high``."""
    rows = network_rows(frame, used.sheet, skipped, engine) if len(frame) else None
    if rows is None:
        return []
    table, places = predicted_runs(used.model, rows)
    ends = [interval_of_run(ran, op) for ran, op in zip(rows.engines, table["op"], strict=True)]
    table[["low", "high"]] = np.array(ends)
    table = table.assign(**runs_at_watts_ends(used.model, rows))

    def stacks(some: np.ndarray) -> list[dict[str, float]]:
        kernels = (table["predicted_us"] - table["overhead_us"]).to_numpy()
        found = [run_stack(used.model, rows, places, int(i)) for i in some]
        return [with_limit(stack, kernels[i] / sum(stack.values())) for i, stack in zip(some, found, strict=True)]

    return [PredictedRows(table, stacks)]

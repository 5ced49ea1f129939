"""A timing model against a measured table: errors by device, operator, data type and regime, beside two rooflines."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import jax
import numpy as np
import pandas as pd

from dse.calibrate.harness import find_harness
from dse.calibrate.launches import PRODUCTS
from dse.calibrate.measured import read_times, tensor_parallel
from dse.calibrate.network_rows import DTYPES as RUN_DTYPES
from dse.calibrate.network_rows import FORWARD, RUN_SHAPE, RUNS, WHY_NOT, network_rows, predicted_runs, run_stack
from dse.calibrate.noise_floor import group_noise, noise_percent
from dse.calibrate.regimes import by_regime, compute_bound, regime
from dse.calibrate.residuals import errors_of
from dse.calibrate.sheet_roofline import FOLDS, fitted_roofline
from dse.calibrate.timed import NEVER_US, TimedRows, best, blocks, timings
from dse.calibrate.vector_rows import VECTOR, VECTOR_DTYPES
from dse.errors import InputError
from dse.hardware.presets import GpuSheet, find_preset, gpu_index, load_sheet
from dse.timing.calibration import HELD_BACK, UNSEEN, TimingCalibration, calibration_for, load_timing_calibration
from dse.timing.models import timing_model
from dse.timing.timing import TimingModel
from dse.workload.engine import SHARED, Engine, engines, find_engine
from dse.workload.engine import interval_of as interval_of_run
from dse.workload.implementation import IMPLEMENTATIONS

ATTENTION = ("attn_prefill", "attn_decode")
DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("bf16", "fp16", "fp32", "fp8", "int8")), **dict.fromkeys(ATTENTION, ("bf16", "fp16")),
    **dict.fromkeys(VECTOR, VECTOR_DTYPES), **dict.fromkeys(RUNS, tuple(RUN_DTYPES)), FORWARD: ("fp32",),
}  # fmt: skip
SHAPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("m", "n", "k")),
    **dict.fromkeys(ATTENTION, ("batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv")),
    **dict.fromkeys(VECTOR, ("rows", "cols")), **dict.fromkeys(RUNS, RUN_SHAPE),
}  # fmt: skip
"""Operator -> the numbers that its shape needs, all above 0."""

LEAST_WATTS = 10.0
"""Watts a TFLOP/s of fp32 at boost, just below the least of the GPUs that fp32 products were fitted on (H100: 10.5)."""

WORST = 20

OTHER_UNIT = 100.0
"""Predicted over measured time of a whole network that no engine explains: times are in another unit."""


@dataclass(frozen=True)
class Predictor:
    """What predicted a device's rows: GPU, timing model, calibration and the GPUs that it was fitted on."""

    device: str
    rows: int
    gpu: str
    model: str
    calibration: str
    fitted_on: tuple[str, ...]
    fitted_on_it: bool


@dataclass(frozen=True)
class TimeValidation:
    """Answer of a validation: ``document`` as JSON has it, what should be said beside it, and what a page shows.

    ``rows``: the predicted rows with the table's columns, ``predicted_us``, both rooflines (``sheet_us``,
    ``three_us``) and ``noise`` [%].
    """

    document: dict[str, Any]
    notes: tuple[str, ...]
    table: str
    rows: pd.DataFrame
    predictors: tuple[Predictor, ...]


@dataclass(frozen=True)
class _Judge:
    """What predicts the rows of one device."""

    sheet: GpuSheet
    model: TimingModel
    calibration: TimingCalibration | None


@dataclass(frozen=True)
class _Judged:
    """Predicted rows, and the stacks of those at some places [us]."""

    rows: pd.DataFrame
    stacks: Callable[[np.ndarray], list[dict[str, float]]]


def validate_time(
    table: Path, timing: str = "amali", gpu: str | None = None, harness: str | None = None,
    calibration: str | None = None, engine: str | None = None,
) -> TimeValidation:  # fmt: skip
    """Return the errors of a timing model on a measured table; raises InputError when no row can be predicted.

    ``gpu``: a preset or TOML for devices without a preset, or for all rows where every device has one. ``harness``:
    how everything was measured (None: by the column ``source``). ``calibration``: None takes the device's shipped
    one, else ``shared``. ``engine``: that all runs of whole networks ran (None: by their notes). ``roofline_mape``
    is the data sheet's, ``roofline3_mape`` that of overhead and two efficiencies fitted to the device's other
    families; both and ``mape`` in percent, ``log_ratio`` mean |log(predicted/measured)|, ``noise_floor`` the mean
    deviation of one repeat in percent, None where the table holds no repeats (and ``roofline3_mape`` where it holds
    three rows or fewer).
    """
    measured = read_times(Path(table))
    noise = noise_percent(measured.frame, measured.path)
    frame = measured.frame.assign(noise=noise, tp=tensor_parallel(measured))
    way = find_harness(harness) if harness else None
    judges, unknown = _judges(frame, timing, gpu, calibration)
    served = find_engine(engine, "--engine") if engine else None
    reason = _uncovered(frame, unknown)
    skipped = measured.skipped | {str(k): int(n) for k, n in reason[reason != ""].value_counts().items()}
    parts = []
    for device, mine in frame[reason == ""].groupby("device", sort=True):
        judge, whole = judges[str(device)], mine["op"].isin(RUNS)
        parts += [_judged(block, judge) for block in blocks(mine[~whole], {str(device): judge.sheet}, way, skipped)]
        parts += _judged_runs(mine[whole], judge, skipped, served)
    rows = pd.concat([p.rows for p in parts], ignore_index=True) if parts else pd.DataFrame()
    runs = (rows["predicted_us"] < NEVER_US).to_numpy() if parts else np.zeros(0, bool)
    for (device, op, dtype), none in rows[~runs].groupby(["device", "op", "dtype"]) if parts else ():
        skipped[f"{judges[str(device)].sheet.title} runs none of the kernels of {op} {dtype}"] = len(none)
    if not runs.any():
        raise InputError(f"{table}: no row can be predicted: " + "; ".join(f"{r} ({n})" for r, n in skipped.items()))
    worst = _worst(rows, runs, parts)
    rows = _with_rooflines(rows[runs].reset_index(drop=True))
    document = {"groups": _groups(rows, judges), "worst": worst, "rows_skipped": skipped}
    predictors = _predictors(rows, judges)
    return TimeValidation(document, _notes(rows, judges, predictors, way is None), str(table), rows, predictors)


def _judges(
    frame: pd.DataFrame, timing: str, gpu: str | None, calibration: str | None
) -> tuple[dict[str, _Judge], dict[str, str]]:
    """What predicts each device, and why others cannot be predicted."""
    given = load_sheet(gpu) if gpu else None
    devices = [str(device) for device in frame["device"].unique()]
    without = [device for device in devices if find_preset(device) is None]
    judges, unknown = {}, {}
    for device in devices:
        if given is not None and (device in without or not without):
            judges[device] = _judge(given, timing, calibration)
        elif device in without:
            unknown[device] = f"device {device!r} has no preset; give one with --gpu"
        elif gpu_index()[str(find_preset(device))]["supported"] != "1":
            unknown[device] = f"device {device!r}: {gpu_index()[str(find_preset(device))]['note']}"
        else:
            judges[device] = _judge(load_sheet(device), timing, calibration)
    return judges, unknown


def _judge(sheet: GpuSheet, timing: str, calibration: str | None) -> _Judge:
    if timing != "amali":
        if calibration:
            raise InputError(f"--calibration: {timing} cannot be calibrated; give --timing amali")
        return _Judge(sheet, timing_model(timing, "--timing"), None)
    name = calibration or calibration_for(sheet.name)
    loaded = load_timing_calibration(name, "--calibration")
    return _Judge(sheet, loaded.model, loaded)


def _uncovered(frame: pd.DataFrame, unknown: Mapping[str, str]) -> pd.Series:
    """Return why each row cannot be predicted, "" where it can."""
    reason = pd.Series([unknown.get(str(device), "") for device in frame["device"]], index=frame.index, dtype=object)
    op, dtype = (frame[column].astype(object).fillna("nothing").astype(str) for column in ("op", "dtype"))

    def mark(rows: pd.Series, words: pd.Series | str) -> None:
        reason[rows & (reason == "")] = words

    for known, why in WHY_NOT.items():
        mark(op == known, why)
    mark(~op.isin(SHAPES), "no kernel is made yet for operator '" + op + "'")
    for known in (kind for kind in SHAPES if kind not in RUNS):  # network_rows says what a run lacks
        mark((op == known) & ~dtype.isin(DTYPES[known]), "no kernel is made for " + op + " in " + dtype)
        lacking = ~(frame[list(SHAPES[known])] > 0).all(axis=1)
        mark((op == known) & lacking, f"{known} without its {', '.join(SHAPES[known])}")
    return reason


def _judged(block: TimedRows, judge: _Judge) -> _Judged:
    """A block's rows with what is predicted, and the stacks of the chosen kernels."""
    predicted, chosen = best(judge.model, block)
    labels = [block.labels[i] for i in chosen.places[:, 0]]
    names = [IMPLEMENTATIONS[int(i)] for i in np.asarray(chosen.kernels.implementation)[:, 0]]

    def stacks(places: np.ndarray) -> list[dict[str, float]]:
        kernels = jax.tree.map(lambda x: np.asarray(x)[places, 0], chosen.kernels)
        return _stacks(judge.model, kernels, jax.tree.map(lambda x: np.asarray(x)[places], chosen.gpus))

    return _Judged(block.table.assign(predicted_us=predicted, kernel=labels, implementation=names), stacks)


def _judged_runs(frame: pd.DataFrame, judge: _Judge, skipped: dict[str, int], engine: Engine | None) -> list[_Judged]:
    """Runs of whole networks on one GPU with what is predicted, and their interval's ends ``low`` and ``high``."""
    rows = network_rows(frame, judge.sheet, skipped, engine) if len(frame) else None
    if rows is None:
        return []
    table, places = predicted_runs(judge.model, rows)
    ends = [interval_of_run(ran, op) for ran, op in zip(rows.engines, table["op"], strict=True)]
    table[["low", "high"]] = np.array(ends)
    return [_Judged(table, lambda some: [run_stack(judge.model, rows, places, int(i)) for i in some])]


def _with_rooflines(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what both rooflines say [us]; NaN where three numbers would be fitted to no more rows."""
    rows = rows.assign(sheet_us=np.maximum(rows["compute_us"], rows["memory_us"]), three_us=np.nan)
    for _, part in rows.groupby(["device", "op"]):
        if len(part) <= 3:
            continue
        fold = np.array([crc32(name.encode()) % FOLDS for name in part["family"]])
        rows.loc[part.index, "three_us"] = fitted_roofline(part, fold)
    return rows


def _groups(rows: pd.DataFrame, judges: Mapping[str, _Judge]) -> list[dict[str, Any]]:
    """Errors of every group and regime of the measured time."""
    found = []
    for (device, op, dtype), part in rows.groupby(["device", "op", "dtype"], sort=True):
        inside = _inside(part, judges[str(device)], str(op), str(dtype))
        for name, mask in by_regime(regime(part["latency_us"].to_numpy(), compute_bound(part))):
            covered = None if inside is None else 100 * float(inside[mask].mean())
            found.append({"device": device, "op": op, "dtype": dtype, "regime": name} | _scores(part[mask])
                         | {"interval_80_coverage": covered})  # fmt: skip
    return found


def _scores(rows: pd.DataFrame) -> dict[str, Any]:
    measured = rows["latency_us"].to_numpy()

    def error(column: str) -> np.ndarray:
        return 100 * np.abs(rows[column].to_numpy() / measured - 1)

    fitted = float(error("three_us").mean())
    ratio, off = np.log(rows["predicted_us"].to_numpy() / measured), error("predicted_us")
    return {
        "n": len(rows), "mape": float(off.mean()), "bias": float(np.exp(ratio.mean())),
        "log_ratio": float(np.abs(ratio).mean()), "inlier_10": 100 * float((off <= 10).mean()),
        "inlier_20": 100 * float((off <= 20).mean()), "roofline_mape": float(error("sheet_us").mean()),
        "roofline3_mape": None if np.isnan(fitted) else fitted, "noise_floor": group_noise(rows["noise"].to_numpy()),
    }  # fmt: skip


def _held_back(sheet: GpuSheet) -> bool:
    """Whether a board has so few watts for its fp32 rate that products on CUDA cores hold its clock back."""
    gpu = sheet.numbers()
    rate = 2 * gpu["sm_count"] * gpu["fp32_lanes"] * gpu["boost_clock_mhz"] * 1e-6
    return gpu["tdp_w"] < LEAST_WATTS * rate


def _inside(rows: pd.DataFrame, judge: _Judge, op: str, dtype: str) -> np.ndarray | None:
    """Whether each measured time lies within its 80 % interval; None where any has none."""
    if judge.calibration is None:
        return None
    judged = errors_of(rows, rows["predicted_us"].to_numpy(), judge.sheet.name)
    held = dtype == "fp32" and op in PRODUCTS and _held_back(judge.sheet)
    other = HELD_BACK if held else UNSEEN
    if op in RUNS:  # an engine brings its own
        low, high = judged[["low", "high"]].to_numpy().T
    else:
        low, high = interval_of(judged, judge.calibration, judge.sheet.name, op, dtype, other)
    error = judged["error"].to_numpy()
    return None if np.isnan(low).any() else (error >= low) & (error <= high)


def interval_of(
    judged: pd.DataFrame, calibration: TimingCalibration, gpu: str, op: str, dtype: str, other: str = UNSEEN
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (rows,) of the log errors that 80 % of rows of :func:`errors_of` are to have, NaN where nothing
    is known: by implementation, way of measuring and regime of the predicted time."""
    low, high = np.full((2, len(judged)), np.nan)
    for (name, way, where), places in judged.groupby(["implementation", "way", "where"]).indices.items():
        asked = (dtype, str(where), gpu, str(way), other)
        known = calibration.residual(str(name), op, *asked)
        if known is None and op in PRODUCTS:
            known = calibration.residual(str(name), "gemm", *asked)
        if known is not None:
            low[places], high[places] = known.q10, known.q90
    return low, high


def _worst(rows: pd.DataFrame, runs: np.ndarray, parts: Sequence[_Judged]) -> list[dict[str, Any]]:
    """The rows that are farthest off, each with its stack [us]."""
    ratio = np.abs(np.log(rows["predicted_us"] / rows["latency_us"]).to_numpy())
    places = np.argsort(-np.where(runs, ratio, -1.0))[: min(WORST, int(runs.sum()))]
    starts = np.cumsum([0, *(len(p.rows) for p in parts)])
    stacks: dict[int, dict[str, float]] = {}
    for part, start, end in zip(parts, starts, starts[1:], strict=False):
        mine = places[(places >= start) & (places < end)]
        if len(mine):
            stacks |= dict(zip(mine.tolist(), part.stacks(mine - start), strict=True))
    return [_worst_row(rows.iloc[i], stacks[int(i)]) for i in places]


def _worst_row(row: pd.Series, stack: dict[str, float]) -> dict[str, Any]:
    shape: dict[str, Any] = {c: float(row[c]) for c in SHAPES[row["op"]]}
    if row["op"] in RUNS:
        shape = {"group": row["group"]} | shape
    return {"device": row["device"], "op": row["op"], "dtype": row["dtype"], **shape,
            "measured_us": float(row["latency_us"]), "predicted_us": float(row["predicted_us"]),
            "ratio": float(row["predicted_us"] / row["latency_us"]),
            "implementation": row["implementation"], "kernel": row["kernel"], "harness": row["harness"],
            "stack_us": {"overhead": float(row["overhead_us"])} | stack}  # fmt: skip


def _stacks(model: TimingModel, kernels: Any, gpus: Any) -> list[dict[str, float]]:
    """The stacks of chosen kernels [us], causes that cost nothing left out; fields of shape (rows,)."""
    count = len(kernels.ctas)
    kernels, gpus = jax.tree.map(lambda x: np.pad(x, (0, WORST - count), mode="edge"), (kernels, gpus))
    timing = timings(model, kernels, gpus)  # always WORST rows, for one compiled program
    us = {cause: np.asarray(cycles / timing.clock_ghz) / 1e3 for cause, cycles in timing.stack().items()}
    return [{cause: float(x[i]) for cause, x in us.items() if x[i] > 0} for i in range(count)]


def _predictors(rows: pd.DataFrame, judges: Mapping[str, _Judge]) -> tuple[Predictor, ...]:
    found = []
    for device, part in rows.groupby("device", sort=True):
        judge = judges[str(device)]
        model, fitted = type(judge.model).__name__.lower(), judge.calibration.gpus if judge.calibration else ()
        found.append(Predictor(str(device), len(part), judge.sheet.title, model, judge.model.calibration, fitted,
                               judge.sheet.name in fitted))  # fmt: skip
    return tuple(found)


def _notes(
    rows: pd.DataFrame, judges: Mapping[str, _Judge], predictors: tuple[Predictor, ...], by_source: bool
) -> tuple[str, ...]:
    """What the numbers do not say: calibrations, operators outside of them, ways of measuring."""
    notes = []
    for found in predictors:
        device, judge = found.device, judges[found.device]
        calibration = f"calibration {found.calibration}" if judge.calibration else found.calibration
        notes.append(f"{device}: {found.gpu}, {found.model}, {calibration}")
        if judge.calibration is None:
            continue
        part = rows[(rows["device"] == device) & ~rows["op"].isin(RUNS)]
        kinds = sorted(set(part[["implementation", "op", "dtype"]].itertuples(index=False, name=None)))
        bare = [f"{op} {dtype} of {name}" for name, op, dtype in kinds if not judge.calibration.covers(name, op, dtype)]
        if _held_back(judge.sheet) and ((part["dtype"] == "fp32") & ~part["op"].isin(VECTOR)).any():
            notes.append(f"{device}: fewer watts for its fp32 rate than any GPU that fp32 products were fitted on: "
                         "its clock may be held back, and their interval is what a T4 was off by")  # fmt: skip
        if bare:
            notes.append(f"{device}: uncalibrated: {', '.join(bare)} (the calibration was fitted on other rows)")
        if found.fitted_on_it:
            notes.append(f"{device}: on rows that the calibration was fitted on, the error is partly a training error")
    whole = rows["op"].isin(RUNS)
    notes += _notes_of_runs(rows[whole]) if whole.any() else []
    if by_source and not whole.all():
        notes.append(f"ways of measuring, by source: {', '.join(sorted(set(rows.loc[~whole, 'harness'])))}")
    return tuple(notes)


def _notes_of_runs(runs: pd.DataFrame) -> list[str]:
    """What the errors of whole networks do not say: whose costs were taken, and times in another unit."""
    names = sorted(set(runs["engine"]) & engines().keys() - {SHARED})
    own = sorted(set(runs["engine"]) - engines().keys())
    notes = ["whole networks: kernels at the sheet's clock, and what an engine's host adds"]
    if names:
        notes[0] += f" ({', '.join(names)}), fitted to seven in ten of such runs: partly a training error"
    if own:
        notes.append(f"whole networks of {', '.join(own)}: on runs that it was fitted to, a training error")
    if (runs["engine"] == SHARED).any():
        notes.append(f"whole networks of an engine that no row's notes tell: the costs of {SHARED}, a mean of other "
                     "engines'; 'dse calibrate engine' fits your own")  # fmt: skip
    apart = float(np.exp(np.median(np.log(runs["predicted_us"] / runs["latency_us"]))))
    if not 1 / OTHER_UNIT < apart < OTHER_UNIT:
        notes.append(f"whole networks: the median row is predicted {apart:.2g} times as long as measured: is "
                     "latency_us in microseconds?")  # fmt: skip
    return notes

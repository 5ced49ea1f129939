"""``dse calibrate timing``: a GPU's sustained rates and costs from measured operators, by the implementation that ran.

Every implementation that the tables hold enough rows of is fitted to its own: matrix products of a tuned library about
the values shared by all GPUs, any other about its shipped ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.errors import InputError, paths_of
from dse.base.skipped_rows import Skipped, counted
from dse.calibration.timing.answer import GpuTimingAnswer, TimingAnswer
from dse.calibration.timing.implementations import by_implementation, that_ran
from dse.calibration.timing.microbenchmarks import start_of
from dse.calibration.timing.rows_fit import FEWEST, SAFE, drawn_rows, fit_timed
from dse.calibration.timing.sensitivity import sensitivities
from dse.calibration.timing.stages import StageResult
from dse.hardware.own_gpus import own_gpus
from dse.hardware.presets import GpuSheet, find_preset, load_sheet
from dse.measured.coverage import uncovered
from dse.measured.device_models import device_names
from dse.measured.layer_rows import as_operators
from dse.measured.nsight_export import NAME, UNNAMED_GPU
from dse.measured.protocol import find_protocol
from dse.measured.row_shape import ATTENTION, PRODUCTS, notes_of, notes_of_masks
from dse.measured.row_vector import VECTOR, VECTOR_DTYPES
from dse.measured.table import OperatorTable, read_times, tensor_parallel
from dse.measured.timed_rows import TimedRows
from dse.timing.calibration import (
    MATRIX,
    SHARED,
    TimingCalibration,
    calibration_of,
    implementation_calibration,
    load_timing_calibration,
    shipped_calibrations,
)
from dse.workload.implementation import KINDS
from dse.workload.microbenchmarks import CHASE, GRID, LOOPS
from dse.workload.operators.attention_library import DEFAULTS, attention_libraries, names_library

FITTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("bf16", "fp16", "fp32")),
    **dict.fromkeys(ATTENTION, ("bf16", "fp16")),
    **dict.fromkeys(VECTOR, VECTOR_DTYPES),
}
"""Operator -> data types that are fitted; other rows are counted. Products of fewer bits are timed with what quantises
their activations, and take the costs of those in 16 bits."""

FEW = "{} is fitted to {} rows: with fewer than {} it may be worse than before"
KEPT = "no products of a tuned library, the usual runs', to fit: theirs stay those of the calibration {}"

FORGOTTEN = (
    "the shipped calibration {} knows which products the library serves badly (its discrepancy); this fit does not: it "
    "takes 200 rows and ten shape families to learn, or they gained nothing by it"
)

Report = Callable[[str, StageResult], None]
"""Told each stage's implementation and result."""


def calibrate_timing(
    gpu: str,
    tables: str | Path | Sequence[str | Path],
    harness: str | None = None,
    report: Report | None = None,
    sensitivity: bool = False,
) -> GpuTimingAnswer:
    """Fit the timing model to the rows of one GPU; raises InputError when there are too few of every implementation.

    ``gpu``: a preset, whose rows are taken, or a GPU TOML, for which the tables must hold one device only. ``harness``:
    how everything was measured; None goes by the column ``source``. ``sensitivity``: also the error over each
    parameter.
    """
    sheet = load_sheet(gpu)
    _refuse_shipped(gpu, sheet)
    read = [read_times(table) for table in paths_of("tables", tables)]
    if not read:
        raise InputError("calibrate timing: no table is given; give one or more measured tables")
    way = find_protocol(harness) if harness else None
    mine, counts = _of_device(_joined(read), sheet, gpu)
    for table in read:
        counts.update(table.skipped)
    started, of_micro = start_of(mine, sheet)
    usable = _usable(mine[~mine["op"].isin((CHASE, GRID, *LOOPS))], sheet, counts)
    rows = drawn_rows(usable, {str(device): sheet for device in usable["device"].unique()}, way, counts)
    fits = _without_twice(_fits(rows, read, sheet, counts, report, sensitivity, started))
    like = calibration_of(sheet)
    notes = [doubt for fit in fits for doubt in fit.doubts] + of_micro + _assumed(rows, sheet)
    notes += [f"{fit.implementation}, {one.words()}" for fit in fits if fit.work for one in fit.work.classes]
    notes += [FEW.format(f.implementation, f.rows, SAFE) for f in fits if f.rows + f.rows_left_out < SAFE]
    products = next((fit for fit in fits if fit.implementation == MATRIX), None)
    if products is None:
        notes.append(KEPT.format(like))
    elif products.fit.discrepancy is None and load_timing_calibration(like).discrepancy is not None:
        notes.append(FORGOTTEN.format(like))
    own = own_gpus([sheet])
    return GpuTimingAnswer(sheet.name, (sheet.name,), tuple(read), fits, like, counts, own, tuple(notes))


def _refuse_shipped(gpu: str, sheet: GpuSheet) -> None:
    """Refuse a GPU whose calibration would be called as a shipped one is that is not its own."""
    if sheet.name in shipped_calibrations() and own_gpus([sheet]):
        raise InputError(
            f"{gpu}: {sheet.name!r} is the name of a shipped calibration, which a fit to this GPU would "
            "be taken for; give the file another name"
        )


def _assumed(rows: TimedRows, sheet: GpuSheet) -> list[str]:
    """Return what was assumed of the rows: how they were measured, which library ran attention, masked or not, on which
    GPU."""
    table = rows.table
    ways = table.groupby("harness")["overhead_us"].unique()
    told = ", ".join(f"{way} ({_overhead(us)} added to a kernel)" for way, us in ways.items())
    notes = [f"ways of measuring, by source or --harness: {told}"]
    warpgroup = sheet.numbers()["warpgroup_mma"] > 0
    unnamed = [
        not names_library(notes_of(row), str(getattr(row, "source", "")), warpgroup)
        for row in table[table["op"].isin(ATTENTION)].itertuples()
    ]
    if any(unnamed):
        title = attention_libraries()[DEFAULTS[warpgroup]].title
        notes.append(f"{sum(unnamed)} rows of attention name no library in their notes: taken as {title}")
    notes += notes_of_masks(table)
    others = {str(d): find_preset(str(d)) for d in table["device"].unique()}
    notes += [
        f"the rows' device {device} is the preset {preset}, not {sheet.title}"
        for device, preset in others.items()
        if preset not in (None, sheet.name, sheet.base)
    ]
    return notes


def _overhead(us: np.ndarray) -> str:
    """Return a way's overheads [us], of operators that differ their range."""
    least, most = f"{us.min():.2g}", f"{us.max():.2g}"
    return f"{least} us" if least == most else f"{least} to {most} us, by operator and device,"


def _joined(read: Sequence[OperatorTable]) -> pd.DataFrame:
    """Return the rows of all tables with their device and ``tp``, a layer's as the operators that they time."""
    frame = pd.concat([t.frame.assign(tp=tensor_parallel(t)) for t in read], ignore_index=True)
    return as_operators(frame.assign(device=device_names(frame)))


def _of_device(frame: pd.DataFrame, sheet: GpuSheet, gpu: str) -> tuple[pd.DataFrame, Skipped]:
    devices = [str(device) for device in frame["device"].unique()]
    if Path(gpu).suffix == ".toml":
        if len(devices) > 1:
            raise InputError(f"{gpu}: the tables hold {len(devices)} devices ({', '.join(devices)}); give rows of one")
        return frame, Skipped()
    mine = frame["device"].map({d: find_preset(d) == sheet.name for d in devices}).astype(bool)
    if not mine.any():
        remedy = (
            'For a GPU that is not shipped, give a GPU TOML instead (base = "h100_sxm" and what differs) and tables of '
            "that one device"
        )
        if any(device.startswith(UNNAMED_GPU) for device in devices):
            remedy = (
                f"An export that does not name its GPU needs device={sheet.name} in the names of its ranges, a "
                f"column device in its table of shapes, or {NAME} among the metrics"
            )
        raise InputError(f"{gpu}: the tables have no row of it; they hold {', '.join(devices)}. {remedy}")
    others = [d for d in devices if find_preset(d) != sheet.name]
    return frame[mine], Skipped({f"device {d!r} is another GPU": int((frame["device"] == d).sum()) for d in others})


def _usable(frame: pd.DataFrame, sheet: GpuSheet, counts: Skipped) -> pd.DataFrame:
    """Return the rows that a fit can use, each once; the others are added to ``counts``."""
    again = frame.duplicated()  # a table given twice says no more than once: intervals count its rows
    counts.update({"repeats another row in every column": int(again.sum())} if again.any() else {})
    frame = frame[~again]
    op, dtype = frame["op"].astype(str), frame["dtype"].astype(str)
    wrong = pd.Series("", frame.index, dtype=object)
    other = pd.Series([d not in FITTED.get(o, (d,)) for o, d in zip(op, dtype, strict=True)], frame.index, dtype=bool)
    wrong[other] = "data type is not fitted: " + op + " in " + dtype
    wrong[~op.isin(list(FITTED))] = "operator is not fitted: " + op
    unknown = uncovered(frame, {}, dict.fromkeys(frame["device"], sheet.numbers()["tdp_w"]), fits=True)
    wrong = unknown.where(unknown != "", wrong)
    counts.update(counted(wrong))
    return frame[wrong == ""]


def _fits(
    rows: TimedRows,
    read: Sequence[OperatorTable],
    sheet: GpuSheet,
    counts: Skipped,
    report: Report | None,
    sensitivity: bool,
    started: Mapping[str, float],
) -> list[TimingAnswer]:
    """Fit every implementation that has rows enough; those of others are added to ``counts``."""
    fits, few = [], []
    for name, part in by_implementation(rows).items():
        if len(part.table) >= FEWEST:
            fit = _fitted(name, read, sheet, part, report, started if name == MATRIX else {})
            ran = fit.work.applied(part) if fit.work else part
            swept = sensitivities(ran, fit.fit, KINDS[name]) if sensitivity else ()
            fits.append(replace(fit, sensitivity=swept))
            continue
        few.append(f"{len(part.table)} of {name}")
        counts.update({f"{name}: fewer than the {FEWEST} rows that a fit needs": len(part.table)})
    if not fits:
        raise InputError(
            f"calibrate timing: too few rows can be fitted ({', '.join(few)}); give at least {FEWEST} "
            "of one implementation"
        )
    return fits


def _fitted(
    name: str,
    read: Sequence[OperatorTable],
    sheet: GpuSheet,
    rows: TimedRows,
    report: Report | None,
    started: Mapping[str, float],
) -> TimingAnswer:
    near = _before(name)
    fit = fit_timed(
        sheet.name,
        read,
        (sheet.name,),
        rows,
        report=(lambda stage: report(name, stage)) if report else None,
        implementation=name,
        start={**near.values, **started},
        near=near,
    )
    return replace(fit, also=tuple(other for other in that_ran(rows) if other != name))


def _before(name: str) -> TimingCalibration:
    """Return the calibration whose values a fit of an implementation starts from."""
    return load_timing_calibration(SHARED) if name == MATRIX else implementation_calibration(name)


def _without_twice(fits: Sequence[TimingAnswer]) -> tuple[TimingAnswer, ...]:
    """Return fits none of which speaks for an implementation that another is of."""
    named = {fit.implementation for fit in fits}
    return tuple(replace(fit, also=tuple(name for name in fit.also if name not in named)) for fit in fits)

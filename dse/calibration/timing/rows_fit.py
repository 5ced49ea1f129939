"""Fits of the timing model's sustained rates and costs to one implementation's measured rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, why_skipped
from dse.calibration.timing.answer import LEFT_OUT, TimingAnswer
from dse.calibration.timing.discrepancy_fit import FEWEST_ROWS, too_few, with_discrepancy
from dse.calibration.timing.fit import prior_values
from dse.calibration.timing.stages import StagedFit, StageResult, staged_fit, with_points
from dse.calibration.timing.work_accounting import WorkAccount, work_account
from dse.hardware.presets import GpuSheet
from dse.measured.protocol import Protocol
from dse.measured.row_operator import family
from dse.measured.table import OperatorTable
from dse.measured.timed_rows import TimedRows, blocks, joined
from dse.measured.unit_check import far_rows
from dse.timing.calibration import MATRIX, TimingCalibration
from dse.validation.error_quantiles import errors_of, seen
from dse.workload.implementation import KINDS

FEWEST = 8
"""Rows that a fit needs at least."""

SAFE = 24
"""Rows from which on fits are at most a point worse than what they start from, where nothing is to be gained, in the
mean of several draws (experiments/013_attention)."""

ENOUGH = 100
"""Rows from which on families are left out of the fit to judge it; with fewer, all are fitted, and the errors of the
calibration it starts from stand for its own."""

FAR_OFF = 3.0
"""Predicted over measured beyond which no parameters of a GPU explain the fitted rows' median."""

MOST_ROWS = 1500
"""Rows of a device and an operator that are used at most, fitted and left-out ones each, drawn at random with a fixed
seed."""


def fit_timed(
    name: str,
    tables: Sequence[OperatorTable],
    gpus: tuple[str, ...],
    rows: TimedRows,
    fit_overhead: bool = False,
    report: Callable[[StageResult], None] | None = None,
    implementation: str = MATRIX,
    start: dict[str, float] | None = None,
    near: TimingCalibration | None = None,
    weight: np.ndarray | None = None,
    fewest: int = FEWEST_ROWS,
) -> TimingAnswer:
    """Fit one set of parameters to rows with their kernels, all of one ``implementation``.

    ``fit_overhead``: of one protocol on several GPUs. ``start``: values about which the priors stand.
    ``weight`` (rows,): what each row counts in the parameters' fit, all alike without it.
    ``near``: a calibration whose errors stand for those of a fit to few rows, or to families that all are left out or
    none: it leaves out no row. Its discrepancy is kept where there are too few rows for another. ``fewest`` rows that
    a discrepancy needs. Where the rows' notes hold a profiler's counts of instructions, these come first
    (:mod:`dse.calibration.timing.work_accounting`).
    """
    if len(rows.table) < FEWEST:
        raise InputError(f"calibrate timing: {len(rows.table)} rows of {implementation}; a fit needs {FEWEST}")
    out = left_out(rows.table["family"])
    few = near is not None and (len(rows.table) < ENOUGH or out.all() or not out.any())
    out = np.zeros(len(rows.table), bool) if few else out
    held = near.discrepancy if near is not None and too_few(rows, out) else None
    kind = KINDS[implementation]
    account = work_account(rows, with_points(start or prior_values(kind), held), out)
    rows, told = _with_work(account, rows, report)
    fit = staged_fit(rows, out, fit_overhead, report=told, kind=kind, start=start, weight=weight, discrepancy=held)
    fit = _after_work(account, fit)
    fit = with_discrepancy(fit, rows, out, kind, fit_overhead, fewest)
    if report and fit.discrepancy is not held:
        report(fit.stages[-1])
    _refuse_far_off(implementation, fit.predicted_us[~out] / rows.table["latency_us"].to_numpy()[~out])
    overheads = rows.table.groupby("harness")["overhead_us"].mean().to_dict()
    if fit_overhead:
        overheads = dict.fromkeys(overheads, fit.values["overhead_us"])
    only = gpus[0] if len(gpus) == 1 else ""
    judged = errors_of(rows.table, fit.predicted_us, only).assign(implementation=implementation, out=out)
    errors = seen(judged[out], set(judged["way"]), set(judged["gpu"]))
    if near is not None and few:
        errors = tuple(r for r in near.error_quantiles if r.implementation == implementation)
    return TimingAnswer(
        name,
        gpus,
        tuple(tables),
        int((~out).sum()),
        int(out.sum()),
        {str(k): float(v) for k, v in overheads.items()},
        fit,
        errors,
        implementation,
        doubts=tuple(far_rows(rows.table, fit.predicted_us, f" of {implementation}")),
        work=account,
    )


def _with_work(
    account: WorkAccount | None, rows: TimedRows, report: Callable[[StageResult], None] | None
) -> tuple[TimedRows, Callable[[StageResult], None] | None]:
    """Return the rows with the instructions that were counted, and who is told of stages: the first is told as that of
    work accounting, behind the errors before it."""
    if account is None or report is None:
        return (rows, report) if account is None else (account.applied(rows), report)

    def told(stage: StageResult) -> None:
        first = not stage.free and stage.rows == 0
        for one in _stages(account, stage) if first else (stage,):
            report(one)

    return account.applied(rows), told


def _after_work(account: WorkAccount | None, fit: StagedFit) -> StagedFit:
    """Return a fit whose stages begin with that of work accounting."""
    if account is None:
        return fit
    return replace(fit, stages=(*_stages(account, fit.stages[0]), *fit.stages[1:]))


def _stages(account: WorkAccount, first: StageResult) -> tuple[StageResult, StageResult]:
    """The errors before and after work accounting; ``first``: those of the values that a fit starts from."""
    return replace(account.before, name=first.name), account.as_stage(first)


def _refuse_far_off(implementation: str, ratio: np.ndarray) -> None:
    """Refuse a fit that is wrong by a factor in the median: the times are in another unit, or of another GPU."""
    median = float(np.median(ratio))
    if not 1 / FAR_OFF < median < FAR_OFF:
        raise InputError(
            f"calibrate timing: fitted, the median of predicted over measured times of {implementation} is "
            f"{median:.3g}: is latency_us in microseconds, and are the rows of this GPU?"
        )


def left_out(families: Iterable[str]) -> np.ndarray:
    """Return which rows no fit may see, by the name of their shape family."""
    return np.array([crc32(name.encode()) % 10 >= LEFT_OUT for name in families], bool)


def drawn_rows(
    frame: pd.DataFrame,
    sheets: Mapping[str, GpuSheet],
    protocol: Protocol | None,
    skipped: Skipped,
    most: int = MOST_ROWS,
) -> TimedRows:
    """Return rows with their kernels, at most ``most`` fitted and left-out ones of a device and an operator.

    ``sheets``: device -> GPU; ``protocol``: None takes each row's by its source. Rows beyond ``most`` and those without
    a kernel count in ``skipped``; raises InputError where none is left.
    """
    out = left_out(pd.Series([family(row) for row in frame.itertuples()], dtype=str))
    groups = frame.groupby([frame["device"].to_numpy(), frame["op"].to_numpy(), out])
    drawn = [part.sample(min(most, len(part)), random_state=0) for _, part in groups]
    if sum(map(len, drawn)) < len(frame):
        beyond = len(frame) - sum(map(len, drawn))
        skipped[f"beyond {most} rows of a device and an operator, drawn at random"] += beyond
    parts = list(blocks(pd.concat(drawn), sheets, protocol, skipped)) if drawn else []
    if not parts:
        raise InputError(f"calibrate timing: no row can be fitted: {why_skipped(skipped)}")
    return joined(parts)

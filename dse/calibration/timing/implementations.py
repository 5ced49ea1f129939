"""Measured rows by the implementation that ran them, and the calibration of one: fitted on all GPUs that ran it.

:func:`load_implementations` and :func:`fit_implementation` made the calibrations that ``dse/data`` ships
(experiments/013_attention, 018_simt_products); a user's own table goes through
:mod:`dse.calibration.timing.gpu_timing`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, why_skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.discrepancy_fit import FEWEST_ROWS
from dse.calibration.timing.rows_fit import fit_timed, left_out
from dse.calibration.timing.stages import StageResult
from dse.hardware.presets import GpuSheet
from dse.measured.row_operator import family
from dse.measured.table import OperatorTable
from dse.measured.timed_rows import TimedRows, blocks, joined
from dse.workload.implementation import IMPLEMENTATIONS

MOST = 700
"""Rows of an operator, a source and a device that are used at most, fitted and left-out ones each."""

FEW_FAMILIES = 3
"""With no more shape families than these, requests and tokens tell families apart too."""


def load_implementations(
    frame: pd.DataFrame, sheets: Mapping[str, GpuSheet], skipped: Skipped, most: int = MOST
) -> dict[str, TimedRows]:
    """Return the rows of ``frame`` with their kernels by the implementation that ran them.

    ``sheets``: device -> GPU; at most ``most`` fitted and left-out rows of an operator, source and device, drawn with a
    fixed seed. Rows without a kernel count in ``skipped``.
    """
    out = left_out(family(row) for row in frame.itertuples())
    groups = frame.groupby([frame[c].astype(str).to_numpy() for c in ("device", "group", "op")] + [out])
    drawn = pd.concat([part.sample(min(most, len(part)), random_state=0) for _, part in groups])
    parts = list(blocks(drawn, sheets, None, skipped))
    if not parts:
        raise InputError(f"no row can be fitted: {why_skipped(skipped)}")
    return by_implementation(joined(parts))


def by_implementation(rows: TimedRows) -> dict[str, TimedRows]:
    """Return rows by the implementation whose kernels ran them: the first where a protocol may have run one of several
    (:func:`that_ran`)."""
    first = np.minimum.reduceat(np.asarray(rows.kernels.implementation).astype(int), rows.starts)
    return {IMPLEMENTATIONS[i]: _with_families(rows.keep(first == i)) for i in np.unique(first)}


def that_ran(rows: TimedRows) -> tuple[str, ...]:
    """Return the implementations whose kernels may have run any of the rows."""
    return tuple(IMPLEMENTATIONS[i] for i in np.unique(np.asarray(rows.kernels.implementation).astype(int)))


def _with_families(rows: TimedRows) -> TimedRows:
    return replace(rows, table=rows.table.assign(family=families_of(rows.table)))


def families_of(table: pd.DataFrame, few: int = FEW_FAMILIES) -> pd.Series:
    """Return the families of rows, enough of them to leave some out: where they are ``few`` or fewer, by requests and
    tokens too."""
    if table["family"].nunique() > few:
        return table["family"]
    return pd.Series([f"{r.family}_{r.batch:g}_{r.seq_q:g}" for r in table.itertuples()], table.index, dtype=object)


def fit_implementation(
    name: str,
    tables: Sequence[OperatorTable],
    rows: TimedRows,
    gpus: tuple[str, ...],
    report: Callable[[StageResult], None] | None = None,
    fewest: int = FEWEST_ROWS,
) -> TimingAnswer:
    """Fit the costs of the implementation ``name`` to its rows; ``fewest`` of them that a discrepancy needs."""
    return fit_timed(name, tables, gpus, rows, report=report, implementation=name, fewest=fewest)

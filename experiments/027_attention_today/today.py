"""Attention's kernels of today's libraries: fitted on measured rows, some families left out, and what that is worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.package_tables import read_table
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.implementations import fit_implementation, load_implementations
from dse.calibration.timing.stages import StageResult
from dse.hardware.presets import load_sheet
from dse.measured.table import OperatorTable, read_times
from dse.measured.timed_rows import TimedRows, best
from dse.validation.error_quantiles import errors_of, rewrite, unseen
from experiments import data
from experiments.common.implementations import DEVICES, gpus_of

TABLES = ("aiconfigurator__attention_new", "aiconfigurator__attention_released")

OPERATORS = ("attn_decode", "attn_prefill")

FEWEST = 100
"""Rows that a discrepancy needs: families left out in turn still decide whether there is one."""

Report = Callable[[StageResult], None]


def today_rows(skipped: Skipped) -> tuple[list[OperatorTable], dict[str, TimedRows]]:
    """Return the tables and their rows of attention by the implementation that ran them."""
    tables = [read_times(data.path(name)) for name in TABLES]
    frame = pd.concat([table.frame for table in tables], ignore_index=True)
    frame = frame[frame["op"].isin(OPERATORS)].reset_index(drop=True)
    sheets = {device: load_sheet(preset) for device, preset in DEVICES.items()}
    return tables, load_implementations(frame, sheets, skipped)


def fitted(name: str, tables: Sequence[OperatorTable], rows: TimedRows, report: Report | None = None) -> TimingAnswer:
    """Fit one implementation."""
    return fit_implementation(name, tables, rows, gpus_of(rows), report=report, fewest=FEWEST)


def names() -> list[str]:
    """Return the implementations that are fitted here."""
    return [row["implementation"] for row in read_table("attention/implementations.csv")]


BETWEEN = {
    "attn_prefill": ("fa3_0_19_prefill", "trtllm_fp8_prefill", "fa2_gddr_today_prefill"),
    "attn_decode": ("fa3_narrow_decode", "trtllm_narrow_decode", "fa2_gddr_today_decode"),
}
"""Operator -> implementations that ran on two GPUs: a fit to one predicts the other, as if nobody had measured it."""


def between_gpus(tables: Sequence[OperatorTable], rows: Mapping[str, TimedRows]) -> dict[str, list[pd.DataFrame]]:
    """Return by operator the rows with the errors of fits that have not seen their GPU."""
    found: dict[str, list[pd.DataFrame]] = {op: [] for op in BETWEEN}
    for op, implementations in BETWEEN.items():
        for name in implementations:
            device = rows[name].table["device"].astype(str).to_numpy()
            for one in np.unique(device):
                answer, other = fitted(name, tables, rows[name].keep(device == one)), rows[name].keep(device != one)
                found[op].append(errors_of(other.table, best(replace(answer.fit.model, discrepancy=None), other)[0]))
    return found


def write(name: str, answer: TimingAnswer, between: Mapping[str, Sequence[pd.DataFrame]], folder: Path) -> None:
    """Write a calibration, with the errors of GPUs that no fit has seen."""
    path, op = folder / f"{name}.toml", f"attn_{'decode' if 'decode' in name else 'prefill'}"
    answer.write(path)
    dtype = "fp8" if "_fp8_" in name else "bf16"
    ran = dict.fromkeys((op, *(one.op for one in answer.error_quantiles)))  # decode kernels run short prompts, too
    elsewhere = [one for each in ran for one in unseen(between[op], name, each, dtype)]
    rewrite(path, (*answer.error_quantiles, *elsewhere))

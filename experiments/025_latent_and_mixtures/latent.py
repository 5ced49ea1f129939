"""Latent attention's kernels by library: fitted on measured rows, some families left out, and what that is worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

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

TABLE = "aiconfigurator__mla"

OPERATORS = ("mla_decode", "mla_prefill")

OUTLIER = "outlier=high_vs_neighbours"
"""Flag of rows that take 2.5 times as long as both neighbours of their sweep: 13 of 3,596, up to 100 times."""

FITTED = (
    "trtllm_mla_prefill",
    "trtllm_mla_narrow_prefill",
    "trtllm_mla_decode",
    "trtllm_mla_narrow_decode",
    "trtllm_gen_mla_prefill",
    "trtllm_gen_mla_narrow_prefill",
    "trtllm_gen_mla_decode",
    "trtllm_gen_mla_narrow_decode",
    "sglang_mla_prefill",
    "sglang_mla_decode",
    "trtllm_warp_mla_prefill",
    "trtllm_warp_mla_decode",
    "trtllm_warp_mla_narrow_decode",
)
"""Implementations that are fitted."""

Report = Callable[[StageResult], None]


def latent_rows(skipped: Skipped) -> tuple[OperatorTable, dict[str, TimedRows]]:
    """Return the table and its rows of latent attention by the implementation that ran them."""
    table = read_times(data.path(TABLE))
    frame = table.frame[table.frame["op"].isin(OPERATORS)]
    marked = frame["notes"].str.contains(OUTLIER)
    skipped[OUTLIER] += int(marked.sum())
    frame = frame[~marked].reset_index(drop=True)
    sheets = {device: load_sheet(preset) for device, preset in DEVICES.items()}
    return table, load_implementations(frame, sheets, skipped)


def fitted(name: str, table: OperatorTable, rows: TimedRows, report: Report | None = None) -> TimingAnswer:
    """Fit one implementation."""
    return fit_implementation(name, [table], rows, gpus_of(rows), report=report)


def of_phase(name: str) -> str:
    """Return the operator of an implementation's rows."""
    return f"mla_{name.rsplit('_', 1)[1]}"


def transfers(table: OperatorTable, rows: Mapping[str, TimedRows]) -> dict[str, list[pd.DataFrame]]:
    """Return by operator the rows with the errors of fits that have not seen their GPU: of implementations that ran on
    an H100 and an H200, from each to the other."""
    found: dict[str, list[pd.DataFrame]] = {op: [] for op in OPERATORS}
    for name in FITTED:
        device = rows[name].table["device"].astype(str).to_numpy()
        if set(device) != {"H100-SXM5-80GB", "H200-SXM-141GB"}:
            continue
        for one in np.unique(device):
            answer, other = fitted(name, table, rows[name].keep(device == one)), rows[name].keep(device != one)
            model = replace(answer.fit.model, discrepancy=None)
            found[of_phase(name)].append(errors_of(other.table, best(model, other)[0]))
    return found


def write(answers: Mapping[str, TimingAnswer], between: Mapping[str, Sequence[pd.DataFrame]], folder: Path) -> None:
    """Write the calibrations, with the errors of GPUs that no fit has seen."""
    for name, answer in answers.items():
        path, op = folder / f"{name}.toml", of_phase(name)
        answer.write(path)
        rewrite(path, (*answer.error_quantiles, *unseen(between[op], name, op, "bf16")))

"""What experiments on implementations of kernels share: devices, errors of shipped calibrations, rows of tables."""

from pathlib import Path

import numpy as np
import pandas as pd

import dse
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import StageResult
from dse.measured.timed_rows import TimedRows, best
from dse.timing.calibration import implementation_calibration
from dse.validation.baselines import with_rooflines

SHIPPED = Path(dse.__file__).parent / "data" / "calibration" / "implementations"

DEVICES = {
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "B200-SXM": "b200",
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200",
    "L40S": "l40s",
    "RTXPRO6000-BW": "rtx_pro_6000",
}
"""Devices of aiconfigurator's tables, and their presets."""

OVER = "over 100"

HEADER = ("implementation", "GPU", "fitted rows", "left out", "fitted, %", "left out, %", "roofline, %")


def gpus_of(rows: TimedRows) -> tuple[str, ...]:
    """Return the presets of the rows' devices."""
    return tuple(sorted({DEVICES[device] for device in rows.table["device"].astype(str)}))


def shipped_us(name: str, rows: TimedRows) -> np.ndarray:
    """Return what the shipped calibration of an implementation predicts of its rows [us]."""
    return best(implementation_calibration(name).model, rows)[0]


def with_errors(name: str, rows: TimedRows, predicted_us: np.ndarray | None = None) -> pd.DataFrame:
    """Return rows with errors [%] of the shipped calibration of an implementation, and of a fitted roofline.

    ``predicted_us``: times (rows,) that stand in place of the calibration's, as those of a GPU's own calibration.
    """
    table = with_rooflines(rows.table)
    us = table["latency_us"].to_numpy()
    ours = shipped_us(name, rows) if predicted_us is None else predicted_us
    off = {"error": 100 * np.abs(ours / us - 1), "roofline": 100 * np.abs(table["three_us"] / us - 1)}
    return table.assign(implementation=name, out=left_out(table["family"]), **off)


def row_of(name: str, device: str, part: pd.DataFrame) -> tuple[str, ...]:
    """Return a row of HEADER of some rows of :func:`with_errors`."""
    out = part[part["out"]]
    means = part.loc[~part["out"], "error"].mean(), out["error"].mean(), out["roofline"].mean()
    return name, device, str(len(part) - len(out)), str(len(out)), *(f"{x:.1f}" for x in means[:2]), told(means[2])


def told(roofline: float) -> str:
    """Return a fitted roofline's error [%]; over 100 % the families left out tell nothing of how far."""
    return OVER if roofline > 100 else f"{roofline:.1f}"


def show(stage: StageResult) -> None:
    """Print the errors after a stage of a fit."""
    print(stage.name, stage.rows, stage.fitted, stage.left_out, flush=True)

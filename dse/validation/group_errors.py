"""Errors of predicted times by device, operator, data type and regime, beside two rooflines and the noise."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dse.base.error_interval import ends_with_factor
from dse.hardware.presets import GpuSheet
from dse.measured.device_models import DeviceModel
from dse.measured.network_runs.kinds import RUNS
from dse.measured.regimes import by_regime, compute_bound, regime
from dse.measured.row_shape import PRODUCTS, framework_of, notes_of
from dse.timing.calibration import UNSEEN, TimingCalibration
from dse.timing.error_quantiles import NO_RELEASE
from dse.timing.novelty import NOTHING_NEW, widened_ends
from dse.validation.error_quantiles import errors_of
from dse.validation.noise_floor import group_noise
from dse.workload.implementation import KINDS
from dse.workload.operators.narrow_products import NARROW


def group_errors(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the errors of every group and regime of the measured time, in percent; what each is says
    :func:`dse.validation.time.validate_time`. ``rows``: of :func:`with_intervals`."""
    found = []
    for (device, op, dtype), part in rows.groupby(["device", "op", "dtype"], sort=True):
        inside = _inside(part)
        for name, mask in by_regime(regime(part["latency_us"].to_numpy(), compute_bound(part))):
            covered = None if inside is None else 100 * float(inside[mask].mean())
            found.append(
                {"device": device, "op": op, "dtype": dtype, "regime": name}
                | _scores(part[mask])
                | {"interval_80_coverage": covered}
            )
    return found


def _scores(rows: pd.DataFrame) -> dict[str, Any]:
    measured = rows["latency_us"].to_numpy()

    def error(column: str) -> np.ndarray:
        return 100 * np.abs(rows[column].to_numpy() / measured - 1)

    fitted = float(error("three_us").mean())
    ratio, off = np.log(rows["predicted_us"].to_numpy() / measured), error("predicted_us")
    return {
        "n": len(rows),
        "mape": float(off.mean()),
        "bias": float(np.exp(ratio.mean())),
        "log_ratio": float(np.abs(ratio).mean()),
        "inlier_10": 100 * float((off <= 10).mean()),
        "inlier_20": 100 * float((off <= 20).mean()),
        "roofline_mape": float(error("sheet_us").mean()),
        "roofline3_mape": None if np.isnan(fitted) else fitted,
        "noise_floor": group_noise(rows["noise"].to_numpy()),
    }


def with_intervals(rows: pd.DataFrame, models: Mapping[str, DeviceModel]) -> pd.DataFrame:
    """Return predicted rows with ``low_us`` and ``high_us`` [us], between which 80 % of measured times are to lie.

    NaN where no calibration says so. An engine brings the ends of whole runs, ``low`` and ``high``, itself. Errors of
    other GPUs do not hold what the watts' error makes of this one's power limit, which is added; those of its own do.
    ``widened_by``: what of the GPU is new and has widened them, in words, "" for nothing.
    """
    rows = rows.assign(low_us=np.nan, high_us=np.nan, widened_by="")
    for (device, op, dtype), part in rows.groupby(["device", "op", "dtype"], sort=True):
        used = models[str(device)]
        if used.calibration is None:
            continue
        gpu = used.calibration.called(used.sheet)
        with_errors = errors_of_predicted(part, gpu)
        if op in RUNS:
            low, high = with_errors[["low", "high"]].to_numpy().T
            own = np.zeros(len(part), bool)
        else:
            found = interval_of(with_errors, used.calibration, gpu, str(op), str(dtype), used.sheet)
            (low, high, own), rows.loc[part.index, "widened_by"] = found[:3], found.widened_by
        us = part["predicted_us"].to_numpy()
        limit = (np.where(own, 0.0, np.log(part[name] / us)) for name in ("low_power_us", "high_power_us"))
        ends = np.exp(ends_with_factor(-high, -low, *limit)) * us
        rows.loc[part.index, ["low_us", "high_us"]] = ends.T
    return rows


def errors_of_predicted(rows: pd.DataFrame, gpu: str = "") -> pd.DataFrame:
    """Return predicted rows as :func:`errors_of` has them; narrow products of no release have a way of their own."""
    found = errors_of(rows, rows["predicted_us"].to_numpy(), gpu)
    found.loc[of_no_release(found), "way"] = NO_RELEASE
    return found


def of_no_release(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are narrow products whose notes name no release: the costs of the nearest one are theirs."""
    unnamed = [
        KINDS.get(str(row.implementation)) == NARROW and not framework_of(notes_of(row)) for row in rows.itertuples()
    ]
    return pd.Series(unnamed, rows.index, dtype=bool)


def _inside(rows: pd.DataFrame) -> np.ndarray | None:
    """Whether each measured time lies within its interval; None where any has none."""
    low, high, measured = (rows[name].to_numpy() for name in ("low_us", "high_us", "latency_us"))
    return None if np.isnan(low).any() else (measured >= low) & (measured <= high)


class RowIntervals(NamedTuple):
    """Ends (rows,) of the log errors that 80 % of rows are to have, NaN where nothing is known; whether they are
    of this GPU's ``own`` rows, and ``widened_by``."""

    low: np.ndarray
    high: np.ndarray
    own: np.ndarray
    widened_by: np.ndarray


def interval_of(
    with_errors: pd.DataFrame,
    calibration: TimingCalibration,
    gpu: str,
    op: str,
    dtype: str,
    sheet: GpuSheet | None = None,
) -> RowIntervals:
    """Return the intervals of rows of :func:`errors_of`: by implementation, protocol and regime of the predicted time.

    ``sheet``: the GPU, where errors of GPUs that no fit has seen are to be widened by what is new about it.
    """
    low, high = np.full((2, len(with_errors)), np.nan)
    words = np.full(len(with_errors), "", dtype=object)
    own = np.zeros(len(with_errors), bool)
    for (name, way, where), places in with_errors.groupby(["implementation", "way", "where"]).indices.items():
        asked = (dtype, str(where), gpu, str(way))
        known = calibration.quantiles(str(name), op, *asked)
        if known is None and op in PRODUCTS:
            known = calibration.quantiles(str(name), "gemm", *asked)
        if known is None:
            continue
        new = calibration.new_of(sheet, str(name)) if sheet and known.gpu == UNSEEN else NOTHING_NEW
        low[places], high[places] = widened_ends(known.q10, known.q90, new.widening)
        words[places], own[places] = new.words, known.gpu == gpu
    return RowIntervals(low, high, own, words)

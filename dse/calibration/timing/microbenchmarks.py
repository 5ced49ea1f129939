"""What microbenchmarks say: the coefficients of a launch (AMALI, Eq. 27 and 28), and latencies of a GPU's memory."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.units import KILO, WARP_SIZE
from dse.hardware.presets import GpuSheet
from dse.timing.launch import LaunchLatency
from dse.workload.microbenchmarks import CHASE, GRID, LINE, hops

USUAL_WARPS = 8.0
"""Block [warp/CTA] at which a calibration's one cost a CTA is taken: that of the tiles of most libraries."""

LEAST = 1e-3
"""A cost of nothing, in a fit of logarithms [cycle]."""

WORD = 4.0
"""Bytes of a word of a ring [B]."""

INSIDE, OUTSIDE = 0.7, 2.0
"""A ring of at most this share of a cache, and of this many times the one before it, is taken to be in that cache."""


class Latencies(NamedTuple):
    """Latency of a hop [cycle] by where its line is, the median over rings of that size; nan where none was chased."""

    l1: float
    l2: float
    dram: float


def fit_launch(frame: pd.DataFrame, clock_ghz: float) -> LaunchLatency:
    """Return the coefficients of KLL = s GS + k, s = alpha BS^2 + beta BS + gamma, by least squares of relative errors.

    ``frame``: rows of GRID. Raises InputError where blocks or grids are too few to tell the four apart.
    """
    rows = frame[frame["op"] == GRID]
    ctas, warps = rows["rows"].to_numpy(float), rows["cols"].to_numpy(float) / WARP_SIZE
    cycles = rows["latency_us"].to_numpy(float) * KILO * clock_ghz
    columns = np.column_stack([ctas * warps**2, ctas * warps, ctas, np.ones(len(rows))])
    if len(rows) < 4 or np.linalg.matrix_rank(columns / np.maximum(columns.max(axis=0), 1e-30)) < 4:
        raise InputError(f"{GRID}: {len(rows)} rows do not tell a launch's four coefficients; give three block sizes")
    weighted = columns / cycles[:, None]
    scale = np.sqrt(np.mean(weighted**2, axis=0))
    found = np.linalg.lstsq(weighted / scale, np.ones(len(rows)), rcond=None)[0] / scale
    return LaunchLatency(*(float(value) for value in found))


def launch_values(launch: LaunchLatency) -> dict[str, float]:
    """Return a launch as the parameters of a calibration, which has one cost a CTA."""
    per_cta = launch.alpha * USUAL_WARPS**2 + launch.beta * USUAL_WARPS + launch.gamma
    return {"launch_k": float(launch.k), "launch_gamma": float(per_cta)}


def latencies(frame: pd.DataFrame, sheet: GpuSheet, clock_ghz: float) -> Latencies:
    """Return the latencies that rings of growing size show on a GPU; ``frame``: rows of CHASE."""
    rows = frame[frame["op"] == CHASE]
    footprint = rows["rows"].to_numpy(float) * LINE * WORD
    cycles = rows["latency_us"].to_numpy(float) * KILO * clock_ghz
    each = cycles / np.array([hops(int(lines)) for lines in rows["rows"]])
    numbers = sheet.numbers()
    l1, l2 = numbers["l1_kib"] * 2**10, numbers["l2_mib"] * 2**20
    ranges = ((0.0, INSIDE * l1), (OUTSIDE * l1, INSIDE * l2), (OUTSIDE * l2, np.inf))
    taken = [each[(footprint >= low) & (footprint <= high)] for low, high in ranges]
    return Latencies(*(float(np.median(part)) if len(part) else float("nan") for part in taken))


def start_of(frame: pd.DataFrame, sheet: GpuSheet) -> tuple[dict[str, float], list[str]]:
    """Return the parameters of a launch that a table's empty grids say, nothing without any, and what is said of them
    and of its chases. Raises InputError where there are too few grids.

    The clock is that of the rows' notes (sm_mhz), else the data sheet's boost clock.
    """
    values: dict[str, float] = {}
    said = []
    if (frame["op"] == GRID).any():
        launch = fit_launch(frame, _clock_ghz(frame[frame["op"] == GRID], sheet))
        values = {name: max(value, LEAST) for name, value in launch_values(launch).items()}
        said.append(
            f"a launch by {int((frame['op'] == GRID).sum())} empty grids: {launch.k:.0f} cycles, and for a CTA of BS "
            f"warps {launch.alpha:.3g} BS^2 {launch.beta:+.3g} BS {launch.gamma:+.3g}; the fit starts from them"
        )
    if (frame["op"] == CHASE).any():
        found = latencies(frame, sheet, _clock_ghz(frame[frame["op"] == CHASE], sheet))
        of = ", ".join(f"{name.upper()} {value:.0f}" for name, value in found._asdict().items() if value == value)
        said.append(f"a hop through memory takes, in cycles: {of}; compare the GPU's latencies, which no fit moves")
    return values, said


def _clock_ghz(rows: pd.DataFrame, sheet: GpuSheet) -> float:
    notes = rows["notes"].astype("string").fillna("") if "notes" in rows else pd.Series("", rows.index, dtype="string")
    mhz = pd.to_numeric(notes.str.extract(r"\bsm_mhz=([0-9.]+)")[0]).median()
    return float(sheet.numbers()["boost_clock_mhz"] if pd.isna(mhz) else mhz) / KILO

"""The measured rows, and their split: shape families that no fit sees."""

import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured import power_rows as launches
from dse.measured.board_watts import SETTLED_US
from dse.measured.device_models import device_models, device_names, power_limits
from dse.measured.power_rows import UNFILLED, MeasuredLaunches
from dse.measured.table import read_operators, tensor_parallel
from dse.validation.power import without_power
from experiments import data

PAIR_US = 50.0
"""Short runs whose time is compared with the sustained run's: launch overheads no longer matter."""

HELD_OUT = (7, 8, 9)
"""Of ten classes of shape families, by checksum of the family's name, those that no fit sees."""


def load_rows(table: pd.DataFrame, preset: str) -> MeasuredLaunches:
    """Rows of a measured table on a preset, with the mark of the families that no fit sees."""
    rows = launches.load_rows(table, load_sheet(preset), Skipped())
    assert rows is not None, f"no row has a kernel on {preset}"
    rows.table["held_out"] = [zlib.crc32(name.encode()) % 10 in HELD_OUT for name in rows.table["family"]]
    return rows


@cache
def power_rows() -> MeasuredLaunches:
    """All measured rows of an H200 with power that a fit takes."""
    return load_rows(fitted_rows(("aiconfigurator__power", "aiconfigurator__power_new"), "H200"), "h200")


def fitted_rows(tables: Sequence[str], board: str) -> pd.DataFrame:
    """Return the rows of a board in some tables that a fit takes."""
    frames = []
    for name in tables:
        table = read_operators(data.path(name))
        frame = table.frame.assign(tp=tensor_parallel(table), device=device_names(table.frame))
        models, unknown = device_models(frame)
        covered = without_power(frame, unknown, power_limits(models)) == ""
        frames.append(frame[covered & frame["device"].str.contains(board)])
    return pd.concat(frames, ignore_index=True)


@cache
def pair_rows() -> MeasuredLaunches:
    """GEMMs of an H200 measured both short and sustained; column ``sustained_us`` beside the short ``latency_us``."""
    shape = ["m", "n", "k"]
    short = data.frame("aiconfigurator__gemm")
    short = short[short.device.str.contains("H200") & (short.dtype == "bf16") & (short.latency_us >= PAIR_US)]
    power = data.frame("aiconfigurator__power")
    long = power[power.op == "gemm"][[*shape, "latency_us", "power_w"]]
    long = long.rename(columns={"latency_us": "sustained_us"})
    return load_rows(short.drop(columns="power_w").merge(long, on=shape), "h200")


def masks(rows: MeasuredLaunches) -> dict[str, np.ndarray]:
    """Long rows to fit on, long rows left out, those over a cache that nobody filled, and short rows."""
    long, out = rows.table.latency_us.to_numpy() >= SETTLED_US, rows.table.held_out.to_numpy()
    filled = rows.table.operands.to_numpy() != UNFILLED
    kept = {"train": long & ~out & filled, "held out": long & out & filled}
    return kept | {"over an unfilled cache": long & ~filled, "short": ~long}


def seen(pairs: MeasuredLaunches) -> np.ndarray:
    """Pairs of families that a fit may see."""
    return ~pairs.table.held_out.to_numpy()

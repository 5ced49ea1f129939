"""GEMM times on A100 and H100 from one model in which nothing but the data sheet changes, beside AMALI's own errors.

Run with ``python experiments/017_amali_claim/run.py`` (a minute). Rows: bf16, 50 us and more, a random 600 a device.
Cycles are times at the measured clock, so their errors are the same.
"""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.regimes import LONG_US, compute_bound
from dse.measured.table import read_times
from dse.measured.timed_rows import TimedRows, best, blocks, joined
from dse.timing.amali import Amali
from dse.timing.calibration import SHARED, load_timing_calibration
from dse.timing.timing import TimingModel
from experiments import data

DEVICES = ("A100-SXM4-80GB", "H100-SXM5-80GB")
ROWS = 600

NEVER_FITTED = 7
"""Shape families whose CRC-32 modulo 10 is this or more are in no calibration (experiment 012)."""

CALIBRATIONS = (SHARED, "a100_sxm_80gb", "h100_sxm")
"""Fitted to six GPUs; to the A100 alone, for which the H100 is another data sheet; and the other way round."""


def measured() -> dict[str, TimedRows]:
    """Return the rows of each device with their candidate kernels."""
    frame = read_times(data.path("aiconfigurator__gemm")).frame
    long = frame[(frame["dtype"] == "bf16") & (frame["latency_us"] >= LONG_US)]
    drawn = {d: long[long["device"] == d].sample(ROWS, random_state=0) for d in DEVICES}
    return {d: joined(list(blocks(rows, {d: load_sheet(d)}, None, Skipped()))) for d, rows in drawn.items()}


def errors(model: TimingModel, rows: TimedRows) -> dict[str, float]:
    """Return errors [%] and the geometric bias of predicted times, on all rows and on either side of the roofline."""
    ratio = best(model, rows)[0] / rows.table["latency_us"].to_numpy()
    off, compute = 100 * np.abs(ratio - 1), compute_bound(rows.table)
    never = np.array([crc32(name.encode()) % 10 >= NEVER_FITTED for name in rows.table["family"]])
    return {
        "rows": len(off),
        "error [%]": off.mean(),
        "left-out families [%]": off[never].mean(),
        "median [%]": float(np.median(off)),
        "worst [%]": off.max(),
        "compute-bound [%]": off[compute].mean(),
        "memory-bound [%]": off[~compute].mean(),
        "bias": float(np.exp(np.log(ratio).mean())),
    }


def single(rows: TimedRows) -> TimedRows:
    """Return the rows as if each reading were one launch from rest, too short for the power limit."""
    return replace(rows, table=rows.table.assign(launches=0.0, run_us=0.0))


def main() -> None:
    """Evaluate and print the README's tables."""
    rows = measured()
    models: dict[str, TimingModel] = {
        "published": Amali(),
        "tensor core of fixed interval": Amali(tensor_modifiers=False),
    }
    models |= {name: load_timing_calibration(name).model for name in CALIBRATIONS}
    table = {(name, device): errors(model, mine) for name, model in models.items() for device, mine in rows.items()}
    table |= {("published, no power limit", d): errors(models["published"], single(mine)) for d, mine in rows.items()}
    print(pd.DataFrame(table).T.round(2).to_string())


if __name__ == "__main__":
    main()

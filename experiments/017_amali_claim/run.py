"""GEMM times on A100 and H100 from one model in which nothing but the data sheet changes, beside AMALI's own errors.

Run with ``python experiments/017_amali_claim/run.py`` (a minute); writes the README's table. Rows: bf16, 50 us and
more, a random 600 a device. Cycles are times at the measured clock, so their errors are the same.
"""

from dataclasses import replace
from pathlib import Path
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
from experiments.common.readme_tables import markdown, write_table

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
    """Evaluate, write the README's table, and print what is finer."""
    rows = measured()
    models: dict[str, TimingModel] = {
        "published": Amali(),
        "tensor core of fixed interval": Amali(tensor_modifiers=False),
    }
    models |= {name: load_timing_calibration(name).model for name in CALIBRATIONS}
    table = {(name, device): errors(model, mine) for name, model in models.items() for device, mine in rows.items()}
    table |= {("published, no power limit", d): errors(models["published"], single(mine)) for d, mine in rows.items()}
    print(pd.DataFrame(table).T.round(2).to_string())
    write_table(Path(__file__).parent / "README.md", "errors", summary(table))


def summary(table: dict[tuple[str, str], dict[str, float]]) -> str:
    """Return the README's table: errors [%] and bias of each model on each GPU."""
    shown = ("error [%]", "left-out families [%]", "worst [%]", "compute-bound [%]", "memory-bound [%]")
    rows = [
        [model, device.partition("-")[0], *(f"{found[name]:.1f}" for name in shown), f"{found['bias']:.2f}"]
        for (model, device), found in table.items()
    ]
    return markdown(["model", "GPU", *(name.removesuffix(" [%]") for name in shown), "bias"], rows, 2)


if __name__ == "__main__":
    main()

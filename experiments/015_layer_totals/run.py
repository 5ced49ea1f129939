"""Layer totals: the sum over the operators of one network, GPU, tensor-parallel degree and token count.

Run with ``python experiments/015_layer_totals/run.py [--groups N]``; writes the README's table. Attention rows are not
in these sums (vidur's stand in a table without the other operators' groups).
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.table import read_times
from dse.measured.timed_rows import best, blocks, joined
from dse.timing.calibration import SHARED, load_timing_calibration, shipped_calibrations
from experiments import data
from experiments.common.readme_tables import markdown, write_table

TABLES = {
    "vidur": ("vidur__gemm", "vidur__elementwise_norm"),
    "llmservingsim": ("llmservingsim__layers",),
}
KEY = ["group", "device", "tp", "tokens"]


def layers(names: tuple[str, ...], groups: int) -> pd.DataFrame:
    """Return the rows of ``groups`` layers drawn at random, each with a product and a vector kernel."""
    frame = pd.concat([read_times(data.path(name)).frame for name in names], ignore_index=True)
    frame["tokens"] = frame["m"].where(frame["m"].notna(), frame["rows"])
    product = frame["op"].str.startswith("gemm")
    both = frame.assign(p=product, v=~product).groupby(KEY)[["p", "v"]].transform("any").all(axis=1)
    frame = frame[both]
    drawn = frame[KEY].drop_duplicates().sample(frac=1, random_state=0).head(groups)
    return frame.merge(drawn, on=KEY)


def predicted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what the shipped calibrations predict [us]."""
    parts = []
    for device, mine in frame.groupby("device"):
        sheet = load_sheet(str(device))
        name = sheet.name if sheet.name in shipped_calibrations() else SHARED
        rows = joined(list(blocks(mine, {str(device): sheet}, None, Skipped())))
        parts.append(rows.table.assign(predicted_us=best(load_timing_calibration(name).model, rows)[0]))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Predict, and write the README's table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=60)
    arguments = parser.parse_args()
    header = ["source", "device", "layers", "operators", "error of the sum", "median", "of its operators", "bias"]
    cells = []
    for source, names in TABLES.items():
        rows = predicted(layers(names, arguments.groups))
        for device, mine in rows.groupby("device"):
            sums = mine.groupby(KEY)[["predicted_us", "latency_us"]].sum()
            off = 100 * np.abs(sums["predicted_us"] / sums["latency_us"] - 1)
            alone = 100 * np.abs(mine["predicted_us"] / mine["latency_us"] - 1)
            bias = float(np.exp(np.log(sums["predicted_us"] / sums["latency_us"]).mean()))
            errors = (f"{x:.1f} %" for x in (off.mean(), off.median(), alone.mean()))
            cells.append([source, str(device), str(len(sums)), str(len(mine)), *errors, f"{bias:.2f}"])
    write_table(Path(__file__).parent / "README.md", "layers", markdown(header, cells, 2))


if __name__ == "__main__":
    main()

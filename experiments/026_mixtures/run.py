"""Calibrations of mixtures of experts by framework, release and type, and what they are worth on families left out.

Run with ``python experiments/026_mixtures/run.py [--fit] [--write]`` (five minutes on a busy core; with
``--fit`` it fits anew and writes the calibrations that are shipped). Families whose CRC-32 modulo 10 is 7 or more are
never fitted. Prints the README's table, and with ``--write`` puts it there.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import pandas as pd
from fits import Fitted, fitted
from rows import DEVICES, Part, measured_rows, parts_of

import dse
from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.compound.rows import compound_rows, predicted_compound
from dse.timing.calibration import calibration_for, load_timing_calibration
from dse.validation.baselines import with_rooflines
from dse.workload.operators.expert_products import COSTS
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
CALIBRATION = Path(dse.__file__).parent / "data" / "calibration"
PRODUCTS = CALIBRATION / "expert_products.csv"

HOPPER = ("H100-SXM5-80GB", "H200-SXM-141GB")

WARP_LEVEL = ("A100-SXM4-80GB", "L40S", "RTXPRO6000-BW")

HEADER = ("implementation", "GPU", "fitted rows", "left out", "fitted, %", "left out, %", "balanced", "by a power law",
          "median", "roofline, %")  # fmt: skip


def write_passes(costs: dict[str, Fitted]) -> None:
    """Write the fitted costs of each implementation's passes."""
    with PRODUCTS.open(encoding="utf-8") as file:
        reader = csv.DictReader(file)
        names, rows = list(reader.fieldnames or ()), list(reader)
    for row in rows:
        found = costs.get(row["implementation"])
        row |= {name: f"{found.passes[name]:.4g}" for name in COSTS} if found else {}
    with PRODUCTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def shipped(frame: pd.DataFrame, parts: list[Part]) -> pd.DataFrame:
    """Return the rows with what the shipped calibrations predict, the implementation, and whether no fit saw them."""
    found = []
    for device, preset in DEVICES.items():
        sheet, model = load_sheet(preset), load_timing_calibration(calibration_for(preset)).model
        for rows in compound_rows(frame[frame["device"] == device], sheet, None, Skipped()):
            found.append(predicted_compound(model, rows)[0])
    key = [
        "device",
        "notes",
        "dtype",
        "tokens",
        "hidden",
        "inter",
        "experts",
        "topk",
        "moe_tp",
        "moe_ep",
        "distribution",
    ]
    mine = [part.table[key].assign(implementation=part.name, out=part.out) for part in parts]
    every = pd.concat(found, ignore_index=True).drop(columns="implementation")
    return every.merge(pd.concat(mine).drop_duplicates(key), on=key)


def of_hopper(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are of the first table: an H100 or H200, in 16 bits or 8."""
    return rows["device"].isin(HOPPER) & rows["dtype"].isin(["bf16", "fp8", "fp8_block"])


def table_of(rows: pd.DataFrame, together: list[str]) -> str:
    """Return a table of the README, at its end all rows alike in the columns ``together``."""
    cells, every = [], []
    for name, mine in rows.groupby("implementation"):
        mine = with_rooflines(mine.reset_index(drop=True))
        every.append(mine)
        cells += [_cells(str(name), str(device), part) for device, part in mine.groupby("device")]
    whole = pd.concat(every, ignore_index=True)
    for alike, part in whole.groupby(together):
        *device, dtype = map(str, alike if isinstance(alike, tuple) else (alike,))
        cells.append(_cells(f"all of {dtype}", "".join(device), part))
    return markdown(HEADER, cells, 2)


def _cells(name: str, device: str, part: pd.DataFrame) -> tuple[str, ...]:
    us, out = part["latency_us"], part["out"].to_numpy(bool)
    error = 100 * np.abs(part["predicted_us"] / us - 1)
    even = (part["distribution"] == "balanced").to_numpy()
    roofline = 100 * np.abs(part["three_us"] / us - 1)
    means = [error[mask].mean() if mask.any() else np.nan for mask in (~out, out, out & even, out & ~even)]
    numbers = (*means, error[out].median(), roofline[out].mean())
    words = ("-" if np.isnan(x) else f"{x:.1f}" for x in numbers)
    return name, device, str(int((~out).sum())), str(int(out.sum())), *words


def main() -> None:
    """Fit where asked, print the table, and write it where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", nargs="?", const="", help="fit anew those of this expression, and write them")
    parser.add_argument("--write", action="store_true", help="write the README's table")
    arguments = parser.parse_args()
    table, frame = measured_rows()
    parts = parts_of(frame, arguments.fit or "")
    if arguments.fit is not None:
        answers, costs = fitted(parts, table)
        for name, answer in answers.items():
            answer.write(CALIBRATION / "implementations" / f"{name}.toml")
        write_passes(costs)
        return
    rows = shipped(frame, parts)
    first, warp = of_hopper(rows), rows["device"].isin(WARP_LEVEL)
    tables = {
        "mixtures": table_of(rows[first], ["dtype"]),
        "others": table_of(rows[~first & ~warp], ["device", "dtype"]),
        "warp_level": table_of(rows[warp], ["device", "dtype"]),
    }
    for name, found in tables.items():
        print(found)
        if arguments.write:
            write_table(HERE / "README.md", name, found)


if __name__ == "__main__":
    main()

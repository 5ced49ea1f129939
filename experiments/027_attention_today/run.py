"""Attention of today's libraries: calibrations by library and release, and what they are worth on families left out.

Run with ``python experiments/027_attention_today/run.py [--fit [NAME ...]] [--write]`` (a minute; with ``--fit``, which
fits anew and writes the calibrations that are shipped, half an hour on a core). Families whose CRC-32 modulo 10 is 7 or
more are never fitted. Prints the README's tables, and with ``--write`` puts them there.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from today import between_gpus, fitted, names, shipped_us, today_rows, write

import dse
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import StageResult
from dse.measured.timed_rows import TimedRows
from dse.validation.baselines import with_rooflines
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
SHIPPED = Path(dse.__file__).parent / "data" / "calibration" / "implementations"

HEADER = ("implementation", "GPU", "fitted rows", "left out", "fitted, %", "left out, %", "roofline, %")


def with_errors(name: str, rows: TimedRows) -> pd.DataFrame:
    """Return an implementation's rows with the shipped calibration's errors and a fitted roofline's [%]."""
    table = with_rooflines(rows.table)
    us = table["latency_us"].to_numpy()
    off = {"error": 100 * np.abs(shipped_us(name, rows) / us - 1), "roofline": 100 * np.abs(table["three_us"] / us - 1)}
    return table.assign(implementation=name, out=left_out(table["family"]), **off)


def tables_of(rows: Mapping[str, TimedRows]) -> tuple[str, str]:
    """Return the README's tables: of implementations, and of GPUs and operators together."""
    every = pd.concat([with_errors(name, mine) for name, mine in rows.items()], ignore_index=True)
    groups = every.groupby(["implementation", "device"], sort=False, observed=True)
    one = [_cells(str(name), str(device), part) for (name, device), part in groups]
    together = every.groupby(["op", "device"], observed=True)
    all_of = [_cells(str(op), str(device), part) for (op, device), part in together]
    return markdown(HEADER, one, 2), markdown(("operator", *HEADER[1:]), all_of, 2)


def _cells(name: str, device: str, part: pd.DataFrame) -> tuple[str, ...]:
    out = part[part["out"]]
    means = part.loc[~part["out"], "error"].mean(), out["error"].mean(), out["roofline"].mean()
    return name, device, str(len(part) - len(out)), str(len(out)), *(f"{x:.1f}" for x in means)


def show(stage: StageResult) -> None:
    """Print the errors after a stage of a fit."""
    print(stage.name, stage.rows, stage.fitted, stage.left_out, flush=True)


def main() -> None:
    """Fit where asked, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", nargs="*", help="fit these implementations anew, or all, and write their calibrations")
    parser.add_argument("--write", action="store_true", help="write the README's tables")
    arguments = parser.parse_args()
    skipped = Skipped()
    tables, rows = today_rows(skipped)
    print("skipped:", dict(skipped), flush=True)
    if arguments.fit is not None:
        between = between_gpus(tables, rows)
        for name in arguments.fit or names():
            print(name, flush=True)
            write(name, fitted(name, tables, rows[name], report=show), between, SHIPPED)
    one, together = tables_of(rows)
    print(one, together, sep="\n\n")
    if arguments.write:
        write_table(HERE / "README.md", "implementations", one)
        write_table(HERE / "README.md", "together", together)


if __name__ == "__main__":
    main()

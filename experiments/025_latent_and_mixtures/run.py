"""Latent attention and all-reduces: calibrations by library, and what they are worth on families left out.

Run with ``python experiments/025_latent_and_mixtures/run.py [--fit] [--write]`` (two minutes; with ``--fit``, which
fits anew and writes the calibrations that are shipped, half an hour on two busy cores). Families whose CRC-32 modulo 10
is 7 or more are never fitted. Prints the README's tables, and with ``--write`` puts them there.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from all_reduces import fit, measured_rows, of_library, predicted_us, three_numbers
from latent import FITTED, fitted, latent_rows, transfers, write

from dse.base.skipped_rows import Skipped
from dse.measured.timed_rows import TimedRows
from experiments.common.implementations import HEADER, SHIPPED, row_of, show, with_errors
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent


def table_of(names: Sequence[str], rows: Mapping[str, TimedRows]) -> str:
    """Return the README's table of some implementations."""
    every = pd.concat([with_errors(name, rows[name]) for name in names], ignore_index=True)
    cells = []
    for (name, device), part in every.groupby(["implementation", "device"], sort=False, observed=True):
        cells.append(row_of(str(name), str(device), part))
    for op, part in every.groupby("op", observed=True):
        cells.append(row_of(f"all of {op}", "", part))
        hopper = part[part["device"].astype(str).str.startswith(("H100", "H200", "B200"))]
        cells.append(row_of(f"all of {op}", "H100, H200, B200", hopper))
    return markdown(HEADER, cells, 2)


def collectives_table() -> str:
    """Return the README's table of all-reduces."""
    rows = measured_rows()
    us = rows["latency_us"].to_numpy()
    off = {"error": predicted_us(rows), "roofline": three_numbers(rows)}
    rows = rows.assign(**{name: 100 * np.abs(found / us - 1) for name, found in off.items()})
    cells = []
    for (library, gpu), part in rows.groupby(["library", "gpu"]):
        cells.append(row_of(str(library), str(gpu), part))
    for library, part in rows.groupby("library"):
        cells.append(row_of(str(library), "all", part))
    return markdown(("library", *HEADER[1:]), cells, 2)


def main() -> None:
    """Fit where asked, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", action="store_true", help="fit anew and write the calibrations that are shipped")
    parser.add_argument("--write", action="store_true", help="write the README's tables")
    arguments = parser.parse_args()
    if arguments.fit:
        print("all-reduces:", {k: round(v, 3) for k, v in fit(of_library(measured_rows())).items()})
    reduced = collectives_table()
    print(reduced, flush=True)
    if arguments.write:
        write_table(HERE / "README.md", "collectives", reduced)
    skipped = Skipped()
    table, rows = latent_rows(skipped)
    print("skipped:", dict(skipped), flush=True)
    if arguments.fit:
        answers = {name: fitted(name, table, rows[name], report=show) for name in FITTED}
        write(answers, transfers(table, rows), SHIPPED)
    found = table_of(FITTED, rows)
    print(found)
    if arguments.write:
        write_table(HERE / "README.md", "latent", found)


if __name__ == "__main__":
    main()

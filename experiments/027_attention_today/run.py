"""Attention of today's libraries: calibrations by library and release, and what they are worth on families left out.

Run with ``python experiments/027_attention_today/run.py [--fit [NAME ...]] [--write]`` (two to three minutes; with
``--fit`` it fits anew and writes the calibrations that are shipped). Families whose CRC-32 modulo 10 is 7 or more are
never fitted. Prints the README's tables, and with ``--write`` puts them there.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from today import between_gpus, fitted, names, today_rows, write

from dse.base.skipped_rows import Skipped
from dse.measured.timed_rows import TimedRows
from experiments.common.implementations import HEADER, SHIPPED, row_of, show, with_errors
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent


def tables_of(rows: Mapping[str, TimedRows]) -> tuple[str, str]:
    """Return the README's tables: of implementations, and of GPUs and operators together."""
    every = pd.concat([with_errors(name, mine) for name, mine in rows.items()], ignore_index=True)
    groups = every.groupby(["implementation", "device"], sort=False, observed=True)
    one = [row_of(str(name), str(device), part) for (name, device), part in groups]
    together = every.groupby(["op", "device"], observed=True)
    all_of = [row_of(str(op), str(device), part) for (op, device), part in together]
    return markdown(HEADER, one, 2), markdown(("operator", *HEADER[1:]), all_of, 2)


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

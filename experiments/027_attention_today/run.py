"""Attention of today's libraries: calibrations by library and release, and what they are worth on families left out.

Run with ``python experiments/027_attention_today/run.py [--fit [NAME ...]] [--write]`` (two to three minutes; with
``--fit`` it fits anew and writes the calibrations that are shipped). Families whose CRC-32 modulo 10 is 7 or more are
never fitted. Prints the README's tables, and with ``--write`` puts them there.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from today import between_gpus, fitted, names, today_rows, write

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import left_out
from dse.measured.timed_rows import TimedRows
from dse.timing.calibration import calibration_for, load_timing_calibration
from dse.validation.error_quantiles import errors_of
from experiments.common.implementations import HEADER, SHIPPED, row_of, shipped_us, show, with_errors
from experiments.common.modules import experiment
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent


COVERED = ("operator", "GPU", "left-out rows", "by folds, %", "as shipped, %")


def tables_of(rows: Mapping[str, TimedRows], us: Mapping[str, np.ndarray]) -> tuple[str, str]:
    """Return the README's tables, by the times that are predicted [us]: of implementations, and of GPUs and operators
    together."""
    every = pd.concat([with_errors(name, mine, us[name]) for name, mine in rows.items()], ignore_index=True)
    groups = every.groupby(["implementation", "device"], sort=False, observed=True)
    one = [row_of(str(name), str(device), part) for (name, device), part in groups]
    together = every.groupby(["op", "device"], observed=True)
    all_of = [row_of(str(op), str(device), part) for (op, device), part in together]
    return markdown(HEADER, one, 2), markdown(("operator", *HEADER[1:]), all_of, 2)


def coverage(rows: Mapping[str, TimedRows], us: Mapping[str, np.ndarray]) -> str:
    """Return a table of how many left-out rows lie within the interval called 80 %: each family held to what nine
    tenths of the others make, and to the interval that it helped make."""
    judge = experiment("012_timing_calibration", "interval_coverage.py")
    parts = [errors_of(mine.table, us[name]).assign(implementation=name) for name, mine in rows.items()]
    every = pd.concat(parts, ignore_index=True)
    every = every.assign(out=left_out(every["family"]))
    out = every[every["out"]].reset_index(drop=True)
    calibrations = {str(gpu): load_timing_calibration(calibration_for(str(gpu))) for gpu in out["gpu"].unique()}
    out, dealt = out.assign(inside=judge.inside(out, calibrations)), judge.by_folds(out, calibrations)
    cells = []
    for columns, together in ((["op", "device"], ""), (["op"], "all")):
        shares = judge.share(out, columns).join(judge.share(dealt, columns)["within"].rename("new"))
        for name, count, within, new in shares.itertuples():
            op, device = name if isinstance(name, tuple) else (name, together)
            told = ("-" if np.isnan(x) else f"{x:.0f}" for x in (new, within))
            cells.append((str(op), str(device), str(count), *told))
    return markdown(COVERED, cells, 2)


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
    us = {name: shipped_us(name, mine) for name, mine in rows.items()}
    one, together = tables_of(rows, us)
    for name, table in {"implementations": one, "together": together, "coverage": coverage(rows, us)}.items():
        print(table, end="\n\n")
        if arguments.write:
            write_table(HERE / "README.md", name, table)


if __name__ == "__main__":
    main()

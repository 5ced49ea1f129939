"""Novelty: how much wider the interval of a time is where memory type, generation or GPU are new to a fit.

Run with ``python experiments/023_novelty/run.py [--errors [KIND ...]] [--write]`` (half a minute). Writes the README's
tables; ``--errors`` makes the errors of classes left out anew from the measured rows first (an hour on two cores), of
some kinds of kernels alone where they are named; ``--write`` writes the table that the package ships.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import pandas as pd
from widening import KINDS, Case, Judged, apart, cases, judged, of_class, shares_of

import dse
from dse.timing.novelty import GENERATION, GPU, MEMORY_TYPE
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
ERRORS = HERE / "class_errors.parquet"
SHIPPED = Path(dse.__file__).parent / "data" / "calibration" / "novelty.csv"

WORDS = {GPU: "GPU", MEMORY_TYPE: "memory type", GENERATION: "generation"}


def jackknifed(every: list[Case]) -> dict[str, tuple[float, float]]:
    """Return kind -> least and greatest share, each class left out in turn."""
    classes = sorted({(case.kind, of_class(case)) for case in every})
    found = [shares_of([case for case in every if apart(case, *one)]) for one in classes]
    return {kind: (min(f[kind] for f in found), max(f[kind] for f in found)) for kind in KINDS}


def table_of(found: list[Judged]) -> pd.DataFrame:
    """Return the share within [%] and the half width [%] of each class, its cases counting alike."""
    rows = [(x.case.kind, of_class(x.case), x.case.kernels, len(x.case.rows), x.within, x.half) for x in found]
    frame = pd.DataFrame(rows, columns=["kind", "class", "kernels", "rows", "within", "half"])
    by = frame.groupby(["kind", "class"], sort=False)
    table = by.agg({"kernels": lambda k: ", ".join(sorted(set(k))), "rows": "sum", "within": "mean", "half": "median"})
    return table.assign(within=100 * table["within"], half=100 * np.expm1(table["half"])).reset_index()


def tables(every: list[Case], plain: pd.DataFrame, table: pd.DataFrame) -> dict[str, str]:
    """Return the README's tables: coverage by kind, by class, and the shares."""
    kinds = []
    for kind, part in table.groupby("kind", sort=False):
        before = plain[plain["kind"] == kind]
        cells = [f"{part['within'].mean():.0f}", f"±{part['half'].median():.0f} %"]
        cells += [f"{before['within'].mean():.0f}", f"±{before['half'].median():.0f} %"]
        kinds.append([WORDS[str(kind)], str(len(part)), *cells])
    classes = []
    for row in table.itertuples(index=False):
        name, kernels, rows, within, half = row[1:]
        classes.append([WORDS[row[0]], name, kernels, str(rows), f"{within:.0f}", f"±{half:.0f} %"])
    shares, ends = shares_of(every), jackknifed(every)
    found = [[WORDS[k], f"{shares[k]:.2f}", f"{ends[k][0]:.2f} to {ends[k][1]:.2f}"] for k in KINDS]
    within = ["within, %", "median interval", "not widened: within, %", "interval"]
    return {
        "kinds": markdown(["new", "classes", *within], kinds),
        "classes": markdown(["new", "class", "kernels", "rows", "within, %", "interval"], classes, 3),
        "shares": markdown(["what is new", "share of the variance", "a class left out in turn"], found),
    }


def write(every: list[Case]) -> None:
    """Write the table that the package ships."""
    shares, ends = shares_of(every), jackknifed(every)
    with SHIPPED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "value", "low", "high", "classes", "unit", "source", "status"])
        for kind in KINDS:
            classes = len({of_class(case) for case in every if case.kind == kind})
            numbers = [f"{x:.3f}" for x in (shares[kind], *ends[kind])]
            writer.writerow([kind, *numbers, classes, "1", "experiments/023_novelty: classes left out", "fitted"])


def main() -> None:
    """Learn and judge; write the README's tables, and the package's where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--errors", nargs="*", choices=("products", "attention", "vector"))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.errors is not None:
        import class_errors  # builds kernels and fits, which nothing else here needs

        kinds, before = arguments.errors or tuple(class_errors.MADE), pd.read_parquet(ERRORS)
        kept = before[~class_errors.kind_of(before["kernels"]).isin(kinds)]
        pd.concat([kept, class_errors.cases_of(kinds)], ignore_index=True).to_parquet(ERRORS, index=False)
    every = cases(pd.read_parquet(ERRORS))
    plain = table_of(list(judged(every, learn=lambda others: dict.fromkeys(KINDS, 0.0) | {GPU: 1.0})))
    for name, table in tables(every, plain, table_of(list(judged(every)))).items():
        write_table(HERE / "README.md", name, table)
    if arguments.write:
        write(every)


if __name__ == "__main__":
    main()

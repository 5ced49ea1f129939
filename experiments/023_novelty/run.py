"""Novelty: how much wider the interval of a time is where memory type, generation or GPU are new to a fit.

Run with ``python experiments/023_novelty/run.py [--errors] [--write]`` (half a minute). Prints the README's tables;
``--errors`` makes the errors of classes left out anew from the measured rows first (an hour on two cores), ``--write``
writes the table that the package ships, and the README's result.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import pandas as pd
from widening import KINDS, Case, Judged, apart, cases, judged, of_class, shares_of

import dse
from dse.timing.novelty import GENERATION, GPU, MEMORY_TYPE

HERE = Path(__file__).parent
ERRORS = HERE / "class_errors.parquet"
SHIPPED = Path(dse.__file__).parent / "data" / "calibration" / "novelty.csv"

WORDS = {GPU: "GPU", MEMORY_TYPE: "memory type", GENERATION: "generation"}

RESULT = "## Result\n"
"""Where the README's result begins, which ``--write`` writes."""


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


def markdown(every: list[Case], plain: pd.DataFrame, table: pd.DataFrame) -> str:
    """Return the README's tables: coverage by kind, by class, and the shares."""
    text = ["| new | classes | within, % | median interval | not widened: within, % | interval |", "|---" * 6 + "|"]
    for kind, part in table.groupby("kind", sort=False):
        before = plain[plain["kind"] == kind]
        cells = [f"{part['within'].mean():.0f}", f"±{part['half'].median():.0f} %"]
        cells += [f"{before['within'].mean():.0f}", f"±{before['half'].median():.0f} %"]
        text.append(f"| {WORDS[str(kind)]} | {len(part)} | " + " | ".join(cells) + " |")
    text += ["", "| new | class | kernels | rows | within, % | interval |", "|---" * 6 + "|"]
    for row in table.itertuples(index=False):
        name, kernels, rows, within, half = row[1:]
        text.append(f"| {WORDS[row[0]]} | {name} | {kernels} | {rows} | {within:.0f} | ±{half:.0f} % |")
    text += ["", "| what is new | share of the variance | a class left out in turn |", "|---|---|---|"]
    shares, ends = shares_of(every), jackknifed(every)
    text += [f"| {WORDS[kind]} | {shares[kind]:.2f} | {ends[kind][0]:.2f} to {ends[kind][1]:.2f} |" for kind in KINDS]
    return "\n".join(text) + "\n"


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
    """Learn, judge and print; write where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.errors:
        import class_errors  # builds kernels and fits, which nothing else here needs

        class_errors.every_case().to_parquet(ERRORS, index=False)
    every = cases(pd.read_parquet(ERRORS))
    plain = table_of(list(judged(every, learn=lambda others: dict.fromkeys(KINDS, 0.0) | {GPU: 1.0})))
    text = markdown(every, plain, table_of(list(judged(every))))
    print(text)
    if arguments.write:
        write(every)
        readme = HERE / "README.md"
        readme.write_text(readme.read_text(encoding="utf-8").partition(RESULT)[0] + RESULT + "\n" + text)


if __name__ == "__main__":
    main()

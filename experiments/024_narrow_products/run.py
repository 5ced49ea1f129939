"""Calibrations of products in narrow types, the framework's kernels and its pass over the activations apart.

Run with ``python experiments/024_narrow_products/run.py [--fit] [--only NAME ...]`` (four minutes on two cores, with
``--fit`` forty). Families whose CRC-32 modulo 10 is 7 or more are never fitted. Writes the README's table; ``--fit``
first fits and writes the calibrations and the passes, ``--only`` those implementations alone, the passes held.
``--unnamed`` writes the intervals of products that name no framework, and nothing else (a minute).
"""

import argparse
import csv
from pathlib import Path

from dse.calibration.timing.answer import TimingAnswer
from experiments.common.modules import experiment
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
DATA = Path(__file__).parents[2] / "dse" / "data" / "calibration"
README = HERE / "README.md"
PASSES = "quantisation_passes.csv"


def write_passes(found: dict[str, tuple[float, float]]) -> None:
    """Write the fitted numbers of every framework's pass over activations, by "way, release, generation"."""
    with (DATA / PASSES).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["way", "release", "generation", "launches", "stretch", "unit", "source", "status"])
        for name, (launches, stretch) in sorted(found.items()):
            numbers = (f"{launches:.4g}", f"{stretch:.4g}")
            writer.writerow([*name.split(", "), *numbers, "1", "experiments/024_narrow_products", "fitted"])


def write(answers: dict[str, TimingAnswer]) -> None:
    """Write the calibrations of implementations."""
    for name, answer in answers.items():
        answer.write(DATA / "implementations" / f"{name}.toml")


def write_unnamed() -> None:
    """Write the intervals of products that name no framework into the calibrations that stand for them."""
    unnamed = experiment(HERE.name, "unnamed.py")
    for name, rows in unnamed.intervals().items():
        path = DATA / "implementations" / f"{name}.toml"
        path.write_text(unnamed.with_intervals(path.read_text(encoding="utf-8"), rows), encoding="utf-8")
        print(*rows, sep="\n")


def main() -> None:
    """Fit where asked, judge, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--unnamed", action="store_true")
    arguments = parser.parse_args()
    if arguments.unnamed:
        write_unnamed()
        return
    if arguments.fit or arguments.only:
        fits = experiment(HERE.name, "fits.py")
        answers, passes = fits.fitted(arguments.only)
        write(answers)
        if not arguments.only:
            write_passes(passes)
        write_unnamed()
    lines = experiment(HERE.name, "judged.py").lines()
    write_table(README, "errors", markdown(*lines, left=3))
    print(markdown(*lines, left=3))


if __name__ == "__main__":
    main()

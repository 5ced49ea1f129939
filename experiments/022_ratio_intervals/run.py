"""Intervals of ratios: what two predictions of one model, both on GPUs that it has not seen, are off by together.

Run with ``python experiments/022_ratio_intervals/run.py [--pairs] [--power] [--write]`` (half a minute on two cores).
Writes the README's result; ``--pairs`` makes the errors of pairs of times anew from the measured rows first (twenty
minutes), ``--power`` those of watts, ``--write`` writes the table of terms that the package ships.
"""

import argparse
import contextlib
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from paired_fit import LeftOut, Pair, fit, intervals, left_out_in_turn, other_devices, other_pair, weights, widening

import dse
from dse.base.package_tables import read_table
from dse.comparison.area_loading import STATED, stated_error
from dse.comparison.ratio_terms import distances
from dse.evaluate.area_elasticities import coefficients, is_exact
from dse.hardware.area import DieArea
from dse.hardware.presets import load_sheet
from experiments.common.modules import experiment
from experiments.common.readme_tables import write_table

HERE = Path(__file__).parent
ERRORS = HERE / "pair_errors.parquet"
SHIPPED = Path(dse.__file__).parent / "data" / "calibration" / "ratio_errors.csv"

SIDES = ("dram_bandwidth", "l2", "sms_and_clock", "sm_parts", "memory_type", "generation")
TERMS = {
    ("time", "arithmetic"): ("tensor_rate", *SIDES),
    ("time", "memory"): (*SIDES, "latency"),
    ("power", "all"): ("tensor_rate", *SIDES, "node"),
}
"""Metric and class of kernels -> the terms that may count: a kernel bound by bytes does not follow the tensor rate."""

LEAST_ROWS = 25
LEAST_RUNS = 8
"""Rows of a pair that tells anything; of whole networks fewer tell as much."""


def pairs_of(rows: pd.DataFrame, metric: str, kernels: str) -> list[Pair]:
    """Return the pairs of a metric and a class of kernels."""
    rows, found = rows[(rows["metric"] == metric) & (rows["kernels"] == kernels)], []
    for (table, one, two, kind), part in rows.groupby(["table", "first", "second", "kind"]):
        if len(part) >= (LEAST_RUNS if kind == "runs" else LEAST_ROWS):
            far = _far(str(one), str(two), TERMS[metric, kernels])
            found.append(Pair(str(table), str(one), str(two), str(kind), far, part["error"].to_numpy()))
    return found


def _far(one: str, two: str, terms: tuple[str, ...]) -> np.ndarray:
    """How far two GPUs lie apart in each term."""
    sheets = [load_sheet(name).numbers() for name in (one, two)]
    numbers = {name: np.array([sheet[name] for sheet in sheets]) for name in sheets[0]}
    types = ("bf16",) if (numbers["tensor_fma_bf16"] > 0).all() else ("fp16",)
    far = distances(numbers, types)
    return np.array([np.sqrt(np.sum(far[term][1] ** 2)) for term in terms])


def areas() -> tuple[list[Pair], list[str]]:
    """Return the pairs of dies of experiments/005, neither in the fit, and terms beside the stated intervals."""
    fits, names = experiment("005_die_area"), [name for name in coefficients() if not is_exact(name)]
    rows = {row["coefficient"]: row for row in read_table("process/area.csv")}
    stated = np.array([stated_error(rows.get(name, {})) for name in names])
    of_node = np.array([name.startswith("nodes.") for name in names])
    slopes = {name: _slopes(die.record) for name, die in fits.dies().items()}
    found = []
    for (one, two), error in fits.pairs().items():
        apart = slopes[one] - slopes[two]
        far = [np.linalg.norm(apart[~of_node & (stated == 0)]), np.linalg.norm(apart[of_node])]
        known = float(np.linalg.norm(apart * stated))
        found.append(Pair("dies", one, two, "areas", np.array(far), np.array([error]), known))
    return found, ["coefficient", "node"]


def _slopes(record: SimpleNamespace) -> np.ndarray:
    """d ln(area) / d ln(coefficient) of a die."""
    model = DieArea.from_table()
    slope = eqx.filter_grad(lambda m: jnp.log(m.total(record)))(model)
    both = zip(jax.tree.leaves(slope), jax.tree.leaves(model), strict=True)
    every = np.concatenate([np.ravel(np.asarray(s) * np.asarray(v)) for s, v in both])
    return every[[not is_exact(name) for name in coefficients()]]


def table_lines(title: str, pairs: list[Pair], terms: list[str]) -> Iterator[list[str]]:
    """Print a fit with its coverage, and yield the rows of the shipped table."""
    found, ends = fit(pairs), intervals(pairs)
    judgements = left_out_in_turn(pairs, other_pair)
    wider = widening([(one.pair, one.spread) for one in judgements]) if judgements else 1.0
    if any(pair.known for pair in pairs):
        wider = max(wider, 1.0)  # evidence beside these pairs stands behind what is stated
    print(f"\n### {title}: {len(pairs)} pairs of {len(set().union(*(p.devices for p in pairs)))}, widened {wider:.2f}")
    print("| term | log error for one unit | over resampled pairs |\n|---|---|---|")
    values = wider * np.array([*found.terms, found.floor])
    names = [*terms, "floor"] if title != "area, all" else terms
    for name, value, low, high in zip(names, values, *(wider * ends), strict=False):
        print(f"| {name} | {value:.3f} | {low:.3f} to {high:.3f} |")
        yield [name, *(f"{x:.4f}" for x in (value, low, high)), str(len({p.devices for p in pairs}))]
    if any(pair.known for pair in pairs):
        print(f"| {STATED} | {wider:.3f} | |")
        yield [STATED, *[f"{wider:.4f}"] * 3, str(len({p.devices for p in pairs}))]
    show(judgements, left_out_in_turn(pairs, other_devices))


def show(*ways: list[LeftOut]) -> None:
    """Print the coverage and the width of pairs that the fit has not seen, in each way of leaving them out."""
    for words, judgements in zip(("the pair left out", "both devices left out"), ways, strict=True):
        if not judgements:
            print(f"{words}: too few pairs")
            continue
        weight = weights([one.pair for one in judgements])
        share = 100 * np.average([one.coverage for one in judgements], weights=weight)
        half = np.median([np.exp(one.half) - 1 for one in judgements])
        within = f"{words}: {share:.0f} % of {len(judgements)} pairs' rows within"
        print(f"{within}, median interval of a ratio ±{100 * half:.0f} %")
    print("| pair | of | rows | 80 % of errors below | interval | within |\n|---|---|---|---|---|---|")
    for one in ways[0] if len(ways[0]) < 40 else ():
        pair, half = one.pair, np.exp(one.half) - 1
        below = np.exp(np.quantile(np.abs(pair.errors), 0.8)) - 1
        print(
            f"| {pair.first} / {pair.second} | {pair.kind}, {pair.table} | {len(pair.errors)} | {100 * below:.0f} % | "
            f"±{100 * half:.0f} % | {100 * one.coverage:.0f} % |"
        )


def main() -> None:
    """Fit and judge; write the README's result, and the package's table where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for metric, wanted in (("time", arguments.pairs), ("power", arguments.power)):
        if wanted:
            renew(metric)
    rows, lines, printed = pd.read_parquet(ERRORS), [], io.StringIO()
    with contextlib.redirect_stdout(printed):
        for (metric, kernels), terms in TERMS.items():
            found = table_lines(f"{metric}, {kernels}", pairs_of(rows, metric, kernels), list(terms))
            lines += [[metric, kernels, *line] for line in found]
        lines += [["area", "all", *line] for line in table_lines("area, all", *areas())]
    write_table(HERE / "README.md", "result", printed.getvalue().strip())
    if arguments.write:
        write(lines)


def renew(metric: str) -> None:
    """Make the errors of pairs of one metric anew; those of the other stay."""
    import pairs  # builds kernels and fits, which nothing else here needs

    found = {"time": pairs.time_errors, "power": pairs.power_errors}[metric]()
    others = pd.read_parquet(ERRORS)
    pd.concat([others[others["metric"] != metric], found]).to_parquet(ERRORS, index=False)


def write(lines: list[list[str]]) -> None:
    """Write the table of terms; what others than these pairs told stays."""
    kept = [list(row.values()) for row in read_table("calibration/ratio_errors.csv") if row["status"] == "derived"]
    with SHIPPED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["metric", "kernels", "term", "value", "low", "high", "pairs", "unit", "source", "status"])
        for line in lines:
            prior = line[0] == "power"  # two pairs of boards tell a scale, and no term
            source = f"experiments/022_ratio_intervals: {'two pairs of boards' if prior else 'pairs, both left out'}"
            writer.writerow([*line, "1", source, "prior" if prior else "fitted"])
        writer.writerows(kept)


if __name__ == "__main__":
    main()

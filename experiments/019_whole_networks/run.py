"""Whole networks: kernels by the timing model, and what an engine's host adds, fitted engine by engine.

Run with ``python experiments/019_whole_networks/run.py [--write]``, which writes the README's tables; ``--write`` also
puts the fitted costs and intervals into the package's table of engines.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import dse
from dse.base.skipped_rows import Skipped
from dse.calibration.engine.fit import Runs, measured_runs
from dse.measured.table import read_times
from dse.validation.error_quantiles import quantiles
from dse.workload.serving_engine import SHARED
from experiments import data
from experiments.common.readme_tables import markdown, write_table

TABLES = ("splitwise__llm_e2e", "llm_inference_bench__e2e", "aiconfigurator__serving_e2e", "neusight__e2e_fp32")
DATA = Path(dse.__file__).parent / "data" / "engines"
README = Path(__file__).parent / "README.md"
HOST = ("step_us", "request_us", "prompt_us", "reduce_us")
SERVED = (*HOST, "turn")
FREE = {
    "vllm_2023_a100_host": ("launch_us", *HOST),
    "vllm_2023_h100_host": ("launch_us", *HOST),
    "vllm_2024": HOST,
    "trtllm_2024": HOST,
    "pytorch_eager": (),
}
"""What is fitted: launches where they are eager, a prefill's turn where requests are served in flight (all others)."""

EAGER = ("vllm_2023_a100_host", "vllm_2023_h100_host", "pytorch_eager")
"""Engines that do not replay graphs."""
DIGITS = 3


def percent(error: np.ndarray) -> str:
    """Mean error and, in brackets, the median [%]."""
    off = 100 * np.abs(np.expm1(error))
    if not len(off):
        return "-"
    return f"{off.mean():.1f} ({np.median(off):.1f})"


def fitted(runs: Runs) -> dict[str, dict[str, float]]:
    """Fit every engine, write its errors into the README and return its costs and interval."""
    found, lines = {}, []
    for engine, mine in runs.table.groupby("engine"):
        if engine == SHARED:
            continue
        rows = (runs.table["engine"] == engine).to_numpy()
        out, free = runs.table["out"].to_numpy(), FREE.get(str(engine), SERVED)
        costs = runs.fit(rows & ~out, free) if free else {}
        seen, unseen = runs.error(rows & ~out, costs), runs.error(rows & out, costs)
        bare = runs.error(rows, {})
        low, _, high = quantiles(unseen, runs.table["family"][rows & out])
        others = (
            [
                percent(_transferred(runs, rows, runs.table[by].to_numpy(), free)) if mine[by].nunique() > 1 else "-"
                for by in ("group", "device")
            ]
            if free
            else ["-", "-"]
        )
        inside = 100 * np.mean((unseen >= low) & (unseen <= high))
        lines.append([str(engine), str(len(mine)), *map(percent, (bare, seen, unseen)), f"{inside:.0f}", *others])
        print(*lines[-1], sep=" | ", flush=True)
        found[str(engine)] = {name: costs[name] for name in free} | {"low": low, "high": high}
    header = [
        "engine",
        "runs",
        "kernels alone",
        "fitted",
        "left out",
        "in 80 %",
        "a network never seen",
        "a GPU never seen",
    ]
    write_table(README, "engines", markdown(header, lines))
    return found | {SHARED: _shared(runs)}


def _transferred(runs: Runs, rows: np.ndarray, parts: np.ndarray, free: tuple[str, ...]) -> np.ndarray:
    """Errors on each part of ``rows``, predicted by a fit to all its others."""
    every = [(rows & (parts == part), rows & (parts != part)) for part in np.unique(parts[rows])]
    return np.concatenate([runs.error(unseen, runs.fit(seen, free)) for unseen, seen in every])


def _shared(runs: Runs) -> dict[str, float]:
    """Costs for an engine that nobody has measured: of all that replay graphs; the interval: of each by the others."""
    graphs = ~runs.table["engine"].isin([*EAGER, SHARED]).to_numpy()
    error = _transferred(runs, graphs, runs.table["engine"].to_numpy(), SERVED)
    low, _, high = quantiles(error, runs.table["engine"][graphs])
    print(f"\nAn engine that nobody has measured, each by the others: {percent(error)}.")
    unknown = (runs.table["engine"] == SHARED).to_numpy()
    costs = runs.fit(graphs, SERVED)
    print(f"DeepSpeed-MII, never fitted: {percent(runs.error(unknown, costs))} over {unknown.sum()} runs.")
    return {name: costs[name] for name in SERVED} | {"low": low, "high": high}


def write(found: dict[str, dict[str, float]]) -> None:
    """Put fitted numbers into the package's table."""
    with (DATA / "engines.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        value = found.get(row["engine"], {}).get(row["attribute"])
        if value is not None:
            row["value"] = f"{round(value, 6):.{DIGITS}g}"
    _write(DATA / "engines.csv", rows)


def intervals(runs: Runs, found: dict[str, dict[str, float]]) -> list[dict[str, str]]:
    """The interval of each kind of run of each engine, from its left-out runs."""
    rows = []
    for (engine, op), mine in runs.table[runs.table["out"]].groupby(["engine", "op"]):
        if engine == SHARED:
            continue
        mask = runs.table.index.isin(mine.index)
        low, _, high = quantiles(runs.error(mask, found[str(engine)]), mine["family"])
        ends = {"low": f"{low:.{DIGITS}g}", "high": f"{high:.{DIGITS}g}"}
        rows.append(
            {
                "engine": str(engine),
                "op": str(op),
                "runs": str(len(mine)),
                **ends,
                "unit": "1",
                "source": "experiments/019_whole_networks",
                "status": "fitted",
            }
        )
    return rows


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Fit, write the README's tables, and on demand the package's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    tables = [read_times(data.path(name)) for name in TABLES]
    runs = Runs(part for table in tables for part in measured_runs(table, Skipped()))
    nothing_fitted = runs.table["engine"].isin([name for name, free in FREE.items() if not free])
    runs.table["out"] |= nothing_fitted
    found = fitted(runs)
    lines = [
        [engine, *(f"{round(costs[c], 6):.{DIGITS}g}" if c in costs else "" for c in ("launch_us", *SERVED))]
        for engine, costs in found.items()
    ]
    header = ["engine", "launch us", "step us", "request us", "prompt us", "reduce us", "turn"]
    write_table(README, "costs", markdown(header, lines))
    if arguments.write:
        write(found)
        _write(DATA / "intervals.csv", intervals(runs, found))


if __name__ == "__main__":
    main()

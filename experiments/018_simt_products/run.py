"""Calibration of matrix products in fp32 on CUDA cores, from PyTorch's on five GPUs, and what it is worth elsewhere.

Run with ``python experiments/018_simt_products/run.py [--write]`` (ten minutes on two cores). Families whose CRC-32
modulo 10 is 7 or more are never fitted. Prints the README's tables; ``--write`` writes the calibration and the
overheads of the way of measuring, ``--intervals`` only the calibration's intervals; ``--quick`` only judges the shipped
calibration, and writes the README's first table.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.package_tables import read_table
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.fit import model_of, prior_values
from dse.calibration.timing.implementations import load_implementations
from dse.calibration.timing.rows_fit import fit_timed, left_out
from dse.hardware.presets import load_sheet
from dse.measured.protocol_overheads import ANY
from dse.measured.table import read_times
from dse.measured.timed_rows import SEEN, TimedRows, best
from dse.timing.calibration import implementation_calibration, shipped_implementations
from dse.validation.error_quantiles import coverage_by_others, errors_of, rewrite, seen
from dse.validation.error_quantiles import unseen as of_unseen
from experiments import data
from experiments.common.implementations import HEADER, row_of, with_errors
from experiments.common.readme_tables import markdown, write_table
from experiments.data.errors import rows_with_errors

NAME = "matrix_simt"
DATA = Path(__file__).parents[2] / "dse" / "data" / "calibration"
DEVICES = {
    "A100-PCIE-40GB": "a100_pcie_40gb",
    "H100-SXM5-80GB": "h100_sxm",
    "P100-PCIE-16GB": "p100_pcie_16gb",
    "V100-PCIE-32GB": "v100_pcie_32gb",
    "T4": "t4",
}
MOST = 150
"""Rows of a device and operator that are used at most, fitted and left-out ones each."""

ROUNDS = 4
"""Fits in turn of the host's overheads and of the kernels' costs."""

OVERHEADS, SHADOWS = np.geomspace(10, 120, 50), np.r_[0.0, np.geomspace(2, 60, 20)]
"""Candidates of a host's overhead, and of what of a kernel it hides [us]."""


def with_floors(rows: TimedRows, time: np.ndarray, out: np.ndarray) -> TimedRows:
    """Return the rows with the overhead and the shadow of each device and operator that fit kernel times ``time``."""
    table = rows.table.copy()
    measured = table["latency_us"].to_numpy()
    overhead, shadow = np.meshgrid(OVERHEADS, SHADOWS, indexing="ij")
    for at in table.groupby(["device", "op"]).indices.values():
        mine = at[~out[at]]
        seen = overhead[..., None] + np.maximum(time[mine] - shadow[..., None], SEEN * time[mine])
        error = np.abs(np.log(seen / measured[mine])).mean(axis=-1)
        i, j = np.unravel_index(np.argmin(error), error.shape)
        table.loc[at, ["overhead_us", "shadow_us"]] = OVERHEADS[i], SHADOWS[j]
    return replace(rows, table=table)


def kernel_us(values: dict[str, float], rows: TimedRows) -> np.ndarray:
    """Return the rows' times without any overhead [us]."""
    bare = replace(rows, table=rows.table.assign(overhead_us=0.0, shadow_us=0.0))
    return best(model_of(values), bare)[0]


def fitted(rows: TimedRows, gpus: tuple[str, ...], tables: list, seen: np.ndarray) -> tuple[TimingAnswer, TimedRows]:
    """Fit costs to the rows of mask ``seen``, and overheads to all devices' fitted families."""
    out = left_out(rows.table["family"])
    values = prior_values("simt")
    rows, start = with_floors(rows, kernel_us(values, rows), out), None
    for _ in range(ROUNDS - 1):
        start = fit_timed(NAME, tables, gpus, rows.keep(seen), implementation=NAME, start=start).fit.values
        rows = with_floors(rows, kernel_us(start, rows), out)
    answer = fit_timed(NAME, tables, gpus, rows.keep(seen), implementation=NAME, start=start)
    return answer, with_floors(rows, kernel_us(answer.fit.values, rows), out)


def errors(rows: TimedRows, values: dict[str, float], mask: np.ndarray) -> str:
    """Return the error on rows of a mask, and on those from 100 us on, in percent."""
    predicted, _ = best(model_of(values), rows)
    measured = rows.table["latency_us"].to_numpy()
    off, long = 100 * np.abs(predicted / measured - 1), measured >= 100
    bias = np.exp(np.log(predicted / measured)[mask].mean())
    return f"{off[mask].mean():.1f} | {off[mask & long].mean():.1f} | {bias:.2f} |"


def with_mean_floors(rows: TimedRows, known: pd.DataFrame) -> TimedRows:
    """Return the rows with the floors of a host that nobody has measured: by operator the mean of ``known`` ones."""
    floors = known.groupby(["op", "device"])[["overhead_us", "shadow_us"]].first()
    overhead = np.exp(np.log(floors["overhead_us"]).groupby("op").mean())
    shadow = floors["shadow_us"].groupby("op").mean()
    op = rows.table["op"]
    return replace(rows, table=rows.table.assign(overhead_us=op.map(overhead), shadow_us=op.map(shadow)))


def transfers(rows: TimedRows, gpus: tuple[str, ...], tables: list) -> dict[str, pd.DataFrame]:
    """Return each device's rows with errors under a fit to the others, its host's floors being the others' mean."""
    device = rows.table["device"].astype(str).to_numpy()
    found = {}
    for d in sorted(DEVICES):
        others, floored = fitted(rows, gpus, tables, device != d)
        mine = with_mean_floors(rows, floored.table[device != d]).keep(device == d)
        found[d] = errors_of(mine.table, best(model_of(others.fit.values), mine)[0])
    return found


def write_intervals(rows: pd.DataFrame, left: dict[str, pd.DataFrame]) -> None:
    """Rewrite the intervals of the shipped calibration; no parameter changes.

    ``rows``: of :func:`rows_with_errors`; ``left``: of :func:`transfers`. DeepBench's six cards are told by each other,
    since none of its rows was ever fitted.
    """
    own = implementation_calibration(NAME)
    rows = rows[rows["implementation"] == NAME]
    found = seen(rows, own.overheads, own.gpus)
    for op in ("bmm", "gemm_bias"):
        parts = {d: part[part["op"] == op] for d, part in left.items()}
        found += of_unseen(list(parts.values()), NAME, op, "fp32")
        print(f"{op} on a GPU never seen, within the others' interval [%]:", coverage_by_others(list(parts.values())))
    cards = [part for _, part in rows[rows["table"] == "deepbench__gemm"].groupby("gpu")]
    print("DeepBench's cards, within the others' interval [%]:", coverage_by_others(cards))
    found += of_unseen(cards, NAME, "gemm", "fp32", fitted=False)
    rewrite(shipped_implementations()[NAME], found)


def write(answer: TimingAnswer, rows: TimedRows) -> None:
    """Write the calibration and the overheads."""
    answer.write(DATA / "implementations" / f"{NAME}.toml")
    others = [row for row in read_table("calibration/operator_overheads.csv") if row["harness"] != "neusight"]
    with (DATA / "operator_overheads.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["harness", "device", "op", "overhead_us", "shadow_us", "unit", "source", "status"])
        for (device, op), part in rows.table.groupby(["device", "op"]):
            floors = (f"{part[c].iloc[0]:.5g}" for c in ("overhead_us", "shadow_us"))
            writer.writerow(["neusight", device, op, *floors, "us", "experiments/018_simt_products", "fitted"])
        for op, part in with_mean_floors(rows, rows.table).table.groupby("op"):
            floors = (f"{part[c].iloc[0]:.5g}" for c in ("overhead_us", "shadow_us"))
            writer.writerow(["neusight", ANY, op, *floors, "us", "experiments/018_simt_products", "fitted"])
        writer.writerows(row.values() for row in others)


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only judge the shipped calibrations")
    arguments = parser.parse_args()
    tables = [read_times(data.path("neusight__gemm_fp32"))]
    sheets = {device: load_sheet(preset) for device, preset in DEVICES.items()}
    rows = load_implementations(tables[0].frame, sheets, Skipped(), MOST)[NAME]
    device, op = rows.table["device"].astype(str).to_numpy(), rows.table["op"].astype(str).to_numpy()
    gpus = tuple(sorted(DEVICES.values()))
    if arguments.intervals:
        judged = rows_with_errors(("neusight__gemm_fp32", "deepbench__gemm"))
        write_intervals(judged, transfers(rows, gpus, tables))
        return
    if arguments.quick:
        groups = with_errors(NAME, rows).groupby(["op", "device"], observed=True)
        lines = [row_of(str(op), str(device), part) for (op, device), part in groups]
        write_table(Path(__file__).parent / "README.md", "shipped", markdown(("operator", *HEADER[1:]), lines, 2))
        return
    answer, floored = fitted(rows, gpus, tables, np.ones(len(device), bool))
    for stage in answer.fit.stages:
        print(
            f"{stage.name}: {stage.rows} rows, fitted {stage.fitted or 0:.1f} %, left out {stage.left_out or 0:.1f} %"
        )
    print("at bounds:", ", ".join(answer.fit.at_bounds) or "none")
    print("not determined:", ", ".join(answer.fit.undetermined))
    print(" ".join(f"{c['name']} {c['value']:.3g}" for c in answer.coefficients()))
    print("\n| device | operator | left out | from 100 us | bias |\n|---|---|---|---|---|")
    out = left_out(rows.table["family"])
    for d, o in pd.unique(pd.Series(list(zip(device, op, strict=True)))):
        print(f"| {d} | {o} |", errors(floored, answer.fit.values, out & (device == d) & (op == o)), flush=True)
    if arguments.write:
        write(answer, floored)
    print("\n| device never seen | all | from 100 us | bias |\n|---|---|---|---|")
    for d in sorted(DEVICES):
        others, _ = fitted(rows, gpus, tables, device != d)
        theirs = with_floors(rows, kernel_us(others.fit.values, rows), out)
        print(f"| {d} |", errors(theirs, others.fit.values, device == d), flush=True)


if __name__ == "__main__":
    main()

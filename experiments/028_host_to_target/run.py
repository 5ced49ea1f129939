"""Scenarios of host and target: a newer GPU, a wider one, one two generations on, and half of that one.

Run with ``python experiments/028_host_to_target/run.py`` (two minutes of processor time). Writes the README's table.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import GpuSheet, changed, find_preset, preset_sheet
from dse.measured.row_kernels import load_launches
from dse.prediction.learning_rows import LearningRows, groups_of, joined, learning_rows, load_learning_rows
from dse.prediction.merits import group_folds, merits, random_folds
from dse.prediction.predictors import left_out
from dse.prediction.studies import host_rows, with_host
from dse.prediction.table import MeasuredTable, read_measured
from dse.scaling.shrink import SHARED
from dse.timing.amali import Amali
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"
TABLE = "neusight__gemm_fp32"
OPERATOR = ("gemm_bias", "fp32")
PREDICTORS = ("ols", "nnls", "lasso")
TIED = 1.02
"""Errors over the least that count as the least: rounding would choose among them."""

MOST = 600
HALF = "half of h100_sxm"

MEASURED = {
    "S1: the next generation": ("V100-PCIE-32GB", "A100-PCIE-40GB"),
    "S2: newer and more than twice as wide": ("T4", "A100-PCIE-40GB"),
    "S3: two generations on": ("V100-PCIE-32GB", "H100-SXM5-80GB"),
}
"""Scenario -> host and target, both measured."""

SIMULATED = {"S3, the target simulated": "h100_sxm", "S3S: half of that target, simulated": HALF}
"""Scenario -> the target, for which the timing model stands, as a simulator did in the dissertation; host as in S3."""


def half() -> GpuSheet:
    """Return half an H100: its SMs, and everything that they share in proportion."""
    sheet = preset_sheet("h100_sxm")
    numbers = sheet.numbers()
    return changed(sheet, {name: numbers[name] / 2 for name in SHARED}, HALF)


def simulated(measured: MeasuredTable, sheet: GpuSheet, name: str) -> LearningRows:
    """Return the rows of the H100 as the timing model times them on a GPU, under a device's name."""
    launches = load_launches(measured.of("H100"), sheet, Amali(), Skipped())
    assert launches is not None
    us = np.asarray(launches.timing.microseconds, dtype=float)
    rows = learning_rows(launches._replace(frame=launches.frame.assign(latency_us=us)))
    return replace(rows, frame=rows.frame.assign(preset=name))


def e_out(rows: LearningRows, modes: tuple[str, ...]) -> dict[str, tuple[float, float, str]]:
    """Return the least error of PREDICTORS with rows left out at random, with inliers at 10 %, and by family; the
    first of those that are TIED."""
    sample, found = rows.sample(MOST), {}
    folds = {"random": random_folds(len(sample.y)), "family": group_folds(sample.frame["family"].to_numpy(), 5)}
    for kind, fold in folds.items():
        scores = []
        for mode in modes:
            learned = host_rows(sample, mode)
            for name in PREDICTORS:
                predicted, _ = left_out(name, learned, fold, mode == "residual")
                score = merits(predicted, learned.y)
                scores.append((score["error"], score["inliers"]["10"], f"{name}, {mode}"))
        found[kind] = next(score for score in scores if score[0] <= TIED * min(scores)[0])
    return found


def line(name: str, host: str, target: str, rows: LearningRows, modes: tuple[str, ...]) -> list[str]:
    """Return a row of the README's table."""
    found = e_out(rows, modes)
    (error, inliers, best), (families, _, by_family) = found["random"], found["family"]
    off = 100 * np.mean(np.abs(rows.x[:, -3] / rows.y - 1))
    cells = [name, f"{host} to {target}", f"{len(rows.y)}", f"{error:.1f} ({best})", f"{inliers:.0f}"]
    return [*cells, f"{families:.1f} ({by_family})", f"{off:.1f}"]


def main() -> None:
    """Write the table."""
    measured = read_measured(data.path(TABLE))
    names = sorted({str(find_preset(name)) for pair in MEASURED.values() for name in pair})
    every = groups_of(load_learning_rows(measured, names, Amali())[0])[OPERATOR]
    table = []
    for name, pair in MEASURED.items():
        host, target = (str(find_preset(device)) for device in pair)
        table.append(line(name, host, target, with_host(every, host, target), ("plain", "analytical", "residual")))
    host = str(find_preset("V100-PCIE-32GB"))
    for name, target in SIMULATED.items():
        sheet = half() if target == HALF else preset_sheet(target)
        there = groups_of(simulated(measured, sheet, target))[OPERATOR]
        both = joined([every.of(host), there])
        table.append(line(name, host, target, with_host(both, host, target), ("plain",)))
    header = ["scenario", "host to target", "rows", "E_out, %", "within 10 %", "families left out, %",
              "host's time scaled by the data sheets, %"]  # fmt: skip
    write_table(README, "scenarios", markdown(header, table))


if __name__ == "__main__":
    main()

"""Calibrations of attention implementations from public rows, and what they are worth on rows that no fit has seen.

Run with ``python experiments/013_attention/run.py FOLDER [-o FOLDER] [-i IMPLEMENTATION ...]`` (a few minutes on two
cores); FOLDER holds the measured tables. Families whose CRC-32 modulo 10 is 7 or more are never fitted. Prints the
README's tables; with ``-o`` writes the calibrations.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.calibrate.implementations import fit_implementation, load_implementations
from dse.calibrate.measured import OperatorTable, read_times
from dse.calibrate.stages import StageResult
from dse.calibrate.timed import TimedRows, best
from dse.calibrate.timing import TimingAnswer, left_out
from dse.calibrate.timing_fit import model_of
from dse.hardware.presets import load_sheet
from dse.workload.implementation import IMPLEMENTATIONS, implementation_index

TABLES = ("aiconfigurator__attention.csv", "vidur__attention.csv", "llmservingsim__attention.csv")
DEVICES = {
    "A100-SXM4-80GB": "a100_sxm_80gb", "H100-SXM5-80GB": "h100_sxm", "H200-SXM-141GB": "h200",
    "RTXPRO6000-BW": "rtx_pro_6000",
}  # fmt: skip
UNSEEN = (
    ("sglang_prefill", "fa2_prefill"), ("sglang_decode", "fa2_decode"), ("fa2_early_prefill", "fa2_prefill"),
    ("fa2_early_decode", "fa2_decode"), ("fa2_gddr_prefill", "fa2_prefill"), ("fa2_gddr_decode", "fa2_decode"),
)  # fmt: skip
"""Rows of one implementation -> the implementation whose costs predict them."""

ONE_DEVICE = ("fa3_prefill", "fa3_decode")
"""Implementations that several GPUs ran: fitted on an H100 alone they predict an H200."""


def show(stage: StageResult) -> None:
    """Print one stage's errors on fitted and on left-out families."""
    numbers = (stage.fitted, stage.left_out, stage.long_fitted, stage.long_left_out)
    print(f"| {stage.name} | {stage.rows} |", *(f"{x:.1f} |" if x is not None else "- |" for x in numbers), flush=True)


def gpus_of(rows: TimedRows) -> tuple[str, ...]:
    """Return the presets of the rows' devices."""
    return tuple(sorted({DEVICES[device] for device in rows.table["device"].astype(str)}))


def fitted(name: str, tables: list[OperatorTable], rows: TimedRows) -> TimingAnswer:
    """Fit one implementation and print what it is worth."""
    print(
        f"\n### {name}\n| stage | rows | fitted | left out | fitted > 50 us | left out > 50 us |\n" + "|---" * 6 + "|"
    )
    answer = fit_implementation(name, tables, rows, gpus_of(rows), report=show)
    print("at bounds:", ", ".join(answer.fit.at_bounds) or "none")
    print("not determined:", ", ".join(answer.fit.undetermined))
    print(" ".join(f"{c['name']} {c['value']:.3g}" for c in answer.coefficients()))
    out = left_out(rows.table["family"])
    error = 100 * np.abs(answer.fit.predicted_us / rows.table["latency_us"].to_numpy() - 1)
    for (device, op), part in rows.table[out].groupby(["device", "op"]):
        print(f"{device} {op}, left out: n {len(part)}, {error[part.index].mean():.1f} %")
    return answer


def error_of(rows: TimedRows, answer: TimingAnswer, only: np.ndarray | None = None) -> float:
    """Return the error of a fit on other rows [%]."""
    rows = rows if only is None else rows.keep(only)
    same = np.full(len(rows.row), implementation_index(answer.implementation), np.float32)
    rows = replace(rows, kernels=replace(rows.kernels, implementation=same))
    predicted, _ = best(model_of(answer.fit.values), rows)
    return float((100 * np.abs(predicted / rows.table["latency_us"].to_numpy() - 1)).mean())


def unseen(tables: list[OperatorTable], rows: dict[str, TimedRows], answers: dict[str, TimingAnswer]) -> None:
    """Print errors on devices and implementations that a fit has not seen."""
    print("\n### Unseen")
    for mine, theirs in UNSEEN:
        if mine in rows and theirs in answers:
            print(f"{mine} with the costs of {theirs}: {error_of(rows[mine], answers[theirs]):.1f} %")
    for name in ONE_DEVICE:
        if name in answers:
            on = rows[name].table["device"].astype(str).to_numpy() == "H100-SXM5-80GB"
            answer = fit_implementation(name, tables, rows[name].keep(on), ("h100_sxm",))
            print(f"{name} fitted on an H100, on the H200: {error_of(rows[name], answer, ~on):.1f} %")


def main() -> None:
    """Fit and print; write the calibrations where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("-i", "--implementation", action="append", choices=IMPLEMENTATIONS)
    arguments = parser.parse_args()
    tables = [read_times(arguments.folder / name) for name in TABLES]
    frame = pd.concat([t.frame for t in tables], ignore_index=True)
    skipped: dict[str, int] = {}
    rows = load_implementations(frame, {d: load_sheet(p) for d, p in DEVICES.items()}, skipped)
    print("skipped:", skipped)
    chosen = arguments.implementation or list(rows)
    answers = {}
    for name in chosen:
        answers[name] = fitted(name, tables, rows[name])
        if arguments.out:
            answers[name].write(arguments.out / f"{name}.toml")
    unseen(tables, rows, answers)


if __name__ == "__main__":
    main()

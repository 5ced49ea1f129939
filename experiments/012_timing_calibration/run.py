"""Calibrations of A100, H100, H200 and of "a GPU nobody has measured", from public matrix products.

Run with ``python experiments/012_timing_calibration/run.py FOLDER [-o FOLDER]`` (ten minutes on two cores); FOLDER
holds the measured tables. Families whose CRC-32 modulo 10 is 7 or more are never fitted. Prints the README's tables;
with ``-o`` writes the calibrations.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from dse.calibrate.harness import Harness, find_harness
from dse.calibrate.measured import OperatorTable, read_times
from dse.calibrate.stages import StageResult
from dse.calibrate.timed import TimedRows, best, joined
from dse.calibrate.timing import TimingAnswer, fit_timed, left_out, load_timed, residuals
from dse.calibrate.timing_fit import model_of
from dse.hardware.presets import load_sheet
from dse.timing.calibration import Residual

FITTED = "aiconfigurator__gemm.csv"
SECOND = "vidur__gemm.csv"
DEVICES = {"a100_sxm_80gb": "A100-SXM4-80GB", "h100_sxm": "H100-SXM5-80GB", "h200": "H200-SXM-141GB"}


def show(stage: StageResult) -> None:
    """Print one stage's errors: fitted and left-out families, all sizes and above 50 us."""
    numbers = (stage.fitted, stage.left_out, stage.long_fitted, stage.long_left_out)
    print(f"| {stage.name} | {stage.rows} |", *(f"{x:.1f} |" if x is not None else "- |" for x in numbers), flush=True)


def fitted(
    name: str, table: OperatorTable, rows: dict[str, TimedRows], overhead: float | None = None, quiet: bool = False
) -> TimingAnswer:
    """Fit one calibration to the rows of some devices and print what it is worth; ``overhead`` [us], None: free."""
    print(
        f"\n### {name}\n| stage | rows | fitted | left out | fitted > 50 us | left out > 50 us |\n" + "|---" * 6 + "|"
    )
    together = joined(list(rows.values()))
    if overhead is not None:
        together = replace(together, table=together.table.assign(overhead_us=overhead))
    answer = fit_timed(name, [table], tuple(rows), together, fit_overhead=overhead is None, report=show)
    if not quiet:
        tell(answer)
    return answer


def tell(answer: TimingAnswer) -> None:
    """Print coefficients with what determines them, and errors of left-out rows."""
    for c in answer.coefficients():
        words = "at its bound" if c["at_bound"] else "" if c["determined"] else "not determined"
        print(f"{c['name']} {c['value']:.4g} {c['unit']} ({c['low']:.3g} to {c['high']:.3g}), "
              f"{100 * c['data_share']:.0f} % from the rows {words}")  # fmt: skip
    for r in answer.residuals:
        print(f"{r.op} {r.dtype} {r.regime}: n {r.n}, log error {r.q10:+.3f} {r.q50:+.3f} {r.q90:+.3f}")


def unseen(table: OperatorTable, rows: dict[str, TimedRows]) -> tuple[Residual, ...]:
    """Return the errors on devices that no fit has seen: each device predicted by what is fitted to the others."""
    tables, times = [], []
    for preset, mine in rows.items():
        answer = fitted(f"without {preset}", table, {p: r for p, r in rows.items() if p != preset}, quiet=True)
        predicted, _ = best(model_of(answer.fit.values), mine)
        predicted = predicted - mine.table["overhead_us"].to_numpy() + answer.fit.values["overhead_us"]
        off = 100 * np.abs(predicted / mine.table["latency_us"].to_numpy() - 1)
        long = mine.table["latency_us"].to_numpy() >= 50
        print(f"{preset}, never seen: {off.mean():.1f} %, above 50 us {off[long].mean():.1f} %", flush=True)
        tables.append(mine.table)
        times.append(predicted)
    everything = pd.concat(tables, ignore_index=True)
    return residuals(everything, np.concatenate(times), np.ones(len(everything), bool))


def second_source(table: OperatorTable, answers: dict[str, TimingAnswer], harness: Harness) -> float:
    """Return the overhead of a second way of measuring on fitted families, all else held, and print what it gives."""
    parts = []
    for preset, answer in answers.items():
        frame = table.frame[table.frame["device"] == DEVICES[preset]]
        rows = load_timed(frame, {DEVICES[preset]: load_sheet(preset)}, harness.with_overhead(0.0), {}, most=800)
        predicted, _ = best(model_of(answer.fit.values), rows)
        parts.append(rows.table.assign(predicted=predicted, out=left_out(rows.table["family"]), preset=preset))
    both = pd.concat(parts)

    def error(overhead: float, rows: pd.DataFrame) -> float:
        return float(np.abs(np.log((rows["predicted"] + overhead) / rows["latency_us"])).mean())

    found = float(minimize_scalar(error, (0.0, 20.0), args=(both[~both["out"]],), bounds=(0.0, 20.0)).x)  # pyright: ignore
    print(f"\n### {harness.name}: overhead {found:.2f} us, all else from the calibrations above")
    for preset, rows in both[both["out"]].groupby("preset"):
        off = 100 * np.abs((rows["predicted"] + found) / rows["latency_us"] - 1)
        print(
            f"{preset}: left-out families {off.mean():.1f} %, above 50 us {off[rows['latency_us'] >= 50].mean():.1f} %"
        )
    return found


def main() -> None:
    """Fit and print; write the calibrations where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    table = read_times(arguments.folder / FITTED)
    rows = {preset: timed(table, preset, device) for preset, device in DEVICES.items()}
    shared = fitted("shared", table, rows)
    overhead = shared.fit.values["overhead_us"]
    answers = {preset: fitted(preset, table, {preset: rows[preset]}, overhead) for preset in DEVICES}
    measured = {preset: answers[preset] for preset in ("a100_sxm_80gb", "h100_sxm")}
    second_source(read_times(arguments.folder / SECOND), measured, find_harness("vidur"))
    # The interval of a GPU nobody has measured is that of devices which the fit has not seen.
    answers["shared"] = replace(shared, residuals=unseen(table, rows))
    if arguments.out:
        for name, answer in answers.items():
            answer.write(arguments.out / f"{name}.toml")


def timed(table: OperatorTable, preset: str, device: str) -> TimedRows:
    """Return a device's rows with the kernels that could have run."""
    return load_timed(table.frame[table.frame["device"] == device], {device: load_sheet(preset)}, None, {})


if __name__ == "__main__":
    main()

"""AMALI's ablation on measured kernels and on traces, HMMA.16816 against 1688, and the CPI stacks as figures.

Run with ``python experiments/002_amali_ablation/run.py``; prints the tables of the README beside this file and writes
``stacks.html`` beside it. Reads experiments/data.
"""

from pathlib import Path

import drawings
import measured
import pandas as pd
import shared_traces
import tensor
from variants import VARIANTS

from dse.reports.common.progress import counting

HERE = Path(__file__).parent


def wide(errors: pd.DataFrame, by: list[str], value: str = "mape") -> pd.DataFrame:
    """Return errors with a column a variant."""
    table = errors.pivot_table(index=[*by, "n"], columns="variant", values=value, sort=False, observed=True)
    return table[list(VARIANTS)].round(2 if value == "bias" else 1)


def predictions(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return what the variants say of measured rows and of traces, and the study of the two HMMA."""
    steps = 2 * len(measured.DEVICES) + len(shared_traces.cases()) + 1
    with counting(steps, "evaluating") as done:
        on_rows = [measured.predict(rows, device, done) for device in measured.DEVICES]
        on_traces = shared_traces.study(done=done)
        instructions = tensor.study()
        done(1)
    return pd.concat(on_rows, ignore_index=True), on_traces, instructions


def print_errors(frame: pd.DataFrame) -> None:
    """Print the tables of errors."""
    for title, by in {
        "in all": ["device"],
        "by phase": ["device", "phase"],
        "by kind": ["device", "kind"],
        "by kind and phase": ["device", "kind", "phase"],
        "by source": ["device", "kind", "source", "phase"],
        "by operator": ["device", "kind", "op"],
        "by tokens": ["device", "kind", "bin"],
    }.items():
        errors = measured.errors(frame, by)
        print(f"\nMAPE [%] {title}\n{wide(errors, by).to_string()}")
        if title == "by kind and phase":
            for value in ("median", "bias"):
                print(f"\n{value} {title}\n{wide(errors, by, value).to_string()}")
            own = measured.errors(frame, by, "own_us")
            print(f"\nMAPE [%] {title}, each variant with its own fastest kernel\n{wide(own, by).to_string()}")


def main() -> None:
    """Print every table and write the figures."""
    rows = measured.select()
    frame, traces, instructions = predictions(rows)
    print_errors(frame)
    stacks = measured.stacks(frame)
    print(f"\nCauses over measured time, A100\n{stacks[stacks['device'] == 'A100-SXM4-80GB'].round(3).to_string()}")
    by_trace = traces.pivot_table(index="case", columns="variant", values="cycles")
    by_trace = by_trace[[shared_traces.EXACT, *VARIANTS]]
    print(f"\nCycles of traces on GCoM's RTX 2060\n{by_trace.round(0).astype(int).to_string()}")
    print(f"\nHMMA.16816 against HMMA.1688\n{instructions.round(2).to_string(index=False)}")
    by_tokens = measured.errors(frame, ["device", "kind", "bin"])
    drawings.write_page(
        HERE / "stacks.html",
        {
            "measured": drawings.measured_figure(stacks),
            "errors": drawings.errors_figure(by_tokens),
            "traces": drawings.traces_figure(traces),
        },
    )
    print(f"\nfigures: {HERE / 'stacks.html'}")


if __name__ == "__main__":
    main()

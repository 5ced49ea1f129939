"""AMALI's ablation on measured kernels and on traces, HMMA.16816 against 1688, and the CPI stacks as figures.

Run with ``python experiments/002_amali_ablation/run.py``; writes the tables of the README beside this file, prints
finer ones, and writes ``stacks.html`` beside it. Reads experiments/data.
"""

from collections.abc import Iterator
from pathlib import Path

import drawings
import measured
import pandas as pd
import shared_traces
import tensor
from variants import VARIANTS

from dse.reports.common.progress import counting
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
README = HERE / "README.md"

GROUPS = {
    "all": ["device"],
    "by kind": ["device", "kind"],
    "by kind and phase": ["device", "kind", "phase"],
    "by phase": ["device", "phase"],
}
"""Groups of measured rows in the README's table."""

GPU_MODELS = {"gcom": "GCoM's program"}

GPUS = {"A100-SXM4-80GB": "A100", "H100-SXM5-80GB": "H100"}

PAPER = {
    "A100, all": "127.56, 23.59",
    "A100, gemm": "183.95, 17.84",
    "A100, elementwise": "77.81, 27.29",
    "A100, prefill": "163.68, 15.56",
    "A100, decode": "82.29, 34.90",
}
"""AMALI's figures of GCoM and of itself [%], for kernels of Llama on an A100."""


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


def groups(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the name of each group of measured rows, as "A100, gemm, prefill", and its errors by variant."""
    for by in GROUPS.values():
        for key, part in measured.errors(frame, by).groupby(by, sort=False, observed=True):
            device, *rest = key
            yield ", ".join([GPUS[device], *(rest or ["all"])]), part.set_index("variant").loc[list(VARIANTS)]


def errors_table(frame: pd.DataFrame) -> str:
    """Return the README's table of mean absolute errors [%]."""
    rows = [
        [name, str(part["n"].iloc[0]), *(f"{x:.1f}" for x in part["mape"]), PAPER.get(name, "")]
        for name, part in groups(frame)
    ]
    return markdown(["kernels", "n", *VARIANTS, "paper: GCoM, AMALI"], rows)


def bias_table(frame: pd.DataFrame) -> str:
    """Return the README's table of median errors [%] and biases."""
    rows = [
        [name, *(f"{m:.1f}, {b:.2f}" for m, b in zip(part["median"], part["bias"], strict=True))]
        for name, part in groups(frame)
        if name.count(",") == 2
    ]
    return markdown(["kernels", *VARIANTS], rows)


def tokens_table(by_tokens: pd.DataFrame) -> str:
    """Return the README's table of mean absolute errors [%] by tokens, on the A100."""
    mine = by_tokens[by_tokens["device"] == "A100-SXM4-80GB"]
    rows = [
        [f"{kind}, {variant}", *(f"{x:.1f}" for x in part.set_index("bin")["mape"].reindex(measured.TOKEN_NAMES))]
        for kind, of in mine.groupby("kind", sort=False)
        for variant, part in of.groupby("variant", sort=False)
    ]
    return markdown(["kernels", *measured.TOKEN_NAMES], rows)


def instructions_table(study: pd.DataFrame) -> str:
    """Return the README's table of the two HMMA: cycles of one on its tensor core, and of a step of 16 in k."""
    cells = study.pivot(index=["model", "gpu"], columns="opcode", values=["cycles_of_hmma", "cycles_of_step"])
    rows = [
        [GPU_MODELS.get(model, model), gpu, *(f"{x:.2f}" for x in row[:2]), *(f"{x:.0f}" for x in row[2:])]
        for (model, gpu), row in zip(cells.index, cells[list(cells)].to_numpy(), strict=True)
    ]
    opcodes = [opcode.removesuffix(".F32") for opcode in cells["cycles_of_hmma"]]
    return markdown(["model", "GPU", *opcodes, *(f"step with {opcode}" for opcode in opcodes)], rows, 2)


def print_errors(frame: pd.DataFrame) -> None:
    """Print finer tables of errors than the README's."""
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
    """Write the README's tables and the figures, and print what is finer."""
    rows = measured.select()
    frame, traces, instructions = predictions(rows)
    print_errors(frame)
    stacks = measured.stacks(frame)
    print(f"\nCauses over measured time, A100\n{stacks[stacks['device'] == 'A100-SXM4-80GB'].round(3).to_string()}")
    by_trace = traces.pivot_table(index="case", columns="variant", values="cycles")
    by_trace = by_trace[[shared_traces.EXACT, *VARIANTS]]
    by_tokens = measured.errors(frame, ["device", "kind", "bin"])
    cycles = [[str(case), *(f"{x:.0f}" for x in row)] for case, row in by_trace.iterrows()]
    write_table(README, "errors", errors_table(frame))
    write_table(README, "bias", bias_table(frame))
    write_table(README, "tokens", tokens_table(by_tokens))
    write_table(README, "traces", markdown(["trace", *by_trace], cycles))
    write_table(README, "instructions", instructions_table(instructions))
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

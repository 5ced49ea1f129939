"""Calibrations of attention implementations from public rows, and what they are worth on rows that no fit has seen.

Run with ``python experiments/013_attention/run.py [-o FOLDER] [-i IMPLEMENTATION ...]`` (a few minutes on two cores).
Families whose CRC-32 modulo 10 is 7 or more are never fitted. Prints the README's tables; with ``-o`` writes the
calibrations, with ``--intervals`` only the intervals of those that are shipped; ``--few``: only what a few rows of
another library, or of another GPU, are worth; ``--quick`` only judges the shipped calibrations, and writes the README's
first table.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.implementations import fit_implementation, load_implementations
from dse.calibration.timing.rows_fit import left_out
from dse.calibration.timing.stages import StageResult, staged_fit
from dse.hardware.presets import load_sheet
from dse.measured.table import OperatorTable, read_times
from dse.measured.timed_rows import TimedRows, best
from dse.timing.calibration import TimingCalibration, implementation_calibration, shipped_implementations
from dse.timing.timing import TimingModel
from dse.validation.error_quantiles import coverage_by_others, errors_of, rewrite, seen
from dse.validation.error_quantiles import unseen as of_unseen
from dse.workload.implementation import IMPLEMENTATIONS, KINDS, implementation_index
from experiments import data
from experiments.common.implementations import HEADER, row_of, with_errors
from experiments.common.mean_costs import mean_costs
from experiments.common.readme_tables import markdown, write_table
from experiments.data.errors import rows_with_errors

TABLES = ("aiconfigurator__attention", "vidur__attention", "llmservingsim__attention")
DEVICES = {
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200",
    "RTXPRO6000-BW": "rtx_pro_6000",
}
UNSEEN = (
    ("sglang_prefill", "fa2_prefill"),
    ("sglang_decode", "fa2_decode"),
    ("fa2_early_prefill", "fa2_prefill"),
    ("fa2_early_decode", "fa2_decode"),
    ("fa2_gddr_prefill", "fa2_prefill"),
    ("fa2_gddr_decode", "fa2_decode"),
)
"""Rows of one implementation -> the implementation whose costs predict them."""

ONE_DEVICE = ("fa3_prefill", "fa3_decode")
"""Implementations that several GPUs ran: fitted on an H100 alone they predict an H200."""


ANOTHER = (("fa2", "fa2_gddr"), ("fa2_gddr", "fa2"))
"""Implementations of one library on GPUs of two generations: the costs of the first on the rows of the second."""

AFTER_FEW = (*UNSEEN[:2], *UNSEEN[4:], ("fa3_prefill", "fa3_prefill"), ("fa3_decode", "fa3_decode"))
"""Rows of one implementation -> whose costs a fit to a few of them starts from: another's, and, where nothing is to be
gained, its own."""

FEW, SEEDS = (12, 24, 60), 3
"""Rows of such a fit, and draws of them."""

PREFILL = ("fa2_prefill", "fa2_early_prefill", "fa2_gddr_prefill", "fa3_prefill", "sglang_prefill", "trtllm_prefill")
DECODE = (
    "fa2_decode",
    "fa2_early_decode",
    "fa2_gddr_decode",
    "fa3_decode",
    "sglang_decode",
    "trtllm_decode",
    "trtllm_decode_head",
)

INTERVALS = ("aiconfigurator__attention", "aiconfigurator__power", "llmservingsim__attention", "vidur__attention")
"""Tables of attention that intervals rest on."""


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


def with_costs(rows: TimedRows, name: str, model: TimingModel) -> np.ndarray:
    """Return the times of rows [us] as the implementation ``name`` with the costs of ``model``."""
    same = np.full(len(rows.row), implementation_index(name), np.float32)
    return best(model, replace(rows, kernels=replace(rows.kernels, implementation=same)))[0]


def error_of(rows: TimedRows, answer: TimingAnswer, only: np.ndarray | None = None) -> float:
    """Return the error of a fit on other rows [%]."""
    rows = rows if only is None else rows.keep(only)
    predicted = with_costs(rows, answer.implementation, answer.fit.model)
    return float((100 * np.abs(predicted / rows.table["latency_us"].to_numpy() - 1)).mean())


def transfers(tables: list[OperatorTable], rows: dict[str, TimedRows], kind: str) -> list[pd.DataFrame]:
    """Return rows of a ``kind`` (prefill, decode) with errors on a GPU that their costs have not seen, without
    discrepancies, as ``shared``: FlashAttention 3 from each of its GPUs to the other, FlashAttention 2 between two
    generations."""
    found = []
    for one, other in ANOTHER:
        name, mine = f"{one}_{kind}", rows[f"{other}_{kind}"]
        found.append(errors_of(mine.table, with_costs(mine, name, model_of(implementation_calibration(name).values))))
    mine = rows[f"fa3_{kind}"]
    device = mine.table["device"].astype(str).to_numpy()
    for one in np.unique(device):
        answer = fit_implementation(f"fa3_{kind}", tables, mine.keep(device == one), (DEVICES[one],))
        other = mine.keep(device != one)
        found.append(errors_of(other.table, with_costs(other, f"fa3_{kind}", model_of(answer.fit.values))))
    return found


def write_intervals(rows: pd.DataFrame, between: dict[str, list[pd.DataFrame]]) -> None:
    """Rewrite the intervals of the shipped implementations; no parameter changes.

    ``rows``: of :func:`rows_with_errors`; ``between``: kind -> its :func:`transfers`, for every implementation of it.
    """
    for name in DECODE + PREFILL:
        own = implementation_calibration(name)
        dtype = "fp16" if name.startswith("fa2_early") else "bf16"
        found = seen(rows[rows["implementation"] == name], own.overheads, own.gpus)
        for op in ("attn_prefill", "attn_decode") if name in DECODE else ("attn_prefill",):
            found += of_unseen(between["decode" if name in DECODE else "prefill"], name, op, dtype)
        rewrite(shipped_implementations()[name], found)


def powered(rows: pd.DataFrame) -> None:
    """Print what loops that read the power add to attention [us], fitted to families that may be, and what it is worth.

    ``rows``: of :func:`rows_with_errors`, whose kernels hold no cache write.
    """
    for op, part in rows[rows["op"].isin(("attn_prefill", "attn_decode"))].groupby("op"):
        measured, out = part["latency_us"].to_numpy(), part["out"].to_numpy()
        alone = (part["predicted_us"] - part["overhead_us"]).to_numpy()

        def off(overhead: float, some: np.ndarray, alone: np.ndarray = alone, measured: np.ndarray = measured) -> float:
            return float(np.abs(np.log((alone + overhead) / measured))[some].mean())

        best_us = min(np.arange(0.0, 10.0, 0.1), key=lambda overhead: off(overhead, ~out))
        error = 100 * np.abs((alone + best_us) / measured - 1)
        print(f"{op}: {best_us:.1f} us; fitted families {error[~out].mean():.1f} %, left out {error[out].mean():.1f}")


def after_few(rows: TimedRows, start: TimingCalibration, name: str, count: int, seed: int) -> float:
    """Return the error [%] on left-out families of a fit to ``count`` rows of the others, from the costs ``start``."""
    out = left_out(rows.table["family"])
    unused = np.ones(len(out), bool)
    unused[np.random.default_rng(seed).choice(np.flatnonzero(~out), count, replace=False)] = False
    fit = staged_fit(rows, unused, kind=KINDS[name], start=start.values, discrepancy=start.discrepancy)
    return float(100 * np.abs(fit.predicted_us / rows.table["latency_us"].to_numpy() - 1)[out].mean())


def few(rows: Mapping[str, TimedRows]) -> None:
    """Print what a few rows are worth: errors on left-out families before, and after fits to several draws."""
    print(
        "| rows of | costs of | before |", " | ".join(f"{n} rows" for n in FEW), "|\n" + "|---" * (3 + len(FEW)) + "|"
    )
    for name, other in AFTER_FEW:
        mine, start = rows[name], implementation_calibration(other)
        out = left_out(mine.table["family"])
        off = 100 * np.abs(with_costs(mine, name, start.model) / mine.table["latency_us"].to_numpy() - 1)
        after = [[after_few(mine, start, name, count, seed) for seed in range(SEEDS)] for count in FEW]
        told = (f"{np.mean(errors):.1f} ({min(errors):.1f} to {max(errors):.1f})" for errors in after)
        print(f"| {name} | {other} | {off[out].mean():.1f} |", " | ".join(told), "|", flush=True)


def with_others(rows: TimedRows, name: str, costs: Mapping[str, dict[str, float]]) -> np.ndarray:
    """Return predicted over measured of an implementation's rows, with the mean costs of the others of its kind."""
    kind = PREFILL if name in PREFILL else DECODE
    others = mean_costs([costs[other] for other in kind if other != name])
    return with_costs(rows, name, model_of(others)) / rows.table["latency_us"].to_numpy()


def shipped_table(rows: Mapping[str, TimedRows]) -> str:
    """Return the README's table of the shipped calibrations."""
    lines = [
        row_of(f"{name}, {op}", str(device), part)
        for name in PREFILL + DECODE
        for (op, device), part in with_errors(name, rows[name]).groupby(["op", "device"], observed=True)
    ]
    return markdown(HEADER, lines, 2)


def unseen(tables: list[OperatorTable], rows: dict[str, TimedRows], answers: dict[str, TimingAnswer]) -> None:
    """Print errors on devices and implementations that a fit has not seen."""
    print("\n### Unseen")
    for mine, theirs in UNSEEN:
        if mine in rows and theirs in answers:
            print(f"{mine} with the costs of {theirs}: {error_of(rows[mine], answers[theirs]):.1f} %")
    costs = {name: answer.fit.values for name, answer in answers.items()}
    for kind in (kind for kind in (PREFILL, DECODE) if set(kind) <= set(answers)):
        for name in kind:
            ratio = with_others(rows[name], name, costs)
            off, bias = 100 * np.abs(ratio - 1).mean(), np.exp(np.log(ratio).mean())
            print(f"{name} with the mean costs of the others: {off:.1f} %, bias {bias:.2f}")
    for name in ONE_DEVICE:
        if name in answers:
            on = rows[name].table["device"].astype(str).to_numpy() == "H100-SXM5-80GB"
            answer = fit_implementation(name, tables, rows[name].keep(on), ("h100_sxm",))
            print(f"{name} fitted on an H100, on the H200: {error_of(rows[name], answer, ~on):.1f} %")


def main() -> None:
    """Fit and print; write the calibrations where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--power", action="store_true", help="only what loops that read the power add")
    parser.add_argument("--quick", action="store_true", help="only judge the shipped calibrations")
    parser.add_argument("--few", action="store_true", help="only what a few rows are worth")
    parser.add_argument("-i", "--implementation", action="append", choices=IMPLEMENTATIONS)
    arguments = parser.parse_args()
    if arguments.power:
        powered(rows_with_errors(("aiconfigurator__power",)))
        return
    tables = [read_times(data.path(name)) for name in TABLES]
    frame = pd.concat([t.frame for t in tables], ignore_index=True)
    skipped = Skipped()
    rows = load_implementations(frame, {d: load_sheet(p) for d, p in DEVICES.items()}, skipped)
    print("skipped:", skipped)
    if arguments.quick:
        write_table(Path(__file__).parent / "README.md", "shipped", shipped_table(rows))
        return
    if arguments.few:
        few(rows)
        return
    if arguments.intervals:
        between = {kind: transfers(tables, rows, kind) for kind in ("prefill", "decode")}
        for kind, found in between.items():
            print(f"{kind} on a GPU never seen, within the others' interval [%]:", coverage_by_others(found))
        write_intervals(rows_with_errors(INTERVALS), between)
        return
    chosen = arguments.implementation or list(rows)
    answers = {}
    for name in chosen:
        answers[name] = fitted(name, tables, rows[name])
        if arguments.out:
            answers[name].write(arguments.out / f"{name}.toml")
    unseen(tables, rows, answers)


if __name__ == "__main__":
    main()

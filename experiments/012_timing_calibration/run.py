"""Calibrations of measured GPUs and of "a GPU nobody has measured", from public matrix products.

Run with ``python experiments/012_timing_calibration/run.py [-o FOLDER]`` (fifteen minutes on two cores). Families
whose CRC-32 modulo 10 is 7 or more are never fitted. Prints the README's tables; with ``-o`` writes the calibrations,
with ``--intervals`` only the intervals of those that are shipped. ``--early`` is about nothing but the early library,
which starts from the shipped calibration for any GPU; ``--only`` about the calibrations that it names, with the
overhead that the harness's table has; ``--quick`` judges the shipped calibrations and writes the README's first table.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.fit import model_of
from dse.calibration.timing.rows_fit import drawn_rows, fit_timed, left_out
from dse.calibration.timing.stages import StageResult, staged_fit
from dse.hardware.presets import load_sheet
from dse.measured.protocol import find_protocol
from dse.measured.regimes import LONG_US
from dse.measured.table import OperatorTable, read_times
from dse.measured.timed_rows import TimedRows, best, joined
from dse.timing.calibration import (
    SHARED,
    implementation_calibration,
    load_timing_calibration,
    shipped_calibrations,
    shipped_implementations,
)
from dse.timing.error_quantiles import ErrorQuantiles
from dse.validation.error_quantiles import coverage_by_others, errors_of, rewrite, seen
from dse.validation.error_quantiles import unseen as of_unseen
from experiments import data
from experiments.common.implementations import HEADER, row_of, with_errors
from experiments.common.pooled_roofline import pooled_roofline
from experiments.common.readme_tables import markdown, write_table
from experiments.data.errors import rows_with_errors

AICONFIGURATOR = "aiconfigurator__gemm"
GRAPHS = {
    "a100_sxm_80gb": (AICONFIGURATOR, "A100-SXM4-80GB"),
    "h100_sxm": (AICONFIGURATOR, "H100-SXM5-80GB"),
    "h200": (AICONFIGURATOR, "H200-SXM-141GB"),
}
"""Preset -> table and device, of the source whose overhead is fitted."""

OTHERS = {
    "rtx_a6000": ("llmservingsim__layers", "RTXA6000"),
    "rtx_pro_6000": ("llmservingsim__layers", "RTXPRO6000-BW"),
    "v100_sxm2_16gb": ("deepbench__gemm", "V100-SXM2-16GB"),
}
EARLY_DEVICES = {"a100_sxm_80gb": "A100-SXM4-80GB", "h100_sxm": "H100-SXM5-80GB"}
"""Devices of the source with the early library."""

EARLY = {"matrix_early": "a100_sxm_80gb", "matrix_early_hopper": "h100_sxm"}
"""Implementation of the early library -> device."""

MOST_OWN = 1500
"""Rows of a device of GRAPHS in its own fit, fitted and left-out ones each."""

MOST_SHARED = 700
"""Rows of a device in the shared fits, fitted and left-out ones each."""

EARLY_PARAMETERS, EARLY_ROWS = 1000, 2500
"""Rows of a device that the early library's parameters are fitted to, and those that its discrepancy is: all there are,
since it tells shapes apart that parameters cannot."""

FEW = 24
"""Rows of a device that a user may have time to measure."""

DRAWS = 3


@dataclass(frozen=True)
class Devices:
    """The measured rows of each device with their kernels, by preset, and the tables that they come from."""

    rows: dict[str, TimedRows]
    tables: dict[str, OperatorTable]

    def without(self, preset: str) -> TimedRows:
        """Return the rows of all other devices."""
        return joined([rows for name, rows in self.rows.items() if name != preset])


def show(stage: StageResult) -> None:
    """Print one stage's errors: fitted and left-out families, all sizes and above 50 us."""
    numbers = (stage.fitted, stage.left_out, stage.long_fitted, stage.long_left_out)
    print(f"| {stage.name} | {stage.rows} |", *(f"{x:.1f} |" if x is not None else "- |" for x in numbers), flush=True)


def fitted(name: str, tables: list[OperatorTable], gpus: tuple[str, ...], rows: TimedRows, **options) -> TimingAnswer:
    """Fit one calibration and print what it is worth."""
    print(
        f"\n### {name}\n| stage | rows | fitted | left out | fitted > 50 us | left out > 50 us |\n" + "|---" * 6 + "|"
    )
    answer = fit_timed(name, tables, gpus, rows, report=show, **options)
    for c in answer.coefficients():
        words = "at its bound" if c["at_bound"] else "" if c["determined"] else "not determined"
        print(
            f"{c['name']} {c['value']:.4g} {c['unit']} ({c['low']:.3g} to {c['high']:.3g}), "
            f"{100 * c['data_share']:.0f} % from the rows {words}"
        )
    for r in answer.error_quantiles:
        print(f"{r.op} {r.dtype} {r.regime}: n {r.n}, log error {r.q10:+.3f} {r.q50:+.3f} {r.q90:+.3f}")
    return answer


INTERVALS = (
    "aiconfigurator__gemm",
    "aiconfigurator__power",
    "deepbench__gemm",
    "llmcompass__kernels_a100",
    "llmservingsim__layers",
)
"""Tables of products on tensor cores that intervals rest on."""

EARLY_TABLE = "vidur__gemm"
"""The same of the early library."""

EARLY_SOURCES = {
    "matrix_early": ("a100_sxm_80gb", "rtx_a6000", "rtx_pro_6000", "v100_sxm2_16gb"),
    "matrix_early_hopper": ("h100_sxm", "h200"),
}
"""GPUs of the same instructions: what the costs of one are off by on another stands for a GPU that the early library's
one device per implementation says nothing of."""


def never_seen(devices: Devices) -> dict[str, pd.DataFrame]:
    """Return each device's rows with errors under a fit to the five others."""
    found = {}
    for preset, mine in devices.rows.items():
        others = devices.without(preset)
        values = staged_fit(others, left_out(others.table["family"])).values
        found[preset] = errors_of(mine.table, best(model_of(values), mine)[0], preset)
    return found


def of_others(devices: Devices) -> dict[tuple[str, str], pd.DataFrame]:
    """Return each device's rows with errors under the shipped calibration of each other one."""
    models = {preset: load_timing_calibration(preset).model for preset in devices.rows}
    return {
        (one, other): errors_of(mine.table, best(models[one], mine)[0], other)
        for one in devices.rows
        for other, mine in devices.rows.items()
        if one != other
    }


def write_intervals(rows: pd.DataFrame, left: dict[str, pd.DataFrame]) -> None:
    """Rewrite the intervals of the GPUs' shipped calibrations of products on tensor cores; no parameter changes.

    ``rows``: of :func:`rows_with_errors`; ``left``: of :func:`never_seen`.
    """
    ours = products_of(rows)
    write_own_intervals(rows, tuple(GRAPHS | OTHERS))
    found = of_unseen(list(left.values()), "matrix", "gemm", "bf16")
    print("products of a GPU never seen, within the others' interval [%]:", coverage_by_others(list(left.values())))
    fp8 = [part for _, part in ours[ours["dtype"] == "fp8"].groupby("gpu")]
    found += of_unseen(fp8, "matrix", "gemm", "fp8", "aiconfigurator", fitted=False)
    rewrite(shipped_calibrations()["shared"], found)


def products_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of products that today's library ran on tensor cores."""
    return rows[(rows["op"] == "gemm") & (rows["implementation"] == "matrix")]


def write_own_intervals(rows: pd.DataFrame, presets: Sequence[str]) -> None:
    """Rewrite the intervals of some GPUs' shipped calibrations, each from its own rows."""
    ours = products_of(rows)
    for preset in presets:
        fitted = load_timing_calibration(preset).overheads
        rewrite(shipped_calibrations()[preset], seen(ours[ours["gpu"] == preset], fitted, (preset,), ("fp8",)))


def write_early_intervals(rows: pd.DataFrame, pairs: dict[tuple[str, str], pd.DataFrame]) -> None:
    """Rewrite the intervals of the early library's calibrations; ``pairs``: of :func:`of_others`."""
    rows = rows[rows["op"] == "gemm"]
    for name, gpus in EARLY_SOURCES.items():
        transfers = [pairs[one, other] for one in gpus for other in gpus if one != other]
        mine = seen(rows[rows["implementation"] == name], implementation_calibration(name).overheads, (EARLY[name],))
        rewrite(shipped_implementations()[name], mine + of_unseen(transfers, name, "gemm", "fp16"))


class Transfer(NamedTuple):
    """A device predicted by a fit to all others: errors [%] of all its rows and of those from LONG_US on, beside two
    rooflines, after a fit to FEW of its rows, and its rows with the errors."""

    never_seen: tuple[float, float]
    sheet: tuple[float, float]
    pooled: tuple[float, float]
    after_few: tuple[float, float]
    rows: pd.DataFrame


def transfer(devices: Devices, preset: str) -> Transfer:
    """Return what a fit to all other devices predicts of one; FEW rows are drawn from the families that may be
    fitted, DRAWS times, and judged on the others."""
    mine, others = devices.rows[preset], devices.without(preset)
    values = staged_fit(others, left_out(others.table["family"])).values
    predicted, _ = best(model_of(values), mine)
    out = left_out(mine.table["family"])
    few = [_errors(mine.table[out], _after_few(mine, out, values, seed)[out]) for seed in range(DRAWS)]
    every, long = np.mean(few, axis=0)
    sheet, pooled = _sheet(mine.table), pooled_roofline(others.table, mine.table)
    return Transfer(
        _errors(mine.table, predicted),
        _errors(mine.table, sheet),
        _errors(mine.table, pooled),
        (float(every), float(long)),
        errors_of(mine.table, predicted, preset),
    )


def unseen(devices: Devices) -> tuple[ErrorQuantiles, ...]:
    """Return the errors on devices that no fit has seen, and print them beside rooflines and what few rows mend."""
    print("\n### Left-out devices, error above 50 us (all sizes)")
    print(
        f"| device | unseen | sheet roofline | pooled roofline of three numbers | {FEW} rows measured |\n"
        + "|---" * 5
        + "|"
    )
    judged = []
    for preset in devices.rows:
        found = transfer(devices, preset)
        cells = (found.never_seen, found.sheet, found.pooled, found.after_few)
        print(f"| {preset} |", *(f"{long:.1f} ({every:.1f}) |" for every, long in cells), flush=True)
        judged.append(found.rows)
    return of_unseen(judged, "matrix", "gemm", "bf16")


def _after_few(rows: TimedRows, out: np.ndarray, values: Mapping[str, float], seed: int) -> np.ndarray:
    """Times [us] after a fit to FEW rows drawn from the families that may be fitted, from the other devices' values."""
    drawn = np.random.default_rng(seed).choice(np.flatnonzero(~out), FEW, replace=False)
    unused = np.ones(len(out), bool)
    unused[drawn] = False
    return staged_fit(rows, unused, start=dict(values)).predicted_us


def _errors(table: pd.DataFrame, predicted: np.ndarray) -> tuple[float, float]:
    """Mean error [%] of all rows, and of those from LONG_US on."""
    measured = table["latency_us"].to_numpy()
    off = 100 * np.abs(predicted / measured - 1)
    return float(off.mean()), float(off[measured >= LONG_US].mean())


def _sheet(table: pd.DataFrame) -> np.ndarray:
    return np.maximum(table["compute_us"], table["memory_us"]).to_numpy()


def load(devices: Mapping[str, tuple[str, str]], most: int) -> Devices:
    """Return the rows of devices (preset -> table and device) with the kernels that could have run."""
    tables = {name: read_times(data.path(name)) for name, _ in devices.values()}
    rows = {}
    for preset, (name, device) in devices.items():
        frame = tables[name].frame
        tensor = (frame["op"] == "gemm") & frame["dtype"].isin(("bf16", "fp16"))
        frame = frame[(frame["device"] == device) & tensor]
        rows[preset] = drawn_rows(frame, {device: load_sheet(preset)}, None, Skipped(), most=most)
    return Devices(rows, tables)


def early_library(start: Mapping[str, float]) -> dict[str, TimingAnswer]:
    """Fit the implementations of the early library, one a device, about the values of today's shared fit.

    The overhead stays that of its source's record, which its attention and vector kernels were fitted with too: free
    fits on the two devices give 1.4 and 2.8 us.
    """
    table = read_times(data.path(EARLY_TABLE))
    answers = {}
    for name, preset in EARLY.items():
        rows = early_rows(table, preset)
        of_parameters = np.cumsum(~left_out(rows.table["family"])) <= EARLY_PARAMETERS
        answers[name] = fitted(
            name, [table], (preset,), rows, implementation=name, start=dict(start), weight=of_parameters * 1.0
        )
    return answers


def early_rows(table: OperatorTable, preset: str) -> TimedRows:
    """Return the rows that the early library's calibration of a device is fitted to and judged by."""
    device = EARLY_DEVICES[preset]
    mine = table.frame[table.frame["device"] == device]
    return drawn_rows(mine, {device: load_sheet(preset)}, find_protocol("vidur"), Skipped(), EARLY_ROWS)


def main() -> None:
    """Fit and print; write the calibrations where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--early", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only judge the shipped calibrations")
    parser.add_argument("--only", nargs="+", choices=(*GRAPHS, *OTHERS, SHARED), default=[])
    arguments = parser.parse_args()
    if arguments.quick:
        write_table(Path(__file__).parent / "README.md", "shipped", shipped_table(load(GRAPHS | OTHERS, MOST_SHARED)))
        return
    if arguments.intervals and arguments.only:
        write_own_intervals(rows_with_errors(INTERVALS), [name for name in arguments.only if name != SHARED])
        return
    if arguments.intervals:
        few = load(GRAPHS | OTHERS, MOST_SHARED)
        write_early_intervals(rows_with_errors((EARLY_TABLE,)), of_others(few))
        if not arguments.early:
            write_intervals(rows_with_errors(INTERVALS), never_seen(few))
        return
    answers: dict[str, TimingAnswer] = {}
    if arguments.early:
        early = early_library(load_timing_calibration(SHARED).values)
    elif arguments.only:
        answers, early = only(arguments.only), {}
    else:
        answers, early = every_library()
    if arguments.out:
        (arguments.out / "implementations").mkdir(parents=True, exist_ok=True)
        for name, answer in answers.items():
            answer.write(arguments.out / f"{name}.toml")
        for name, answer in early.items():
            answer.write(arguments.out / "implementations" / f"{name}.toml")


def shipped_table(devices: Devices) -> str:
    """Return the README's table of the shipped calibrations: each GPU's own, and that of any GPU."""
    lines = []
    for name in (*devices.rows, SHARED):
        model = load_timing_calibration(name).model
        for preset in devices.rows if name == SHARED else (name,):
            rows = devices.rows[preset]
            lines.append(row_of(name, preset, with_errors(name, rows, best(model, rows)[0])))
    return markdown(("calibration", *HEADER[1:]), lines, 2)


def every_library() -> tuple[dict[str, TimingAnswer], dict[str, TimingAnswer]]:
    """Fit each device, all of them together, and the early library; return today's answers and the early ones."""
    graphs = load(GRAPHS, MOST_OWN)
    few = load(GRAPHS | OTHERS, MOST_SHARED)
    three = joined([few.rows[preset] for preset in GRAPHS])
    launched = fitted(
        "overhead of aiconfigurator", list(graphs.tables.values()), tuple(GRAPHS), three, fit_overhead=True
    )
    overhead = launched.fit.values["overhead_us"]
    graphs, few = _with_overhead(graphs, overhead), _with_overhead(few, overhead)
    answers = {preset: alone(preset, graphs if preset in GRAPHS else few) for preset in GRAPHS | OTHERS}
    answers[SHARED] = of_any(few)
    return answers, early_library(answers[SHARED].fit.values)


def only(names: list[str]) -> dict[str, TimingAnswer]:
    """Fit the calibrations of some names, with the overhead that the harness's table has."""
    few = load(GRAPHS | OTHERS, MOST_SHARED) if SHARED in names else None
    places = {name: (GRAPHS | OTHERS)[name] for name in names if name != SHARED}
    found = {
        name: alone(name, load({name: place}, MOST_OWN if name in GRAPHS else MOST_SHARED))
        for name, place in places.items()
    }
    return found | ({SHARED: of_any(few)} if few else {})


def alone(preset: str, devices: Devices) -> TimingAnswer:
    """Fit the calibration of one device."""
    return fitted(preset, [devices.tables[(GRAPHS | OTHERS)[preset][0]]], (preset,), devices.rows[preset])


def of_any(few: Devices) -> TimingAnswer:
    """Fit the calibration of any GPU; its interval is that of devices which a fit has not seen."""
    shared = fitted(SHARED, list(few.tables.values()), tuple(few.rows), joined(list(few.rows.values())))
    return replace(shared, error_quantiles=unseen(few))


def _with_overhead(devices: Devices, overhead: float) -> Devices:
    """The devices with the fitted overhead in place of the aiconfigurator's."""
    rows = {
        preset: replace(part, table=part.table.assign(overhead_us=overhead)) if preset in GRAPHS else part
        for preset, part in devices.rows.items()
    }
    return Devices(rows, devices.tables)


if __name__ == "__main__":
    main()

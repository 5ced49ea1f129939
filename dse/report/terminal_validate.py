"""``dse validate --quantity time`` and ``dse calibrate timing`` in the terminal: errors beside baselines, by stage."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dse.calibrate.engine import EngineAnswer
from dse.calibrate.timing_answer import GpuTimingAnswer, TimingAnswer
from dse.calibrate.validate_time import TimeValidation
from dse.report.findings_validate import worst_shape
from dse.report.time_units import row_unit
from dse.units import signed

WORST = 10

WORDS = {"all": "all", "under_10us": "< 10 us", "10_to_50us": "10-50 us", "memory_above_50us": "memory >50us",
         "compute_above_50us": "compute >50us"}  # fmt: skip


def print_time_validation(found: TimeValidation, console: Console) -> None:
    """Print errors by device, operator, data type and regime, the worst rows, and what was skipped."""
    console.print("error of time, %, of rooflines (sheet, fitted), and noise of one repeat", style="italic")
    console.print("bias: geometric mean of predicted / measured; 80 %: share of rows within their interval called so\n",
                  style="dim", highlight=False)  # fmt: skip
    for device in dict.fromkeys(g["device"] for g in found.document["groups"]):
        console.print(_groups(device, [g for g in found.document["groups"] if g["device"] == device]))
        console.print()
    console.print("farthest off", style="italic")
    for row in found.document["worst"][:WORST]:
        console.print(_worst(row), markup=False, highlight=False)
    console.print()
    _lines(found.document["rows_skipped"], found.notes, console)


def print_timing_fit(answer: GpuTimingAnswer, console: Console) -> None:
    """Print of each implementation errors stage by stage, the parameters and what determines them, and errors on
    left-out rows; then what every fit is worth."""
    for fit in answer.fits:
        console.print(f"{answer.name}, {' and '.join((fit.implementation, *fit.also))}: {fit.rows} rows fitted, "
                      f"{fit.rows_left_out} left out", style="bold", highlight=False)  # fmt: skip
        console.print(_stages(fit))
        console.print()
        console.print(_parameters(fit.coefficients()))
        console.print()
        if fit.rows_left_out:
            console.print(_residuals(fit))
        else:
            console.print("no row is left out: errors stay those of the calibration it started from", style="italic")
        console.print()
    if len(answer.fits) > 1:
        console.print(_worth(answer.fits))
    _lines(answer.skipped, answer.notes, console)


def _worth(fits: Sequence[TimingAnswer]) -> Table:
    table = _table("mean error before and after the fit, %", ("implementation",),
                   ("rows", "before", "fitted", "left out"))  # fmt: skip
    for fit in fits:
        first, last = fit.fit.stages[0], fit.fit.stages[-1]
        numbers = (first.fitted, last.fitted, last.left_out)
        table.add_row(fit.implementation, str(fit.rows), *("-" if x is None else f"{x:.1f}" for x in numbers))
    return table


def print_engine(answer: EngineAnswer, console: Console) -> None:
    """Print an engine's costs with their intervals, what the runs do not tell, and errors."""
    told = f"{answer.name}: {answer.rows} runs fitted, {answer.rows_left_out} left out"
    table = _table(escape(told), ("cost",), ("value", "unit", "2.5 %", "97.5 %"))
    table.add_column("")
    for cost in answer.costs:
        numbers = (f"{cost.value:.4g}", cost.unit, f"{cost.low:.4g}", f"{cost.high:.4g}")
        words = f"not determined, as {answer.like.name}: {cost.held}" if cost.held else ""
        words = cost.held if cost.name == "launch_us" else words  # none, whatever the other engine's
        table.add_row(cost.name, *numbers, words, style="dim" if cost.held else None)
    console.print(table)
    out = ""
    if answer.left_out is not None:
        out = f", of runs left out {answer.left_out:.1f} % (kernels alone {answer.alone_left_out:.1f} %)"
    low, high = (100 * (np.exp(-x) - 1) for x in (answer.high, answer.low))
    alone = f"mean error of kernels alone {answer.kernels_alone:.1f} % (all runs)"
    console.print(f"{alone}, fitted {answer.fitted:.1f} %{out}; 80 % of measured times are {signed(low)} to "
                  f"{signed(high)} % from predicted", highlight=False)  # fmt: skip
    for warning in answer.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False, style="bold red")
    _lines(answer.skipped, (), console)


def _lines(skipped: dict[str, int], notes: tuple[str, ...], console: Console) -> None:
    for reason, n in skipped.items():
        rows = "row" if n == 1 else "rows"
        console.print(f"skipped: {n} {rows}: {reason}", markup=False, highlight=False, style="yellow")
    for note in notes:
        console.print(f"note: {note}", markup=False, highlight=False, style="dim")


def _table(title: str, texts: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True, min_width=min(len(name), 5))
    return table


def _groups(device: str, groups: list[dict[str, Any]]) -> Table:
    table = _table(escape(device), ("operator", "regime"), ("rows", "err", "bias", "sheet", "fit", "noise", "80 %"))
    for g in groups:
        covered = "-" if g["interval_80_coverage"] is None else f"{g['interval_80_coverage']:.0f}"
        noise = "-" if g["noise_floor"] is None else f"{g['noise_floor']:.1f}"
        errors = ("-" if g[key] is None else f"{g[key]:.1f}" for key in ("roofline_mape", "roofline3_mape"))
        table.add_row(
            f"{g['op']} {g['dtype']}", WORDS[g["regime"]], str(g["n"]), f"{g['mape']:.1f}",
            f"{g['bias']:.2f}", *errors, noise, covered, style="bold" if g["regime"] == "all" else None,
        )  # fmt: skip
    return table


def _worst(row: dict[str, Any]) -> str:
    """One row as a sentence."""
    shape = worst_shape(row)
    most = sorted(row["stack_us"].items(), key=lambda item: -item[1])[:2]
    unit = row_unit(row["measured_us"], row["predicted_us"])
    parts = ", ".join(f"{cause} {unit.text(us)}" for cause, us in most)
    return (
        f"{row['device']} {row['op']} {row['dtype']} {shape}: measured {unit.text(row['measured_us'])}, predicted "
        f"{unit.text(row['predicted_us'])} ({row['kernel']}; {parts})"
    )


def _stages(answer: TimingAnswer) -> Table:
    table = _table("mean error after each stage, %", ("stage",),
                   ("rows", "fitted", "left out", "fitted > 50 us", "left out > 50 us"))  # fmt: skip
    for s in answer.fit.stages:
        numbers = (s.fitted, s.left_out, s.long_fitted, s.long_left_out)
        table.add_row(s.name, str(s.rows or "-"), *("-" if x is None else f"{x:.1f}" for x in numbers))
    return table


def _parameters(rows: list[dict[str, Any]]) -> Table:
    told = "parameters (bound: at its bound; prior: the rows do not determine it)"
    table = _table(told, ("name", "stage"), ("value", "unit", "2.5 %", "97.5 %", "data %"))
    table.add_column("")
    for row in rows:
        words = "bound" if row["at_bound"] else "" if row["determined"] else "prior"
        numbers = (f"{row['value']:.4g}", row["unit"], f"{row['low']:.4g}", f"{row['high']:.4g}")
        table.add_row(row["name"], row["stage"], *numbers, f"{100 * row['data_share']:.0f}", words,
                      style="dim" if words else None)  # fmt: skip
    return table


def _residuals(answer: TimingAnswer) -> Table:
    table = _table("log(predicted / measured) of left-out rows, by predicted time", ("operator", "type", "regime"),
                   ("rows", "10 %", "median", "90 %"))  # fmt: skip
    for r in answer.residuals:
        table.add_row(r.op, r.dtype, r.regime, str(r.n), f"{r.q10:+.3f}", f"{r.q50:+.3f}", f"{r.q90:+.3f}")
    return table

"""``dse calibrate`` in the terminal: errors with baselines or by stage, and coefficients."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dse.base.units import signed
from dse.calibration.engine.answer import EngineAnswer
from dse.calibration.power.coefficient_file import Coefficient
from dse.calibration.power.document import Answer
from dse.calibration.timing.answer import GpuTimingAnswer, TimingAnswer
from dse.calibration.timing.sensitivity import Sensitivity
from dse.calibration.timing.stages import DISCREPANCY
from dse.reports.common.terminal_parts import plain_table, print_notes, say
from dse.timing.discrepancy import SIZES, Points


def print_power_fit(answer: Answer, console: Console) -> None:
    """Print the models with their errors, the coefficients, and their notes."""
    of_all = f" of {answer.rows + sum(answer.skipped.values()):,}" if answer.skipped else ""
    say(console, f"{answer.table}: {answer.rows:,}{of_all} rows fitted, {answer.kind}", "bold")
    if answer.verdict:
        say(console, answer.verdict)
    say(console, f"prior strength {answer.strength:g}, by {answer.strength_by}\n")
    console.print(_models(answer.models))
    console.print()
    console.print(_coefficients(answer.coefficients))
    if answer.condition is not None:
        console.print(f"\ncondition number of the misfit's Hessian: {answer.condition:.3g}", highlight=False)
    print_notes(answer.skipped, answer.notes, console)


def print_timing_fit(answer: GpuTimingAnswer, console: Console) -> None:
    """Print of each implementation errors stage by stage, the parameters and what determines them, and errors on
    left-out rows; then the errors of all fits."""
    for fit in answer.fits:
        console.print(
            f"{answer.name}, {' and '.join((fit.implementation, *fit.also))}: {fit.rows} rows fitted, "
            f"{fit.rows_left_out} left out",
            style="bold",
            highlight=False,
        )
        say(console, f"{fit.verdict}\n")
        console.print(_stages(fit))
        console.print()
        console.print(_parameters(fit.coefficients()))
        console.print()
        if fit.sensitivity:
            console.print(sensitivity_table(fit.sensitivity))
            console.print()
        if fit.fit.discrepancy is not None:
            say(console, _discrepancy(fit.fit.discrepancy, fit.fit.stages[-1].name == DISCREPANCY), "italic")
            console.print()
        if fit.rows_left_out:
            console.print(_quantiles(fit))
        else:
            console.print("no row is left out: errors stay those of the calibration it started from", style="italic")
        console.print()
    if len(answer.fits) > 1:
        console.print(_worth(answer.fits))
    print_notes(answer.skipped, answer.notes, console)


def sensitivity_table(swept: Sequence[Sensitivity]) -> Table:
    """Return the error over each parameter as a table, the parameter that it depends on most first."""
    heading = "mean error over a parameter, %, all others as fitted, from its lowest value to its highest"
    table = plain_table(heading, ("name",), ("lowest", "highest", "fitted", "error there"))
    table.add_column("error from lowest to highest", no_wrap=True)
    for one in swept:
        ends = (f"{one.values[0]:.4g}", f"{one.values[-1]:.4g}", f"{one.fitted:.4g}", f"{one.fitted_error:.1f}")
        table.add_row(one.parameter, *ends, " ".join(f"{error:.1f}" for error in one.errors))
    return table


def _worth(fits: Sequence[TimingAnswer]) -> Table:
    table = plain_table(
        "mean error before and after the fit, %", ("implementation",), ("rows", "before", "fitted", "left out")
    )
    for fit in fits:
        first, last = fit.fit.stages[0], fit.fit.stages[-1]
        numbers = (first.fitted, last.fitted, last.left_out)
        table.add_row(fit.implementation, str(fit.rows), *("-" if x is None else f"{x:.1f}" for x in numbers))
    return table


def print_engine(answer: EngineAnswer, console: Console) -> None:
    """Print an engine's costs with their intervals, what the runs leave undetermined, and errors."""
    for warning in answer.warnings:
        say(console, f"warning: {warning}", "bold red")
    heading = f"{answer.name}: {answer.rows} runs fitted, {answer.rows_left_out} left out"
    table = plain_table(escape(heading), ("cost",), ("value", "unit", "2.5 %", "97.5 %"))
    table.add_column("")
    for cost in answer.costs:
        numbers = (f"{cost.value:.4g}", cost.unit, f"{cost.low:.4g}", f"{cost.high:.4g}")
        words = f"not determined, as {answer.like.name}: {cost.not_fitted}" if cost.not_fitted else ""
        if cost.not_fitted and cost.name == "launch_us":  # none, whatever the other engine's
            words = cost.not_fitted
        words = f"not determined: {cost.untold}" if cost.untold else words
        table.add_row(cost.name, *numbers, words, style=None if cost.determined else "dim")
    console.print(table)
    errors, out = answer.errors, ""
    if errors.left_out is not None:
        out = (
            f", of runs left out {errors.left_out:.1f} % (kernels alone {errors.kernels_alone_left_out:.1f} %, "
            f"{answer.like.name} {errors.like_left_out:.1f} %)"
        )
    low, high = (100 * (np.exp(-x) - 1) for x in (answer.high, answer.low))
    alone = f"mean error of kernels alone {errors.kernels_alone:.1f} % (all runs)"
    say(
        console,
        f"{alone}, fitted {errors.fitted:.1f} %{out}; 80 % of measured times are {signed(low)} to "
        f"{signed(high)} % from predicted (of {answer.interval_of})",
    )
    print_notes(answer.skipped, answer.notes, console)


def _models(models: list[dict[str, Any]]) -> Table:
    heads = {
        "train": "train",
        "leave_one_kernel_out": "kernel out",
        "leave_one_benchmark_out": "benchmark out",
        "leave_families_out": "families out",
    }
    shown = [key for key in heads if key in models[0]]
    table = plain_table("mean error, %")
    table.add_column("model", no_wrap=True)
    for key in shown:
        table.add_column(heads[key], justify="right")
    table.add_column("95 %", justify="right", no_wrap=True)
    for model in models:
        cells = [f"{model[key]:.2f}" for key in shown]
        low, high = model["interval"]
        style = "bold" if model["headline"] else None
        table.add_row(model["name"], *cells, f"{low:.1f} to {high:.1f}", style=style)
    return table


def _coefficients(rows: list[Coefficient]) -> Table:
    table = plain_table("coefficients (prior: the rows do not identify it, the value is mostly the prior's)")
    table.add_column("name", no_wrap=True)
    for name in ("value", "unit", "2.5 %", "97.5 %", "data %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for c in rows:
        words = "" if c.identified else "prior"
        cells = (f"{c.value:.4g}", c.unit, f"{c.low:.4g}", f"{c.high:.4g}", f"{100 * c.share:.0f}")
        table.add_row(c.name, *cells, words, style=None if c.identified else "dim")
    return table


def _stages(answer: TimingAnswer) -> Table:
    table = plain_table(
        "mean error after each stage, %",
        ("stage",),
        ("rows", "fitted", "left out", "fitted > 50 us", "left out > 50 us"),
    )
    for s in answer.fit.stages:
        numbers = (s.fitted, s.left_out, s.long_fitted, s.long_left_out)
        table.add_row(s.name, str(s.rows or "-"), *("-" if x is None else f"{x:.1f}" for x in numbers))
    return table


def _parameters(rows: list[dict[str, Any]]) -> Table:
    heading = "parameters (bound: at its bound; prior: the rows do not determine it)"
    table = plain_table(heading, ("name", "stage"), ("value", "unit", "2.5 %", "97.5 %", "data %"))
    table.add_column("")
    for row in rows:
        words = "bound" if row["at_bound"] else "" if row["determined"] else "prior"
        numbers = (f"{row['value']:.4g}", row["unit"], f"{row['low']:.4g}", f"{row['high']:.4g}")
        table.add_row(
            row["name"], row["stage"], *numbers, f"{100 * row['data_share']:.0f}", words, style="dim" if words else None
        )
    return table


def _discrepancy(points: Points, fitted: bool) -> str:
    suffix = "" if fitted else ", as in the calibration that the fit started from"
    over = ", ".join(SIZES[points.kind])
    return f"discrepancy: {len(points.weights)} points over {over} say what the parameters leave{suffix}"


def _quantiles(answer: TimingAnswer) -> Table:
    table = plain_table(
        "log(predicted / measured) of left-out rows, by predicted time",
        ("operator", "type", "regime"),
        ("rows", "10 %", "median", "90 %"),
    )
    for r in answer.error_quantiles:
        table.add_row(r.op, r.dtype, r.regime, str(r.n), f"{r.q10:+.3f}", f"{r.q50:+.3f}", f"{r.q90:+.3f}")
    return table

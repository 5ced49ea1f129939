"""``dse calibrate`` and ``dse validate`` in the terminal: errors beside baselines, coefficients, what is prior."""

from typing import Any

from rich.console import Console
from rich.table import Table

from dse.calibrate.coefficients import Coefficient
from dse.calibrate.power_answer import Answer


def print_power_fit(answer: Answer, console: Console) -> None:
    """Print the models with their errors, the coefficients, and what the numbers do not say."""
    console.print(f"{answer.table}: {answer.rows} rows, {answer.kind}", markup=False, highlight=False, style="bold")
    console.print(f"prior strength {answer.strength:g}, by inner leave-one-out\n", markup=False, highlight=False)
    console.print(_models(answer.models))
    console.print()
    console.print(_coefficients(answer.coefficients))
    if answer.condition is not None:
        console.print(f"\ncondition number of the misfit's Hessian: {answer.condition:.3g}", highlight=False)
    _skipped([{"reason": r, "n": n} for r, n in answer.skipped.items()], console)
    for note in answer.notes:
        console.print(f"note: {note}", markup=False, highlight=False, style="dim")


def print_validation(document: dict[str, Any], console: Console) -> None:
    """Print errors by device and operator, long runs first, and what was skipped."""
    console.print(f"{document['quantity']}: {document['calibration']}", markup=False, highlight=False, style="bold")
    console.print(f"time: {document['time']}\n", markup=False, highlight=False)
    short = document["short_us"]
    console.print(_errors(f"runs of {short:g} us and longer", document))
    console.print()
    console.print(_errors(f"shorter runs (below {short:g} us: power of what ran before)", document["short"]))
    if document["note"]:
        console.print(f"\n{document['note']}", markup=False, highlight=False, style="yellow")
    _skipped(document["skipped"], console)


def _models(models: list[dict[str, Any]]) -> Table:
    heads = {"train": "train", "leave_one_kernel_out": "kernel out", "leave_one_benchmark_out": "benchmark out",
             "leave_families_out": "families out"}  # fmt: skip
    shown = [key for key in heads if key in models[0]]
    table = Table(title="mean error, %", title_justify="left", box=None, pad_edge=False)
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
    table = Table(title="coefficients", title_justify="left", box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for name in ("value", "unit", "2.5 %", "97.5 %", "data %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for c in rows:
        words = "" if c.identified else "not identified: mostly the prior"
        cells = (f"{c.value:.4g}", c.unit, f"{c.low:.4g}", f"{c.high:.4g}", f"{100 * c.share:.0f}")
        table.add_row(c.name, *cells, words, style=None if c.identified else "dim")
    return table


def _errors(title: str, document: dict[str, Any]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("device", "operator"):
        table.add_column(name, no_wrap=True)
    for name in ("rows", "error %", "bias %"):
        table.add_column(name, justify="right")
    for row in [*document["device"], {"device": "all", "op": "", **document["all"]}]:
        errors = [f"{row[key]:.1f}" if key in row else "-" for key in ("power_mape", "power_bias")]
        table.add_row(row["device"], row["op"], str(row["n"]), *errors)
    return table


def _skipped(skipped: list[dict[str, Any]], console: Console) -> None:
    for row in skipped:
        console.print(f"skipped: {row['n']} rows: {row['reason']}", markup=False, highlight=False, style="yellow")

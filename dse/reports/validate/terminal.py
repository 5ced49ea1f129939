"""``dse validate`` in the terminal: errors with baselines, and the rows that are farthest off."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dse.reports.common.terminal_parts import plain_table, print_notes, say
from dse.reports.common.time_units import row_unit
from dse.reports.common.words import REGIMES
from dse.reports.validate.data import worst_shape
from dse.validation.time import TimeValidation

WORST = 10


def print_time_validation(validation: TimeValidation, console: Console) -> None:
    """Print doubts, errors by device, operator, data type and regime, the worst rows, and what was skipped."""
    for doubt in validation.doubts:
        say(console, f"warning: {doubt}", "bold red")
    console.print("error of time, %, of rooflines (sheet, fitted), and noise of one repeat", style="italic")
    console.print(
        "bias: geometric mean of predicted / measured; 80 %: share of rows within their interval called so\n",
        style="dim",
        highlight=False,
    )
    for device in dict.fromkeys(g["device"] for g in validation.document["groups"]):
        console.print(_groups(device, [g for g in validation.document["groups"] if g["device"] == device]))
        console.print()
    console.print("farthest off", style="italic")
    for row in validation.document["worst"][:WORST]:
        say(console, _worst(row))
    console.print()
    notes = [note for note in validation.notes if note not in validation.doubts]
    print_notes(validation.document["rows_skipped"], notes, console)


def print_validation(document: dict[str, Any], console: Console) -> None:
    """Print errors by device and operator, long runs first, and what was skipped."""
    say(console, f"{document['quantity']}: {document['calibration']}", "bold")
    say(console, f"time: {document['time']}\n")
    short = document["short_us"]
    console.print(_errors(f"runs of {short:g} us and longer", document))
    console.print()
    console.print(_errors(f"shorter runs (below {short:g} us: power of what ran before)", document["short"]))
    if document["note"]:
        say(console, f"\n{document['note']}", "yellow")
    print_notes({row["reason"]: row["n"] for row in document["skipped"]}, (), console)


def print_stalls(document: dict[str, Any], console: Console) -> None:
    """Print shares of time by class, measured beside predicted, for each operator, and what was skipped."""
    say(console, f"where the time goes: warp states beside the stack of {document['model']}\n", "bold")
    for group in document["operators"]:
        table = plain_table(f"{group['op']}, {group['n']} kernels", ("class",), ("measured %", "predicted %"))
        for name, share in group["measured"].items():
            table.add_row(name, f"{100 * share:.0f}", f"{100 * group['predicted'][name]:.0f}")
        console.print(table)
        say(
            console,
            f"{100 * group['misplaced']:.0f} % of the time is misplaced in the mean of kernels; the same class leads "
            f"in {group['same_leader']} of {group['n']}. {100 * group['not_modelled']:.0f} % of warps' time was left "
            "out: no cause stands for it.\n",
        )
    print_notes({row["reason"]: row["n"] for row in document["skipped"]}, (document["meaning"],), console)


def _groups(device: str, groups: list[dict[str, Any]]) -> Table:
    table = plain_table(
        escape(device), ("operator", "regime"), ("rows", "err", "bias", "sheet", "fit", "noise", "80 %")
    )
    named = ""
    for g in groups:
        name = f"{g['op']} {g['dtype']}"
        covered = "-" if g["interval_80_coverage"] is None else f"{g['interval_80_coverage']:.0f}"
        noise = "-" if g["noise_floor"] is None else f"{g['noise_floor']:.1f}"
        errors = ("-" if g[key] is None else f"{g[key]:.1f}" for key in ("roofline_mape", "roofline3_mape"))
        table.add_row(
            "" if name == named else name,
            REGIMES[g["regime"]],
            str(g["n"]),
            f"{g['mape']:.1f}",
            f"{g['bias']:.2f}",
            *errors,
            noise,
            covered,
            style="bold" if g["regime"] == "all" else None,
        )
        named = name
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


def _errors(title: str, document: dict[str, Any]) -> Table:
    table = plain_table(title)
    for name in ("device", "operator", "type"):
        table.add_column(name, no_wrap=True)
    for name in ("rows", "error %", "bias %"):
        table.add_column(name, justify="right")
    for row in [*document["kinds"], {"device": "all", "op": "", "dtype": "", "operands": "", **document["all"]}]:
        errors = [f"{row[key]:.1f}" if key in row else "-" for key in ("power_mape", "power_bias")]
        kind = ", ".join(filter(None, (row["dtype"], row["operands"])))
        table.add_row(row["device"], row["op"], kind, str(row["n"]), *errors)
    return table

"""``dse run`` in the terminal: the answer, the stack, the watts, and the kernels with their share."""

from collections.abc import Callable

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dse.hardware.memory_pins import pins_note
from dse.power.power import COMPONENTS
from dse.report.words import RUN_LABELS, joined, power_calibration, timing_calibration
from dse.sweep.run import RunResult
from dse.timing.timing import HOST, PHASE_CAUSES
from dse.uncertainty import SHARE
from dse.workload.llm import EXPERT

INTERCONNECT = "interconnect"
"""The cause that messages between GPUs are booked under."""

NO_ENGINE = (
    "no engine: the GPU's own work; measured runs of whole networks are 24 to 43 % away from that, nearly all slower "
    "(engine=NAME adds what a serving engine's host does: 'dse show engines')"
)
"""Of runs without an engine: experiments/019_whole_networks."""

HELD_WELL = 0.9
"""Share of the clock from which on a time depends on the watts by little: those of the fits were held so."""

ROUNDED = 1.001
"""Kernels' bandwidth over the DRAM's that is no more than rounding."""


def print_run(result: RunResult, console: Console) -> None:
    """Print metrics, stack by phase, and a table of kernels."""
    console.print(f"{result.workload.description} on {result.gpu.title}", markup=False, highlight=False, style="bold")
    console.print(timing_calibration(result.model), markup=False, style="yellow")
    console.print(f"power model: {power_calibration(result.power)}\n", markup=False, style="yellow")
    for name, (value, unit) in result.metrics.items():
        trust = result.trust(name)
        said = ", ".join(filter(None, (trust.word, trust.scope.partition(";")[0])))
        unit = "" if unit == "1" else unit
        console.print(f"  {RUN_LABELS.get(name, name):30s} {value:10,.4g} {unit:8s} [dim]{said}[/]".rstrip())
    for line in run_notes(result):
        console.print(line, markup=False, highlight=False, style="dim")
    for phase in result.workload.phases:
        rows = result.kernels[result.kernels["phase"] == phase.name]
        console.print()
        console.print(_stack(phase.name, result.stack(phase.name)))
        console.print()
        console.print(_watts(phase.name, result.watts[phase.name]))
        console.print()
        console.print(_kernels(phase.name, rows, console.width, result.waits.get(phase.name, 0.0)))


def run_notes(result: RunResult) -> list[str]:
    """Return what the metrics of a run stand for, and what they leave out."""
    lines = interval_notes(result)
    if result.workload.tokens and result.workload.engine is None:
        lines.append(NO_ENGINE)
    numbers = result.gpu.numbers()
    lines += filter(None, [_held(result), result.workload.caution, pins_note(numbers)])
    bandwidth = numbers["dram_bandwidth_gbs"]
    if (result.kernels["dram_gbs"] > ROUNDED * bandwidth).any():
        lines.append(
            f"kernels take more than the DRAM's {bandwidth:,.0f} GB/s: this timing model has no roofline, which "
            "'--timing amali' holds to"
        )
    return lines


def _held(result: RunResult) -> str:
    """What the interval of a time does not hold where the board's limit holds the clock well below the asked one."""
    share = result.metrics["clock_share"][0]
    if share > HELD_WELL or result.trust("time_ms").uncertainty is None:
        return ""
    return (
        f"the power limit leaves {share:.0%} of the clock".replace("%", " %")
        + ": the time rests on the predicted watts too, whose errors its interval does not hold"
    )


def extrapolation(result: RunResult) -> str:
    """Return what of a design lies beyond the GPUs that were measured, "" for nothing."""
    said = "; ".join(result.extrapolated)
    return f"beyond the GPUs that were measured, and so extrapolated: {said}" if said else ""


def interval_notes(result: RunResult) -> list[str]:
    """Return what the intervals beside the metrics stand for, and what they leave out."""
    trusts = [result.trust(name) for name in result.metrics]
    sources = [part for trust in trusts if trust.uncertainty for part in trust.uncertainty.source.split("; ")]
    if not sources:
        return []
    lines = [
        f"{100 * SHARE:.0f} % of measured values lie so far from the predicted ({'; '.join(dict.fromkeys(sources))})"
    ]
    stacks = {phase.name: result.stack(phase.name) for phase in result.workload.phases}
    shares = [(stack.get(INTERCONNECT, 0.0) / sum(stack.values()), name, "messages between GPUs")
              for name, stack in stacks.items()]  # fmt: skip
    rows = result.kernels[result.kernels["kernel"].str.startswith(EXPERT)]
    shares += [(share, str(name), "kernels of experts") for name, share in rows.groupby("phase")["share"].sum().items()]
    parts = [f"{share:.1%} of {name} is {what}".replace("%", " %") for share, name, what in shares if share > 0]
    scopes = dict.fromkeys(trust.scope for trust in trusts if trust.scope)
    lines += [f"{scope}: {joined(parts)}, which no interval covers" for scope in scopes]
    return [*lines, *filter(None, [extrapolation(result)])]


def _stack(phase: str, stack: dict[str, float]) -> Table:
    return _shares(f"{phase}: where the time goes", "cause", "ms", stack, PHASE_CAUSES)


def _watts(phase: str, watts: dict[str, float]) -> Table:
    return _shares(f"{phase}: where the power goes, mean of a board", "component", "W", watts, COMPONENTS)


def _shares(title: str, what: str, unit: str, values: dict[str, float], meanings: dict[str, str]) -> Table:
    """A row a part, the largest first, with its share; parts below 0.1 % are left out."""
    total = sum(values.values())
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(what)
    table.add_column(unit, justify="right")
    table.add_column("%", justify="right")
    table.add_column("")
    table.add_column("meaning", style="dim", overflow="fold")
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        share = value / total
        if share >= 0.001:
            table.add_row(name, f"{value:.4g}", f"{100 * share:.1f}", "█" * round(20 * share), meanings[name])
    table.add_row("total", f"{total:.4g}", "100.0", "", "")
    return table


def _kernels(phase: str, rows: pd.DataFrame, width: int, waits: float) -> Table:
    """The kernels of a phase, and how long the GPU ``waits`` beside [ms]; a narrow terminal gets the columns that
    matter most, never cut ones."""
    columns: dict[str, tuple[Callable[[dict], str], int]] = {
        "kernel": (lambda row: row["kernel"], 0),
        "shape": (lambda row: row["shape"], 150),
        "implementation": (lambda row: row["implementation"], 110),
        "runs": (lambda row: f"{row['repeats']:g}", 0),
        "us each": (lambda row: f"{row['time_us']:.2f}", 0),
        "share %": (lambda row: f"{100 * row['share']:.1f}", 0),
        "TFLOP/s": (lambda row: f"{row['tflops']:.1f}" if row["tflops"] else "", 90),
        "DRAM GB/s": (lambda row: f"{row['dram_gbs']:.0f}", 90),
        "W, no limit": (lambda row: f"{row['power_w']:.0f}", 90),
        "bound by": (lambda row: row["bound_by"], 0),
    }
    shown = {name: cell for name, (cell, needed) in columns.items() if width >= needed}
    table = Table(title=f"{phase}: kernels", title_justify="left", box=None, pad_edge=False)
    for name in shown:
        text = name in ("kernel", "shape", "implementation", "bound by")
        table.add_column(name, justify="left" if text else "right", no_wrap=True)
    for row in rows.to_dict("records"):
        table.add_row(*(Text(cell(row)) for cell in shown.values()))
    if waits > 0:
        share = waits / (waits + rows["time_ms"].sum())
        last = {"kernel": "none: the GPU waits", "runs": "1", "us each": f"{1e3 * waits:.2f}",
                "share %": f"{100 * share:.1f}", "bound by": HOST}  # fmt: skip
        table.add_row(*(Text(last.get(name, "")) for name in shown))
    return table

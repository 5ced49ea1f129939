"""``dse show`` and ``dse check`` in the terminal: what is shipped, with units and sources.

Tables are printed without the models: what imports JAX is imported where it is needed.
"""

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dse.hardware.own_guards import own_gpu_notes
from dse.hardware.peak import PeakCheck, peak_checks
from dse.hardware.presets import GpuSheet, gpu_index, load_sheet, preset_numbers, preset_sheet
from dse.hardware.schema import gpu_schema
from dse.reports.common.terminal_parts import say
from dse.reports.common.terminal_rows import cell, print_rows
from dse.space.shipped import shipped_spaces, space_question

if TYPE_CHECKING:
    from dse.grid.estimate import Estimate
    from dse.space.space import Space
    from dse.workload.networks.network import Network


def print_gpus(console: Console, as_json: bool) -> None:
    """Print every GPU with its main figures and aliases."""
    rows = []
    for preset, row in gpu_index().items():
        if row["supported"] != "1":
            continue
        sheet = preset_sheet(preset).entries
        rows.append(
            {
                "preset": preset,
                "name": row["name"],
                "chip": row["chip"],
                "SMs": sheet["sm_count"].value,
                "BF16/FP16 FMA/cycle/tensor core": max(
                    sheet["tensor_fma_bf16"].number, sheet["tensor_fma_fp16"].number
                ),
                "L2 MiB": sheet["l2_mib"].value,
                "DRAM GB/s": sheet["dram_bandwidth_gbs"].value,
                "DRAM GB": sheet["dram_gb"].value,
                "TDP W": sheet["tdp_w"].value,
                "aliases": row["aliases"].replace(";", ", "),
            }
        )
    print_rows(rows, console, as_json, rest=("name", "aliases"))
    if not as_json:
        refused = ", ".join(row["name"] for row in gpu_index().values() if row["supported"] != "1")
        console.print(f"\nNot evaluated (the interval model describes NVIDIA SMs): {refused}")


def print_gpu(name: str, console: Console, as_json: bool) -> None:
    """Print every attribute of one GPU with unit, source and status, and its peaks beside the data sheet's."""
    sheet = load_sheet(name)
    shipped = sheet.name in gpu_index() and sheet is preset_sheet(sheet.name)  # not a user's file of that name
    index = gpu_index()[sheet.name] if shipped else {}
    rows = [
        {
            "attribute": entry.attribute.name,
            "value": entry.value,
            "unit": entry.attribute.unit,
            "status": entry.status,
            "source": entry.source,
            "note": entry.note,
        }
        for entry in sheet.entries.values()
    ]
    die = _die_rows(sheet)
    checks = [_peak_row(check) for check in peak_checks(preset_numbers) if shipped and check.preset == sheet.name]
    if as_json:
        names = {"name": sheet.name, "title": sheet.title}
        measures = {key: _number(index[key]) for key in ("die_mm2", "sm_on_die", "transistors_billion") if key in index}
        document = {**index, **measures, **names, "attributes": rows, "peaks": checks, "die": die}
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    chip = f", {index['chip']} ({index['architecture']}), die {index['die_mm2'] or 'unknown'} mm2" if index else ""
    console.print(f"{sheet.title} ({sheet.name}){chip}\n", markup=False, style="bold")
    for text in own_gpu_notes(sheet):
        say(console, text, "yellow")
    print_rows([row | {"value": cell(row["value"])} for row in rows], console, False, rest=("note", "source"))
    if checks:
        console.print()
        print_rows(
            checks, console, False, "Dense peaks: data sheet against SMs x FMA x 2 x clock", rest=("source", "note")
        )
    console.print()
    print_rows(die, console, False, "The die by the area and cost models (PAPERS.md)")


def _number(text: str) -> float | None:
    return float(text) if text else None


def _die_rows(sheet: GpuSheet) -> list[dict[str, Any]]:
    """Return area by component, and yield and cost of the dies, as the models have them."""
    from dse.hardware.area import DieArea
    from dse.hardware.cost import DieCost

    gpu = sheet.record()
    parts = DieArea.from_table()(gpu)
    total = sum(float(area) for area in parts.values())
    cost = DieCost.from_table()(total, gpu)
    rows = [_die_row(name.replace("_", " "), float(area), "mm2") for name, area in parts.items()]
    return [
        *rows,
        _die_row("all dies of the package", total, "mm2"),
        _die_row("dies", float(cost.dies), ""),
        _die_row("dies that can be sold", 100 * float(cost.die_yield), "%"),
        _die_row("cost of the dies", float(cost.cost_usd), "USD"),
        _die_row("price of the memory", float(cost.memory_usd), "USD"),
    ]


def _die_row(what: str, value: float, unit: str) -> dict[str, Any]:
    return {"part": what, "value": float(f"{value:.4g}"), "unit": unit}


def _peak_row(check: PeakCheck) -> dict[str, Any]:
    return {
        "unit": check.unit,
        "type": check.dtype,
        "sheet TFLOP/s": check.sheet,
        "record TFLOP/s": float(f"{check.record:.5g}"),
        "difference %": float(f"{100 * check.difference:.2f}"),
        "note": check.exception,
        "source": check.source,
    }


def print_schema(console: Console, as_json: bool) -> None:
    """Print the attribute table of a GPU."""
    rows = [
        {
            "attribute": a.name,
            "unit": a.unit,
            "accepted": a.range_text,
            "default": "required" if a.default is None else a.decode(a.default),
            "description": a.description,
            "source": a.source,
        }
        for a in gpu_schema().values()
    ]
    print_rows(rows, console, as_json, rest=("source",))


def print_columns(console: Console, as_json: bool) -> None:
    """Print the columns of a measured table."""
    from dse.measured.columns import measured_columns

    print_rows([asdict(column) for column in measured_columns().values()], console, as_json, rest=("operators",))


def print_networks(console: Console, as_json: bool) -> None:
    """Print the shapes of the shipped language models."""
    from dse.workload.networks.network import networks

    rows = [
        {
            "network": n.name,
            "name": n.title,
            "parameters 1e9": float(f"{n.parameters / 1e9:.4g}"),
            "active 1e9": float(f"{n.active_parameters / 1e9:.4g}"),
            "layers": n.depth,
            "hidden": n.hidden,
            **_layer_facts(n),
            "vocabulary": n.vocab,
            "positions": n.positions,
            "source": n.source,
        }
        for n in networks().values()
    ]
    print_rows(rows, console, as_json, rest=("name", "source"))


def _layer_facts(network: "Network") -> dict[str, object]:
    """What a table shows of a network's attentions and MLPs, by column: of several kinds one after the other."""
    kinds = [layer.attention.facts | layer.mlp.facts for layer, _ in network.layers]
    named = dict.fromkeys(column for facts in kinds for column in facts)
    columns = {column: list(dict.fromkeys(facts[column] for facts in kinds if column in facts)) for column in named}
    return {c: facts[0] if len(facts) == 1 else ", ".join(map(str, facts)) for c, facts in columns.items()}


def print_engines(console: Console, as_json: bool) -> None:
    """Print what the host of each serving engine adds to a step, and how far off times with it are."""
    from dse.workload.operators.attention_library import DEFAULTS
    from dse.workload.serving_engine import engines

    rows = []
    for e in engines().values():
        attention = [e.attention_for(warpgroup) or DEFAULTS[warpgroup] for warpgroup in (False, True)]
        rows.append(
            {
                "engine": e.name,
                "name": e.title,
                "launch us": e.launch_us,
                "step us": e.step_us,
                "request us": e.request_us,
                "prompt us": e.prompt_us,
                "reduce us": e.reduce_us,
                "turn": e.turn,
                "attention": " or ".join(dict.fromkeys(attention)),
                "from %": round(100 * (math.exp(-e.high) - 1), 1),
                "to %": round(100 * (math.exp(-e.low) - 1), 1),
                "source": e.source,
            }
        )
    if as_json:
        print_rows(rows, console, True)
        return
    print_rows(
        [{k: v for k, v in row.items() if k != "source"} for row in rows],
        console,
        False,
        rest=("name", "turn", "attention"),
    )
    for source in dict.fromkeys(row["source"] for row in rows):
        names = ", ".join(row["engine"] for row in rows if row["source"] == source)
        say(console, f"{names}: {source}", "dim")
    console.print(ENGINES_NOTE, markup=False)


ENGINES_NOTE = (
    "\nlaunch: host work for each kernel, beside the GPU's (0: replayed as one graph). In step (once), request (each "
    "that decodes), prompt (each that is read) and reduce (each all-reduce, beyond NVLink's time) the GPU waits. "
    "turn: share of the others' prefills that a request waits for while it decodes, under a constant load; runs of "
    "one workload have none. attention: libraries without and with warpgroup instructions. from, to: where 80 % of "
    "measured times lie, from the predicted."
)


def print_spaces(console: Console, as_json: bool) -> None:
    """Print the shipped spaces and the question each asks."""
    print_rows(
        [{"space": name, "question": space_question(path)} for name, path in shipped_spaces().items()], console, as_json
    )


def print_metrics(console: Console, as_json: bool) -> None:
    """Print the metrics that objectives and constraints can name."""
    from dse.space.metrics import DESIGN_METRICS, PRICED_METRICS, WORKLOAD_METRICS

    rows = [{"metric": name, "unit": unit, "meaning": text} for name, (unit, text) in DESIGN_METRICS.items()]
    rows += [
        {"metric": f"WORKLOAD.{name}", "unit": unit, "meaning": text} for name, (unit, text) in WORKLOAD_METRICS.items()
    ]
    rows += [
        {"metric": f"WORKLOAD.{name}", "unit": unit, "meaning": text} for name, (unit, text) in PRICED_METRICS.items()
    ]
    rows.append({"metric": "total.time_ms", "unit": "ms", "meaning": "time of all workloads, each times its weight"})
    rows.append({"metric": "base.NAME", "unit": "", "meaning": "the base GPU's value of an attribute or a metric"})
    print_rows(rows, console, as_json)


def print_check(space: "Space", figures: "Estimate", console: Console) -> None:
    """Print what a space asks and what a sweep of it takes."""
    console.print(f"{space.name}: {space.question}" if space.question else space.name, markup=False, style="bold")
    rows = [
        {
            "axis": axis.name,
            "unit": axis.unit,
            "values": len(axis),
            "from": cell(axis.values[0]),
            "to": cell(axis.values[-1]),
        }
        for axis in space.axes
    ]
    console.print()
    print_rows(rows, console, False)
    console.print()
    for workload in space.workloads:
        need = f", needs {workload.memory.total / 1e9:.1f} GB a GPU" if workload.memory.total else ""
        console.print(f"workload {workload.name}: {workload.description}{need}", markup=False)
    for objective in space.objectives:
        console.print(
            f"{objective.direction} {objective.name} {f'[{objective.unit}]' if objective.unit else ''}", markup=False
        )
    for constraint, share in figures.constraint_shares.items():
        kept = "a sweep tells how many designs" if share is None else f"{100 * share:.3g} % of designs"
        console.print(f"constraint {constraint}: {kept}", markup=False)
    console.print(
        f"\n{figures.n:,} designs x {figures.kernels} kernel candidates: about {figures.seconds:,.0f} s, "
        f"{figures.memory_gb:.1f} GB of memory, {figures.disk_gb:.2g} GB on disk"
    )
    for warning in [*figures.warnings, *own_gpu_notes(space.base)]:
        say(console, f"dse: {warning}", "yellow")

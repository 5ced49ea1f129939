"""Die area: the fit of the area model to dies and blocks, each die left out, what the evidence leaves open.

Run with ``python experiments/005_die_area/run.py``; writes the tables of the README beside this file. ``--write`` puts
coefficients, their ranges and the errors into the tables of ``dse/data/process``.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import dse
from dse import load_gpu
from dse.base.package_tables import read_table
from dse.hardware.area import SM_PARTS, DieArea
from dse.hardware.data_types import FP64_ARRAY, data_types
from dse.hardware.process import densities_at
from experiments.common.readme_tables import markdown, write_table

sys.path.insert(0, str(Path(__file__).parent))
from fit import DENSITIES, FITTED, FOLLOWS_4N, PRIORS, AreaFit, Die, block_area, dies, with_values

GA100_BLOCKS = {
    SM_PARTS: 476.25,
    ("noc",): 76.44,
    ("l2",): 119.31,
    ("memory_phy",): 58.0,
    ("memory_controller",): 31.77,
    ("nvlink",): 20.95,
    ("other",): 40.0,
}
"""Blocks of GA100 [mm2] from its annotated die shot: LLMCompass@2e015fd2 ae/figure6/real_hardware/die_area.csv."""

FOUNDRY_N5_LOGIC = 1.84
"""Logic density of N5 over N7 that TSMC claims (dvhardware.net article72643)."""

PAIRED = ("GV100", "TU102", "TU106", "TU116", "GA100", "GA102", "AD102", "GH100", "GB202")
"""Dies whose ratios are a natural experiment: each with each."""

TURING_SHOT = "TU106 tensor cores less TU116 FP16 units"
TURING_RATE = 512
"""FP16 FMA/cycle that the tensor cores of a Turing SM have."""

FIXED = 1e-3
"""Log error of a prior that no row moves."""

RESAMPLES, SEED = 200, 38
"""Draws of the bootstrap over dies and blocks, and where they begin."""

DATA = Path(dse.__file__).parent / "data" / "process"
README = Path(__file__).parent / "README.md"


class Evidence(NamedTuple):
    """Coefficients of the tensor cores under a set of evidence, at the shipped density of tsmc_4n."""

    tensor_fma: float
    type_support: float
    note: str


@cache
def whole_fit(thor: str = "tsmc_4n") -> AreaFit:
    """Return the fit to all rows, compiled once."""
    return AreaFit(DieArea.from_table(), thor)


def error(model: DieArea, die: Die) -> float:
    """Return the relative error of a die's area."""
    return float(model.total(die.record)) / die.area - 1  # pyright: ignore[reportArgumentType]


def leave_one_out() -> dict[str, float]:
    """Return the error of each die under a fit without it and without its blocks."""
    fit = whole_fit()
    return {name: fit.logs(fit(without=fit.all_of(name)))[name] for name in dies()}


def leave_family_out() -> dict[str, float]:
    """Return the error of each die under a fit without its family and without blocks of it."""
    fit, known = whole_fit(), dies()
    found = {}
    for family in dict.fromkeys(die.family for die in known.values()):
        members = [name for name, die in known.items() if die.family == family]
        values = fit(without=[row for name in members for row in fit.all_of(name)])
        found |= {name: fit.logs(values)[name] for name in members}
    return found


def pairs() -> dict[tuple[str, str], float]:
    """Return log(predicted / published ratio) of the areas of two dies, for every pair of PAIRED, under a fit without
    either and without their blocks."""
    fit, found = whole_fit(), {}
    for old, new in combinations(PAIRED, 2):
        logs = fit.logs(fit(without=[*fit.all_of(old), *fit.all_of(new)]))
        found[old, new] = float(np.log1p(logs[new]) - np.log1p(logs[old]))
    return found


def without_its_node() -> dict[str, tuple[str, float, dict[str, float]]]:
    """Return, by node, where its logic density comes from if no die of it is known, and the errors of its dies.

    It is interpolated between the nodes beside it, or the foundry's claim. A node of which no density is known but that
    of a neighbour is what a design at a new node meets.
    """
    fit, known = whole_fit(), dies()
    cases = {
        "tsmc_16ff": ("log-log at 16 nm", densities_at(16.0, without="tsmc_16ff")["logic_density"]),
        "tsmc_12ffn": ("log-log at 12 nm", densities_at(12.0, without="tsmc_12ffn")["logic_density"]),
        "samsung_8n": ("log-log at 8 nm", densities_at(8.0)["logic_density"]),
        "tsmc_4n": ("TSMC's 1.84x", FOUNDRY_N5_LOGIC),
    }
    results = {}
    for node, (how, density) in cases.items():
        members = [name for name, die in known.items() if die.node == node]
        values = fit(without=members, priors={node: (density, FIXED)})
        results[node] = (how, density, {name: fit.logs(values)[name] for name in members})
    return results


def evidence(shipped: Mapping[str, float]) -> dict[str, Evidence]:
    """Return the tensor cores under each admissible set of evidence."""
    fit, third = whole_fit(), whole_fit("tsmc_n3e")
    blocks = [row.name for row in fit.rows if row.die in ("GA10B", "Thor") or row.name == TURING_SHOT]
    transistors = {node: (density, FIXED) for node, density in DENSITIES.items()}
    shot = next(row.area for row in fit.rows if row.name == TURING_SHOT)
    scale = DENSITIES["tsmc_12ffn"] * shipped["tsmc_4n"] / DENSITIES["tsmc_4n"]
    fits = {
        "whole dies and SMs": (fit(without=blocks), "no block but the SMs of GA100 and TU106"),
        "without Turing": (fit(without=[TURING_SHOT]), "no die shot of Turing"),
        "without GA10B": (fit(without=fit.all_of("GA10B")), "no block of GA10B"),
        "without Thor": (fit(without=fit.all_of("Thor")), "no block of Thor"),
        "Thor at N3": (third(), "Thor's blocks read as N3E: 77 billion transistors on 416 mm2 are too many for 4N"),
        "densities by transistors": (fit(priors=transistors), "nodes as dense as the transistors of one die a mm2"),
        "types share nothing": (fit(priors={"type_support": (1.0, FIXED)}), "every type has its own multipliers"),
    }
    drawn = bootstrap()
    order = sorted(range(len(drawn)), key=lambda place: _h100_area(drawn[place]))
    for share in (10, 90):
        values = drawn[order[round(share / 100 * (len(order) - 1))]]
        fits[f"bootstrap {share} %"] = (values, f"{RESAMPLES} draws of dies and blocks: this share lies below")
    alone = Evidence(shot * scale / TURING_RATE, 0.0, "net of the FP16 units that TU116 has in their place: no less")
    return {"Turing die shots alone": alone} | {
        name: Evidence(
            values["tensor_fma"] * shipped["tsmc_4n"] / values["tsmc_4n"], min(values["type_support"], 1.0), note
        )
        for name, (values, note) in fits.items()
    }


@cache
def bootstrap() -> list[dict[str, float]]:
    """Return fits to dies and blocks drawn with replacement."""
    fit, draw = whole_fit(), np.random.default_rng(SEED)
    count = len(fit.rows)
    return [
        fit(weights=np.bincount(draw.integers(0, count, count), minlength=count).astype(float))
        for _ in range(RESAMPLES)
    ]


def _h100_area(values: Mapping[str, float]) -> float:
    model = with_values(DieArea.from_table(), values)
    return float(model(dies()["GH100"].record)["tensor_core"])  # pyright: ignore[reportArgumentType]


def blocks(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return published area [mm2] and error of GA100's blocks."""
    areas = model(dies()["GA100"].record)  # pyright: ignore[reportArgumentType]
    return {
        "SMs" if names is SM_PARTS else names[0]: (area, sum(float(areas[name]) for name in names) / area - 1)
        for names, area in GA100_BLOCKS.items()
    }


def sm_areas(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return the area of an SM of V100, A100 and H100 [mm2]: by the model, and by subtraction.

    By subtraction: the published die less what the model gives for all that is not an SM.
    """
    found = {}
    for name in ("GV100", "GA100", "GH100"):
        die = dies()[name]
        sm = float(block_area(model, die.record, SM_PARTS))
        found[name] = (sm, sm + (die.area - float(model.total(die.record))) / die.record.sm_count)  # pyright: ignore[reportArgumentType]
    return found


def slopes(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return mm2 a further SM costs at equal bus and L2, by the model and by two published dies."""
    known = dies()
    return {
        f"{big}, {small}": (
            float(model.total(known[big].record) - model.total(known[small].record)) / sms,  # pyright: ignore[reportArgumentType]
            (known[big].area - known[small].area) / sms,
        )
        for big, small, sms in (("AD106", "AD107", 12), ("GB206", "GB207", 16), ("TU104", "TU106", 12))
    }


def held_out(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return published area [mm2] and error of dies that took no part in the fit, by their presets."""
    rows = read_table("process/held_out_dies.csv")
    return {
        row["die"]: (float(row["area_mm2"]), float(model.total(load_gpu(row["preset"]))) / float(row["area_mm2"]) - 1)
        for row in rows
    }


def added(model: DieArea, times: float) -> float:
    """Return what a GH100 of ``times`` the tensor rate, FP64 apart, takes more [mm2]."""
    record = dies()["GH100"].record
    more = {
        dtype: rate * (1.0 if data_types()[dtype].tensor_array == FP64_ARRAY else times)
        for dtype, rate in record.tensor_fma.items()
    }
    raised = SimpleNamespace(**vars(record) | {"tensor_fma": more})
    return float(model.total(raised) - model.total(record))  # pyright: ignore[reportArgumentType]


def main() -> None:
    """Print the fitted coefficients and the tables; write them with ``--write``."""
    values = whole_fit()()
    fitted = with_values(DieArea.from_table(), values)
    sets = evidence(values)
    if "--write" in sys.argv[1:]:
        write(values, sets)
    coefficients = [[name, f"{value:.4g}"] for name, value in values.items()]
    write_table(README, "coefficients", markdown(["coefficient", "fitted"], coefficients))
    write_table(README, "dies", dies_table(fitted))
    write_table(README, "tensor_cores", evidence_table(fitted, sets))
    for node, (how, density, errors) in without_its_node().items():
        print(f"{node} from {how}: {density:.3f}: ", ", ".join(f"{n} {100 * e:.1f} %" for n, e in errors.items()))
    off = whole_fit().logs(values)
    print("blocks:", {row.name: f"{100 * off[row.name]:.1f} %" for row in whole_fit().rows if row.name not in dies()})
    for title, found in (("GA100's blocks", blocks(fitted)), ("never seen", held_out(fitted))):
        print(title, {name: f"{area:g} mm2, error {100 * wrong:.1f} %" for name, (area, wrong) in found.items()})
    errors = np.abs(list(pairs().values()))
    print(f"ratios of {len(errors)} pairs of dies: {errors.mean():.3f} in the mean of logs, {errors.max():.3f} at most")
    print("SM by the model and by subtraction [mm2]", sm_areas(fitted))
    print("mm2 an SM by the model and by two dies", slopes(fitted))


def dies_table(fitted: DieArea) -> str:
    """Return the README's table of dies: errors of the fit, and of fits without the die and without its family."""
    found = ({name: error(fitted, die) for name, die in dies().items()}, leave_one_out(), leave_family_out())
    rows = [
        [name, die.node, f"{die.area:g}", *(f"{100 * errors[name]:+.1f} %" for errors in found)]
        for name, die in dies().items()
    ]
    return markdown(["die", "node", "published mm2", "error, fitted", "left out", "family left out"], rows, 2)


def evidence_table(fitted: DieArea, sets: Mapping[str, Evidence]) -> str:
    """Return the README's table of a GH100's tensor cores, and what four times its rate costs, by set of evidence."""
    record = dies()["GH100"].record
    models = {"all dies and blocks (shipped)": fitted} | {name: with_tensor(fitted, one) for name, one in sets.items()}
    rows = [
        [name, f"{float(model(record)['tensor_core']):.0f}", f"{added(model, 4):.0f}"]  # pyright: ignore[reportArgumentType]
        for name, model in models.items()
    ]
    return markdown(["evidence", "tensor cores of a GH100, mm2", "four times their rate costs, mm2"], rows)


def with_tensor(model: DieArea, one: Evidence) -> DieArea:
    """Return the model with the tensor cores of a set of evidence."""
    return replace(model, tensor_fma=jnp.asarray(one.tensor_fma), type_support=jnp.asarray(one.type_support))


def write(values: Mapping[str, float], sets: Mapping[str, Evidence]) -> None:
    """Write coefficients, densities, ranges, evidence and errors into the tables of the package."""
    spans = _spans(values, sets)
    _rewrite("area.csv", "coefficient", {n: _cells("value", values[n], spans[n]) for n in PRIORS if n != "gddr_phy"})
    phy = _cells("phy_mm2_per_bit", values["gddr_phy"], spans["gddr_phy"])
    _rewrite("memory.csv", "dram_type", dict.fromkeys(("gddr5", "gddr5x", "gddr6", "gddr6x", "gddr7"), phy))
    densities = {node: values[node] for node in DENSITIES} | {
        node: ratio * values["tsmc_4n"] for node, ratio in FOLLOWS_4N.items()
    }
    densities["samsung_14"] = values["tsmc_16ff"]
    _rewrite("nodes.csv", "process", {node: {"logic_density": f"{d:.4g}"} for node, d in densities.items()})
    tensor = [
        {"evidence": name, "tensor_fma": f"{one.tensor_fma:.4g}", "type_support": f"{one.type_support:.4g}"}
        | {"unit": "mm2/(FP16 FMA/cycle), 1", "source": "experiments/005_die_area", "note": one.note}
        for name, one in sets.items()
    ]
    _write("tensor_evidence.csv", tensor)
    source = "experiments/005_die_area: predicted over published area less 1"
    errors = leave_one_out(), leave_family_out()
    _write(
        "area_error.csv",
        [
            {"die": n, "error": f"{errors[0][n]:.4f}", "family_error": f"{errors[1][n]:.4f}", "unit": "1"}
            | {"source": f"{source}, the die left out of the fit; family_error: its family left out"}
            for n in dies()
        ],
    )


def _spans(values: Mapping[str, float], sets: Mapping[str, Evidence]) -> dict[str, tuple[float, float]]:
    """Ends of each coefficient: a tenth of the bootstrap lies beyond each; of tensor cores, all evidence."""
    drawn = np.array([[one[name] for name in FITTED] for one in bootstrap()])
    found = {
        name: (min(low, values[name]), max(high, values[name]))
        for name, low, high in zip(FITTED, *np.quantile(drawn, [0.1, 0.9], axis=0), strict=True)
    }
    fitted = with_values(DieArea.from_table(), values)
    record = dies()["GH100"].record
    mm2 = [float(with_tensor(fitted, one)(record)["tensor_core"]) for one in sets.values()]  # pyright: ignore[reportArgumentType]
    shipped = float(fitted(record)["tensor_core"])  # pyright: ignore[reportArgumentType]
    found["tensor_fma"] = (values["tensor_fma"] * min(mm2) / shipped, values["tensor_fma"] * max(mm2) / shipped)
    support = [one.type_support for one in sets.values()]
    found["type_support"] = (min(support), max(support))
    return found


def _cells(column: str, value: float, span: tuple[float, float]) -> dict[str, str]:
    return {column: f"{value:.4g}", "low": f"{span[0]:.4g}", "high": f"{span[1]:.4g}"}


def _rewrite(name: str, key: str, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Change cells of a table's rows."""
    _write(name, [row | dict(changes.get(row[key], {})) for row in read_table(f"process/{name}")])


def _write(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    rows = list(rows)
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()

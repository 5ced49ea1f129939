"""Die area: the fit of the area model to nine dies, each die left out, GA100's blocks, and dies it has never seen.

Run with ``python experiments/005_die_area/run.py``; prints the tables of the README beside this file.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from dse import load_gpu
from dse.base.package_tables import read_table
from dse.hardware.area import DieArea
from dse.hardware.data_types import tensor_rates
from dse.hardware.process import densities_at, memory_index, node_index

FITTED = ("sm_control", "fma", "graphics")
"""The coefficients that the dies decide; all others have a source of their own."""

FMA_PRIOR = 4e-4
"""Area of an FP16 FMA [mm2] from die shots of Turing (``data/process/area.csv``), held with a log weight of 1."""

SM_COMPONENTS = ("sm_control", "register_file", "l1_shared", "fp32_int32", "fp64", "tensor_core")
GA100_BLOCKS = {
    SM_COMPONENTS: 476.25,
    ("noc",): 76.44,
    ("l2",): 119.31,
    ("memory_phy",): 58.0,
    ("memory_controller",): 31.77,
    ("nvlink",): 20.95,
    ("other",): 40.0,
}
"""Blocks of GA100 [mm2] from its annotated die shot: LLMCompass@2e015fd2 ae/figure6/real_hardware/die_area.csv."""

SHARES = {"logic": 0.565, "sram": 0.328, "analog": 0.107}
"""Area of GA100 by kind of circuit in this model: how ``nodes.csv`` splits a whole-die density."""

FOUNDRY_N5_LOGIC = 1.84
"""Logic density of N5 over N7 that TSMC claims (dvhardware.net article72643)."""


class Die(NamedTuple):
    """A die as published: its area [mm2], whole-die transistor density [MTr/mm2], node, and attributes for DieArea."""

    area: float
    density: float
    node: str
    record: SimpleNamespace


def dies() -> dict[str, Die]:
    """Return the dies of ``data/process/dies.csv``."""
    return {row["die"]: _die(row) for row in read_table("process/dies.csv")}


def _die(row: dict[str, str]) -> Die:
    apart = {"die", "area_mm2", "transistors_b", "process", "dram_type", "source", "status", "note"}
    numbers = {key: float(value) for key, value in row.items() if key not in apart}
    indices = {"process": float(node_index(row["process"])), "dram_type": float(memory_index(row["dram_type"]))}
    indices["shared_memory_kib"] = 0.0  # counted in the L1
    area = float(row["area_mm2"])
    density = float(row["transistors_b"]) * 1000 / area
    return Die(area, density, row["process"], SimpleNamespace(**numbers | indices, tensor_fma=tensor_rates(numbers)))


def sm_area(model: DieArea, record: SimpleNamespace) -> float:
    """Return the area of all SMs of a die [mm2]."""
    areas = model(record)  # pyright: ignore[reportArgumentType]
    return sum(float(areas[name]) for name in SM_COMPONENTS)


def die_area(model: DieArea, record: SimpleNamespace) -> float:
    """Return the area of a die [mm2]."""
    return float(model.total(record))  # pyright: ignore[reportArgumentType]


def fit(model: DieArea, known: dict[str, Die]) -> DieArea:
    """Return the model with FITTED least-squares fitted in logarithms to the known dies and the SMs of GA100, if known.

    Areas are linear in the coefficients, so that three evaluations a die give every other.
    """
    lines = [(*_line(model, die.record, die_area), die.area) for die in known.values()]
    if "GA100" in known:
        lines.append((*_line(model, known["GA100"].record, sm_area), GA100_BLOCKS[SM_COMPONENTS]))
    start, slopes, areas = (np.asarray(part) for part in zip(*lines, strict=True))

    def residuals(logs: np.ndarray) -> np.ndarray:
        values = np.exp(logs)
        prior = logs[FITTED.index("fma")] - np.log(FMA_PRIOR)
        return np.append(np.log((start + slopes @ values) / areas), prior)

    return _with(model, np.exp(least_squares(residuals, np.log([0.1, FMA_PRIOR, 0.5])).x))


def _line(model: DieArea, record: SimpleNamespace, area) -> tuple[float, list[float]]:
    """Return an area where FITTED are 0, and its slope in each."""
    start = area(_with(model, np.zeros(len(FITTED))), record)
    return start, [area(_with(model, unit), record) - start for unit in np.eye(len(FITTED))]


def _with(model: DieArea, values: Iterable[float]) -> DieArea:
    return eqx.tree_at(
        lambda m: tuple(getattr(m, name) for name in FITTED), model, tuple(jnp.asarray(float(v)) for v in values)
    )


def error(model: DieArea, die: Die) -> float:
    """Return the relative error of a die's area."""
    return die_area(model, die.record) / die.area - 1


def leave_one_out(model: DieArea) -> dict[str, float]:
    """Return the error of each die under a fit to the others; the nodes keep their densities."""
    known = dies()
    return {name: error(fit(model, {k: d for k, d in known.items() if k != name}), die) for name, die in known.items()}


def logic_density(whole_die: float, node: str) -> float:
    """Return the logic density of a node [relative to tsmc_n7] from whole-die MTr/mm2, as ``nodes.csv`` derives it."""
    row = read_table("process/nodes.csv")[node_index(node)]
    reference = dies()["GA100"].density
    others = SHARES["sram"] / float(row["sram_density"]) + SHARES["analog"] / float(row["analog_density"])
    return SHARES["logic"] / (reference / whole_die - others)


def with_logic(model: DieArea, node: str, density: float) -> DieArea:
    """Return the model with another logic density of a node."""
    column = model.nodes.logic_density.at[node_index(node)].set(density)
    return eqx.tree_at(lambda m: m.nodes.logic_density, model, column)


def without_its_node(model: DieArea) -> dict[str, tuple[str, float, float]]:
    """Return, for dies that give their node its density, the error when node and fit are both made without the die.

    The node is then taken from its other dies (mean MTr/mm2), or else interpolated between neighbouring nodes without
    it. GH100's node has only Ada dies besides, whose large L2 is denser; the foundry's claim is the alternative.
    """
    known = dies()
    turing, ada = (np.mean([known[n].density for n in names]) for names in (("TU106", "TU104"), ("AD102", "AD104")))
    cases = {
        "GP102": ("log-log at 16 nm", densities_at(16.0, without="tsmc_16ff")["logic_density"]),
        "GV100": ("TU106 and TU104", logic_density(float(turing), "tsmc_12ffn")),
        "GA102": ("log-log at 8 nm", densities_at(8.0)["logic_density"]),
        "GH100": ("AD102 and AD104", logic_density(float(ada), "tsmc_4n")),
        "GH100 (claim)": ("TSMC's 1.84x", FOUNDRY_N5_LOGIC),
    }
    results = {}
    for case, (how, density) in cases.items():
        name = case.split()[0]
        others = {k: d for k, d in known.items() if k != name}
        fitted = fit(with_logic(model, known[name].node, density), others)
        results[case] = (how, density, error(fitted, known[name]))
    return results


def blocks(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return published area [mm2] and error of GA100's blocks."""
    areas = model(dies()["GA100"].record)  # pyright: ignore[reportArgumentType]
    return {
        "SMs" if names is SM_COMPONENTS else names[0]: (area, sum(float(areas[name]) for name in names) / area - 1)
        for names, area in GA100_BLOCKS.items()
    }


def held_out(model: DieArea) -> dict[str, tuple[float, float]]:
    """Return published area [mm2] and error of dies that took no part in the fit, by their presets."""
    rows = read_table("process/held_out_dies.csv")
    return {
        row["die"]: (float(row["area_mm2"]), float(model.total(load_gpu(row["preset"]))) / float(row["area_mm2"]) - 1)
        for row in rows
    }


def main() -> None:
    """Print the fitted coefficients and the tables."""
    shipped = DieArea.from_table()
    fitted = fit(shipped, dies())
    print({name: float(f"{float(getattr(fitted, name)):.4g}") for name in FITTED})
    left_out = leave_one_out(shipped)
    print(
        pd.DataFrame(
            [
                {
                    "die": n,
                    "node": d.node,
                    "mm2": d.area,
                    "fit %": 100 * error(shipped, d),
                    "left out %": 100 * left_out[n],
                }
                for n, d in dies().items()
            ]
        ).to_string(index=False, float_format="%.1f")
    )
    for case, (how, density, wrong) in without_its_node(shipped).items():
        print(f"{case}: its node from {how}: logic density {density:.3f}, error {100 * wrong:.1f} %")
    for title, table in (("GA100's blocks", blocks(shipped)), ("never seen", held_out(shipped))):
        print(title)
        for name, (area, wrong) in table.items():
            print(f"  {name}: {area:g} mm2, error {100 * wrong:.1f} %")


if __name__ == "__main__":
    main()

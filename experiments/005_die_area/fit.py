"""The fit of the area model to dies and blocks: rows of areas, residuals in logarithms, least squares.

A row is a whole die of ``data/process/dies.csv`` or a block of one of ``data/process/blocks.csv``. Rows are left out by
weights, so that every fit runs the same program.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import least_squares

from dse.base.package_tables import read_table
from dse.hardware.area import HBM_CHANNEL_BITS, DieArea
from dse.hardware.data_types import tensor_rates
from dse.hardware.process import memory_index, node_index

PRIORS = {
    "sm_control": (0.16, 1.5),
    "fma": (4e-4, 0.5),
    "graphics": (0.66, 1.0),
    "tensor_fma": (4.5e-4, 1.0),
    "type_support": (0.25, 1.0),
    "fp64_support": (0.5, 0.5),
    "sm_sram": (1.6e-3, 0.5),
    "gddr_phy": (0.15, 0.3),
}
"""Fitted coefficient -> where its prior stands, and how wide in the logarithm: wide where the rows decide."""

DENSITIES = {"tsmc_16ff": 0.346, "tsmc_12ffn": 0.363, "samsung_8n": 0.664, "tsmc_4n": 1.686}
"""Logic density of the fitted nodes [relative to tsmc_n7] by the transistors of GP102, GV100, GA102 and GH100 a mm2."""

DENSITY_ERROR = 0.08
"""Log error of such a density: transistors of a mm2 depend on what a die is made of."""

DIE_ERROR = 0.05
"""Log error of the model on a whole die, by which a die counts against priors and blocks."""

FOLLOWS_4N = {"tsmc_n5": 1.0, "tsmc_4np": 1.06, "tsmc_n3e": 1.6}
"""Node -> logic density over tsmc_4n's, by foundry claims (``data/process/nodes.csv``)."""

FITTED = (*PRIORS, *DENSITIES)


class Die(NamedTuple):
    """A die as published: its area [mm2] (0 for a system on chip), family, and attributes for DieArea."""

    area: float
    family: str
    node: str
    record: SimpleNamespace


class Row(NamedTuple):
    """An area that the fit is held to [mm2], its log error, and how a model computes it."""

    name: str
    die: str
    area: float
    log_error: float
    predicted: Callable[[DieArea], Array]


def all_dies() -> dict[str, Die]:
    """Return the dies of ``data/process/dies.csv``, systems on chip too."""
    return {row["die"]: _die(row) for row in read_table("process/dies.csv")}


def dies() -> dict[str, Die]:
    """Return the dies whose whole area is that of a GPU."""
    return {name: die for name, die in all_dies().items() if die.area}


def _die(row: dict[str, str]) -> Die:
    apart = {"die", "family", "area_mm2", "transistors_b", "process", "dram_type", "source", "status", "note"}
    numbers = {key: float(value) for key, value in row.items() if key not in apart}
    indices = {"process": float(node_index(row["process"])), "dram_type": float(memory_index(row["dram_type"]))}
    indices |= {"shared_memory_kib": 0.0, "dram_phy_mm2_per_bit": 0.0}  # counted in the L1; of the memory's type
    indices |= {"dies": 1.0, "die_link_gbs": 0.0}
    record = SimpleNamespace(**numbers | indices, tensor_fma=tensor_rates(numbers))
    return Die(float(row["area_mm2"] or 0), row["family"], row["process"], record)


def with_node(record: SimpleNamespace, node: str) -> SimpleNamespace:
    """Return a record at another node."""
    return SimpleNamespace(**vars(record) | {"process": float(node_index(node))})


def block_area(model: DieArea, record: SimpleNamespace, components: Iterable[str]) -> Array:
    """Return the area of components of one SM [mm2], its share of clusters in ``other``."""
    alone = SimpleNamespace(**vars(record) | {"sm_count": 1.0, "sm_enabled_fraction": 1.0, "pcie_gbs": 0.0})
    areas = replace(model, front_end=jnp.zeros(()))(alone)  # pyright: ignore[reportArgumentType]
    return sum((areas[name] for name in components), jnp.zeros(()))


def rows(thor: str = "tsmc_4n") -> list[Row]:
    """Return every row: whole dies, then blocks; ``thor``: the node that Thor's blocks are read as."""
    known = all_dies()
    whole = [
        Row(name, name, die.area, DIE_ERROR, lambda model, r=die.record: model.total(r))  # pyright: ignore[reportArgumentType]
        for name, die in dies().items()
    ]
    return [*whole, *(_block(row, known, thor) for row in read_table("process/blocks.csv"))]


def _block(row: dict[str, str], known: Mapping[str, Die], thor: str) -> Row:
    components = row["components"].split(";")
    record, minus = known[row["die"]].record, row["minus"] and known[row["minus"]].record
    if row["die"] == "Thor":
        record = with_node(record, thor)

    def predicted(model: DieArea) -> Array:
        area = block_area(model, record, components)
        return area - block_area(model, minus, components) if minus else area

    return Row(row["block"], row["die"], float(row["area_mm2"]), float(row["log_error"]), predicted)


def with_values(model: DieArea, values: Mapping[str, Any]) -> DieArea:
    """Return the model with FITTED coefficients and densities; those of nodes that follow 4N follow."""
    nodes, types = model.nodes, model.memory_types
    density = nodes.logic_density
    for node in DENSITIES:
        density = density.at[node_index(node)].set(values[node])
    for node, ratio in FOLLOWS_4N.items():
        density = density.at[node_index(node)].set(ratio * values["tsmc_4n"])
    narrow = np.asarray(types.channel_bits) < HBM_CHANNEL_BITS
    phy = jnp.where(narrow, values["gddr_phy"], types.phy_mm2_per_bit)
    plain = {name: jnp.asarray(values[name]) for name in PRIORS if name != "gddr_phy"}
    return replace(
        model,
        nodes=eqx.tree_at(lambda n: n.logic_density, nodes, density),
        memory_types=eqx.tree_at(lambda t: t.phy_mm2_per_bit, types, phy),
        **plain,
    )


class AreaFit:
    """The fit of a model to rows; ``thor``: the node that Thor's blocks are read as."""

    def __init__(self, model: DieArea, thor: str = "tsmc_4n") -> None:
        self.model = model
        self.rows = rows(thor)
        self.areas = np.array([row.area for row in self.rows])
        self.errors = np.array([row.log_error for row in self.rows])

    @cached_property
    def _residuals(self) -> Callable[..., Any]:
        """Compiled: logarithms of predicted over published areas at logarithms of FITTED."""

        def logs(x: Array) -> Array:
            model = with_values(self.model, dict(zip(FITTED, jnp.exp(x), strict=True)))
            return jnp.log(jnp.stack([row.predicted(model) for row in self.rows]) / self.areas)

        return jax.jit(lambda x: (logs(x), jax.jacfwd(logs)(x)))

    def __call__(
        self, without: Iterable[str] = (), weights: np.ndarray | None = None, priors: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Return the value of every coefficient of FITTED by least squares.

        ``without``: rows left out by name; ``weights`` (rows,): how often each counts; ``priors``: centre and log error
        in place of those of PRIORS and DENSITIES.
        """
        count = np.ones(len(self.rows)) if weights is None else weights
        count = count * np.array([row.name not in set(without) for row in self.rows])
        spread = {node: (density, DENSITY_ERROR) for node, density in DENSITIES.items()}
        stated = PRIORS | spread | dict(priors or {})
        centre, width = np.array([stated[name] for name in FITTED]).T
        scale = np.sqrt(count) / self.errors

        def residuals(x: np.ndarray) -> np.ndarray:
            return np.append(scale * np.asarray(self._residuals(x)[0]), (x - np.log(centre)) / width)

        def jacobian(x: np.ndarray) -> np.ndarray:
            return np.vstack([scale[:, None] * np.asarray(self._residuals(x)[1]), np.diag(1 / width)])

        solution = least_squares(residuals, np.log(centre), jac=jacobian)  # pyright: ignore[reportArgumentType]
        return dict(zip(FITTED, np.exp(solution.x).tolist(), strict=True))

    def logs(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return predicted over published area less 1 of every row."""
        x = np.log([values[name] for name in FITTED])
        return dict(zip([row.name for row in self.rows], np.expm1(self._residuals(x)[0]).tolist(), strict=True))

    def all_of(self, die: str) -> list[str]:
        """Return the rows of a die: itself and its blocks."""
        return [row.name for row in self.rows if row.die == die]

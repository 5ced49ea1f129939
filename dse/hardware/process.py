"""Technology nodes and memory types: what ``Gpu.process`` and ``Gpu.dram_type`` index.

Densities are relative to tsmc_n7, the node at which the area model states its coefficients. Each row of
``data/process/nodes.csv`` and ``data/process/memory.csv`` has its source.

A design's node is one of the rows: another name is refused, never interpolated in silence. :func:`densities_at` says
what interpolation gives between the nodes that dies have measured, for who wants to add a row. A name in nm is a weak
guide: left out and interpolated, Samsung's 8 nm comes out 17 % too dense and GA102 13 % too small
(experiments/005_die_area).
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dse.base.errors import DseError, InputError, accepted
from dse.base.numerics import held
from dse.base.package_tables import read_table


class Nodes(eqx.Module):
    """Densities of every technology node in row order, shape (nodes,) [relative to tsmc_n7]."""

    logic_density: Array
    sram_density: Array
    analog_density: Array

    @classmethod
    def from_table(cls) -> "Nodes":
        """Return the nodes of ``data/process/nodes.csv``."""
        return cls(*(node_column("process/nodes.csv", field) for field in cls.__dataclass_fields__))


class MemoryTypes(eqx.Module):
    """Channel width [bit] and PHY area at tsmc_n7 [mm2/bit] of every memory type in row order, shape (types,)."""

    channel_bits: Array
    phy_mm2_per_bit: Array

    @classmethod
    def from_table(cls) -> "MemoryTypes":
        """Return the memory types of ``data/process/memory.csv``."""
        return cls(*(memory_column("process/memory.csv", field) for field in cls.__dataclass_fields__))


def node_names() -> list[str]:
    """Return the names of the technology nodes in row order."""
    return [row["process"] for row in read_table("process/nodes.csv")]


def memory_names() -> list[str]:
    """Return the names of the memory types in row order."""
    return [row["dram_type"] for row in read_table("process/memory.csv")]


def node_index(name: str) -> int:
    """Return the row of a technology node; raises InputError, naming what is accepted, when there is none."""
    return _index(name, node_names(), "technology node")


def memory_index(name: str) -> int:
    """Return the row of a memory type; raises InputError, naming what is accepted, when there is none."""
    return _index(name, memory_names(), "memory type")


def node_column(table: str, field: str) -> Array:
    """Return a numeric column of a table with one row a technology node, in the order of the nodes, shape (nodes,)."""
    return held(node_numbers(table, field))


def node_numbers(table: str, field: str) -> np.ndarray:
    """Return the same in NumPy, of which a model can be made while a program is traced."""
    return _numbers(table, "process", node_names(), field)


def memory_column(table: str, field: str) -> Array:
    """Return a numeric column of a table with one row a memory type, in the order of the types, shape (types,)."""
    return held(_numbers(table, "dram_type", memory_names(), field))


def value_at(column: Array, index: ArrayLike) -> Array:
    """Return a column's value for an index that a record may hold as a float."""
    return jnp.take(column, jnp.asarray(index).astype(jnp.int32))


def own_or_type(own: ArrayLike, column: Array, dram_type: ArrayLike) -> Array:
    """Return what a memory states of its own (above 0), else its type's value of a :func:`memory_column`."""
    return jnp.where(jnp.asarray(own) > 0, own, value_at(column, dram_type))


def densities_at(node_nm: float, without: str = "") -> dict[str, float]:
    """Return logic, SRAM and analog density [relative to tsmc_n7] of a TSMC node of that name [nm].

    Straight lines in the logarithms of density and nm between the neighbouring TSMC nodes that have a die behind them
    (a row that is assumed is no support), ``without`` one of them [name]. Raises InputError beyond them, where nothing
    holds the line.
    """
    measured = [
        row for row in read_table("process/nodes.csv") if row["status"] != "assumed" and row["foundry"] == "TSMC"
    ]
    rows = {float(row["node_nm"]): row for row in measured if row["process"] != without}
    below = max((nm for nm in rows if nm <= node_nm), default=None)
    above = min((nm for nm in rows if nm >= node_nm), default=None)
    if below is None or above is None:
        raise InputError(
            f"data/process/nodes.csv: node_nm = {node_nm:g}: densities are interpolated from {min(rows):g} to "
            f"{max(rows):g} nm only; add a row with a source"
        )
    share = 0.0 if below == above else math.log(node_nm / below) / math.log(above / below)
    fields = ("logic_density", "sram_density", "analog_density")
    return {f: float(rows[below][f]) ** (1 - share) * float(rows[above][f]) ** share for f in fields}


def _numbers(table: str, key: str, names: list[str], field: str) -> np.ndarray:
    rows = {row.get(key, ""): row for row in read_table(table)}
    if list(rows) != names:
        raise DseError(f"dse/data/{table}: the rows of {key!r} are {list(rows)}, expected in this order: {names}")
    return np.asarray([float(rows[name][field]) for name in names], jnp.result_type(float))


def _index(name: str, names: list[str], kind: str) -> int:
    if name not in names:
        raise InputError(f"{name!r} is not a {kind}; {accepted(name, names)}")
    return names.index(name)

"""Technology nodes and memory types: what ``Gpu.process`` and ``Gpu.dram_type`` index.

Densities are relative to tsmc_n7, the node at which the area model states its coefficients. Each row of
``data/process/nodes.csv`` and ``data/process/memory.csv`` has its source.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from dse.errors import InputError, accepted
from dse.tables import read_table


class Nodes(eqx.Module):
    """Densities of every technology node in row order, shape (nodes,) [relative to tsmc_n7]."""

    logic_density: Array
    sram_density: Array
    analog_density: Array

    @classmethod
    def from_table(cls) -> "Nodes":
        """Return the nodes of ``data/process/nodes.csv``."""
        return cls(*(_column("process/nodes.csv", field) for field in cls.__dataclass_fields__))


class MemoryTypes(eqx.Module):
    """Channel width [bit] and PHY area at tsmc_n7 [mm2/bit] of every memory type in row order, shape (types,)."""

    channel_bits: Array
    phy_mm2_per_bit: Array

    @classmethod
    def from_table(cls) -> "MemoryTypes":
        """Return the memory types of ``data/process/memory.csv``."""
        return cls(*(_column("process/memory.csv", field) for field in cls.__dataclass_fields__))


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


def _column(path: str, field: str) -> Array:
    return jnp.asarray([float(row[field]) for row in read_table(path)])


def _index(name: str, names: list[str], kind: str) -> int:
    if name not in names:
        raise InputError(f"{name!r} is not a {kind}; {accepted(name, names)}")
    return names.index(name)

"""What a technology node and a memory type cost in energy: the factors that power models scale with.

Switching energy and leakage are relative to a reference node. Every value has its source, its status and bounds in
``data/process/node_power.csv`` and ``data/process/memory_power.csv`` (those of nodes against tsmc_n7): foundry claims
and scaling studies differ by up to a factor of three, so fit where there are measurements.
"""

import equinox as eqx
from jax import Array
from jax.typing import ArrayLike

from dse.base.numerics import held
from dse.hardware.gpu import Gpu
from dse.hardware.process import memory_column, node_index, node_numbers, own_or_type, value_at

REFERENCE = "tsmc_n7"


class NodePower(eqx.Module):
    """Electrical factors of every technology node in row order, shape (nodes,), for ``Gpu.process`` to index.

    Switching energy is C V^2 of the same circuit at the same voltage; a model that knows the voltage multiplies by
    (V / V_ref)^2 itself. Leakage is power a mm2 of die at nominal voltage; all of it is a prior. NVIDIA's rails follow
    the clock (0.7 to 1.1 V on 12 and 8 nm boards), not the nominal voltage.
    """

    energy: Array
    leakage_per_mm2: Array

    @classmethod
    def from_table(cls, reference: str = REFERENCE) -> "NodePower":
        """Return the nodes of ``data/process/node_power.csv`` relative to a ``reference``; InputError for no node."""
        row = node_index(reference)
        columns = [node_numbers("process/node_power.csv", field) for field in cls.__dataclass_fields__]
        return cls(*(held(column / column[row]) for column in columns))

    def switching_energy(self, process: ArrayLike) -> Array:
        """Energy of the same switching event at the same voltage [relative to the reference]."""
        return value_at(self.energy, process)

    def leakage(self, process: ArrayLike) -> Array:
        """Leakage power a mm2 of die [relative to the reference]."""
        return value_at(self.leakage_per_mm2, process)


class MemoryPower(eqx.Module):
    """Energy of every memory type in row order, shape (types,), for ``Gpu.dram_type`` to index.

    What a GPU states of its own memory stands instead.

    Access energy is what the DRAM and its interface spend on a bit that streams; the GPU's memory controller and the
    way through the die are not in it. Idle power is standby with the clock on, refresh apart.
    """

    access_pj_per_bit: Array
    idle_w_per_gb: Array

    @classmethod
    def from_table(cls) -> "MemoryPower":
        """Return the memory types of ``data/process/memory_power.csv``."""
        return cls(*(memory_column("process/memory_power.csv", field) for field in cls.__dataclass_fields__))

    def access_energy(self, gpu: Gpu) -> Array:
        """Energy of a bit read or written [pJ/bit]."""
        return own_or_type(gpu.dram_pj_per_bit, self.access_pj_per_bit, gpu.dram_type)

    def idle(self, gpu: Gpu) -> Array:
        """Standby power a GB of capacity [W/GB]."""
        return own_or_type(gpu.dram_idle_w_per_gb, self.idle_w_per_gb, gpu.dram_type)

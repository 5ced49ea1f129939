"""What a technology node and a memory type cost in energy: the factors that power models scale with.

Switching energy and leakage are relative to a reference node. Every value has its source, its status and bounds in
``data/process/node_power.csv`` and ``data/process/memory_power.csv``: foundry claims and scaling studies differ by up
to a factor of three, so fit where there are measurements.
"""

import equinox as eqx
from jax import Array
from jax.typing import ArrayLike

from dse.hardware.process import memory_column, node_column, node_index, value_at

REFERENCE = "tsmc_n7"


class NodePower(eqx.Module):
    """Electrical factors of every technology node in row order, shape (nodes,), for ``Gpu.process`` to index.

    Switching energy is C V^2 of the same circuit at the same voltage; a model that knows the voltage multiplies by
    (V / V_ref)^2 itself. Leakage is power a mm2 of die at nominal voltage; all of it is a prior. NVIDIA's rails follow
    the clock (0.7 to 1.1 V on 12 and 8 nm boards), not the nominal voltage.
    """

    energy: Array
    energy_low: Array
    energy_high: Array
    leakage_per_mm2: Array
    leakage_per_mm2_low: Array
    leakage_per_mm2_high: Array
    voltage_v: Array

    @classmethod
    def from_table(cls, reference: str = REFERENCE) -> "NodePower":
        """Return the nodes of ``data/process/node_power.csv``, relative to a node [name].

        The bounds stay those against tsmc_n7, divided like the value: they do not know how errors of two nodes go
        together. Raises InputError for an unknown name.
        """
        row = node_index(reference)
        columns = {field: node_column("process/node_power.csv", field) for field in cls.__dataclass_fields__}
        scale = {"energy": columns["energy"][row], "leakage_per_mm2": columns["leakage_per_mm2"][row]}
        named = {field: field.removesuffix("_low").removesuffix("_high") for field in columns}
        return cls(**{f: column / scale[named[f]] if named[f] in scale else column for f, column in columns.items()})

    def switching_energy(self, process: ArrayLike) -> Array:
        """Energy of the same switching event at the same voltage [relative to the reference]."""
        return value_at(self.energy, process)

    def switching_energy_bounds(self, process: ArrayLike) -> tuple[Array, Array]:
        """Lower and upper bound of the sources for :meth:`switching_energy`."""
        return value_at(self.energy_low, process), value_at(self.energy_high, process)

    def leakage(self, process: ArrayLike) -> Array:
        """Leakage power a mm2 of die [relative to the reference]."""
        return value_at(self.leakage_per_mm2, process)

    def leakage_bounds(self, process: ArrayLike) -> tuple[Array, Array]:
        """Lower and upper bound of the prior of :meth:`leakage`."""
        return value_at(self.leakage_per_mm2_low, process), value_at(self.leakage_per_mm2_high, process)

    def nominal_voltage(self, process: ArrayLike) -> Array:
        """Nominal core voltage of the node [V]."""
        return value_at(self.voltage_v, process)


class MemoryPower(eqx.Module):
    """Energy of every memory type in row order, shape (types,), for ``Gpu.dram_type`` to index.

    Access energy is what the DRAM and its interface spend on a bit that streams; the GPU's memory controller and the
    way through the die are not in it. Idle power is standby with the clock on, refresh apart.
    """

    access_pj_per_bit: Array
    access_low: Array
    access_high: Array
    idle_w_per_gb: Array
    idle_low: Array
    idle_high: Array

    @classmethod
    def from_table(cls) -> "MemoryPower":
        """Return the memory types of ``data/process/memory_power.csv``."""
        return cls(*(memory_column("process/memory_power.csv", field) for field in cls.__dataclass_fields__))

    def access_energy(self, dram_type: ArrayLike) -> Array:
        """Energy of a bit read or written [pJ/bit]."""
        return value_at(self.access_pj_per_bit, dram_type)

    def access_energy_bounds(self, dram_type: ArrayLike) -> tuple[Array, Array]:
        """Lower and upper bound of the sources for :meth:`access_energy` [pJ/bit]."""
        return value_at(self.access_low, dram_type), value_at(self.access_high, dram_type)

    def idle(self, dram_type: ArrayLike) -> Array:
        """Standby power a GB of capacity [W/GB]."""
        return value_at(self.idle_w_per_gb, dram_type)

    def idle_bounds(self, dram_type: ArrayLike) -> tuple[Array, Array]:
        """Lower and upper bound for :meth:`idle` [W/GB]."""
        return value_at(self.idle_low, dram_type), value_at(self.idle_high, dram_type)

"""Die area of a GPU by component, from what its data sheet states.

Every component is a count of the record times an area at tsmc_n7, divided by the density of the node for its kind of
circuit: logic, SRAM or analog. Sources and the fit stand in each row of ``data/process/area.csv``.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.error_interval import SHARE, ErrorInterval
from dse.base.package_tables import read_table
from dse.hardware.data_types import TENSOR_DTYPES, data_types
from dse.hardware.gpu import Gpu
from dse.hardware.process import MemoryTypes, Nodes, value_at

COMPONENTS = (
    "sm_control",
    "register_file",
    "l1_shared",
    "fp32_int32",
    "fp64",
    "tensor_core",
    "l2",
    "noc",
    "memory_phy",
    "memory_controller",
    "nvlink",
    "other",
)

KIB_PER_REGISTER = constant("kib_per_register")  # a register of a thread holds 32 bits
HBM_CHANNEL_BITS = 128  # a type with narrower channels is GDDR: the mark of a graphics die


class DieArea(eqx.Module):
    """The area model: its coefficients at tsmc_n7, and one call for mm2 by component.

    Scalars in, scalars out; the units of the coefficients stand in ``data/process/area.csv``. Valid for NVIDIA dies
    from Pascal to Ada, on nine of which it was fitted (experiments/005_die_area leaves each of them out); the two dies
    of a Blackwell B200 come out too small. Not charged, because no die tells: resident threads and CTAs, MSHR and queue
    entries, latencies, clocks. Of what is switched off only SMs and L2 capacity count: the record does not hold
    switched-off memory channels, L2 slices or links (3 % of an A100) or lanes (the FP64 of an H800).
    """

    nodes: Nodes
    memory_types: MemoryTypes
    sm_control: Array
    second_issue: Array
    register_file: Array
    l1_shared: Array
    l1_port: Array
    fma: Array
    fp32_lane: Array
    int32_lane: Array
    sfu_lane: Array
    fp64_lane: Array
    tensor: dict[str, Array]
    l2: Array
    noc: Array
    memory_channel: Array
    nvlink: Array
    pcie: Array
    front_end: Array
    sm_cluster: Array
    graphics: Array

    @classmethod
    def from_table(cls) -> "DieArea":
        """The fitted model, from ``data/process/area.csv`` and the areas of ``data/schema/data_types.csv``."""
        rows = read_table("process/area.csv")
        values = {row["coefficient"]: jnp.asarray(float(row["value"])) for row in rows}
        tensor = {dtype: jnp.asarray(data_types()[dtype].tensor_area) for dtype in TENSOR_DTYPES}
        return cls(nodes=Nodes.from_table(), memory_types=MemoryTypes.from_table(), tensor=tensor, **values)

    @property
    def error_interval(self) -> ErrorInterval:
        """Nine dies, each left out of the fit in turn, their nodes known; a node without a die may be a quarter off."""
        ratios = sorted(1 / (1 + float(row["error"])) for row in read_table("process/area_error.csv"))
        low, high = np.quantile(ratios, [(1 - SHARE) / 2, (1 + SHARE) / 2])
        return ErrorInterval(float(low), float(high), f"areas of {len(ratios)} dies, each left out of the fit")

    def __call__(self, gpu: Gpu) -> dict[str, Array]:
        """Area of each of COMPONENTS [mm2]."""
        sms = gpu.sm_count / gpu.sm_enabled_fraction
        l2_mib = gpu.l2_mib / gpu.l2_enabled_fraction
        logic, sram, analog = self._densities(gpu)
        per_sm = {
            "sm_control": self._sm_control(gpu) / logic,  # fitted
            "register_file": self.register_file * gpu.registers_per_sm * KIB_PER_REGISTER / sram,  # LLMCompass SRAM bit
            # LLMCompass; the port is assumed
            "l1_shared": self.l1_shared * gpu.l1_kib / sram + self.l1_port * gpu.l1_bytes_per_cycle / logic,
            "fp32_int32": self.fma * self._lanes(gpu) / logic,  # fitted area, Horowitz ratios
            "fp64": self.fma * self.fp64_lane * gpu.fp64_lanes / logic,  # fitted area, Horowitz ratio
            "tensor_core": self.fma * gpu.tensor_cores_per_sm * self._tensor_rate(gpu) / logic,  # the same
        }
        return {name: sms * area for name, area in per_sm.items()} | {
            "l2": self.l2 * l2_mib / sram,  # GA100 die shot
            "noc": self.noc * self._noc_ports(gpu, sms) / logic,  # GA100 die shot
            "memory_phy": self._phy_per_bit(gpu) * gpu.dram_bus_bits / analog,  # GA100 die shot (HBM), assumed (GDDR)
            "memory_controller": self.memory_channel * self._channels(gpu) / logic,  # GA100 die shot
            "nvlink": self.nvlink * gpu.nvlink_gbs / analog,  # GA100 die shot
            # front end: GA100 die shot; graphics: fitted; PCIe: LLMCompass
            "other": (self.front_end + sms * self._share_of_sm(gpu)) / logic + self.pcie * gpu.pcie_gbs / analog,
        }

    def total(self, gpu: Gpu) -> Array:
        """Area of the die [mm2]; of all dies together where a package holds several."""
        return jnp.sum(jnp.stack(list(self(gpu).values())), axis=0)

    def _densities(self, gpu: Gpu) -> tuple[Array, Array, Array]:
        """Logic, SRAM and analog density of the node [relative to tsmc_n7]."""
        index, table = gpu.process, self.nodes
        return (
            value_at(table.logic_density, index),
            value_at(table.sram_density, index),
            value_at(table.analog_density, index),
        )

    def _sm_control(self, gpu: Gpu) -> Array:
        """Fetch, decode, schedulers, load-store and texture units of an SM [mm2]: one share a sub-core."""
        return self.sm_control * gpu.subcores_per_sm * (1 + self.second_issue * (gpu.issue_rate - 1))

    def _lanes(self, gpu: Gpu) -> Array:
        """FP32, INT32 and special-function lanes of an SM [FP16 FMA lanes of the same area]."""
        return self.fp32_lane * gpu.fp32_lanes + self.int32_lane * gpu.int32_lanes + self.sfu_lane * gpu.sfu_lanes

    def _tensor_rate(self, gpu: Gpu) -> Array:
        """Rate of a tensor core, summed over data types by the area of their FMAs [FP16 FMA/cycle of the same area].

        A sum grows with every type. What types share of a multiplier array the fitted ``fma`` absorbs, so a sweep of
        one type alone sees only that type's share of the tensor core: link the types.
        """
        first, *rest = (self.tensor[dtype] * gpu.tensor_fma[dtype] for dtype in TENSOR_DTYPES)
        return sum(rest, first)

    def _noc_ports(self, gpu: Gpu, sms: Array) -> Array:
        """Ports of the network on chip, of the SMs and of the L2 slices [B/cycle]."""
        return sms * gpu.l2_port_bytes_per_cycle + gpu.l2_slices * gpu.l2_slice_bytes_per_cycle

    def _phy_per_bit(self, gpu: Gpu) -> Array:
        return value_at(self.memory_types.phy_mm2_per_bit, gpu.dram_type)

    def _channel_bits(self, gpu: Gpu) -> Array:
        return value_at(self.memory_types.channel_bits, gpu.dram_type)

    def _channels(self, gpu: Gpu) -> Array:
        """Memory channels in use: controllers are built one a channel."""
        return gpu.dram_bus_bits / self._channel_bits(gpu)

    def _share_of_sm(self, gpu: Gpu) -> Array:
        """What an SM needs outside itself: its share of a cluster's front end and of the graphics units [mm2].

        The record has no attribute for raster, ray-tracing, video and display units. Every die with GDDR has them and
        none with HBM has more than a remainder, so the memory type stands in for the purpose of the die.
        """
        return self.sm_cluster + jnp.where(self._channel_bits(gpu) < HBM_CHANNEL_BITS, self.graphics, 0.0)

"""Die area of a GPU by component, from what its data sheet states.

Every component is a count of the record times an area at tsmc_n7, divided by the density of the node for its kind of
circuit: logic, SRAM or analog. Sources and the fit stand in each row of ``data/process/area.csv``.

Data types share the multipliers of a tensor core. The type that needs most of them sets their number; every further
type adds a share of what it would take alone, for its alignment, rounding and operand paths. What is known of that
area differs by a factor of three: :meth:`DieArea.tensor_range` holds all evidence.
"""

from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.error_interval import SHARE, ErrorInterval
from dse.base.numerics import held
from dse.base.package_tables import read_table
from dse.hardware.data_types import FP64_ARRAY, SHARED_ARRAY, TENSOR_DTYPES, data_types
from dse.hardware.gpu import Gpu
from dse.hardware.process import MemoryTypes, Nodes, own_or_type, value_at

COMPONENTS = (
    "sm_control",
    "register_file",
    "l1_shared",
    "tensor_memory",
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


SM_PARTS = ("sm_control", "register_file", "l1_shared", "tensor_memory", "fp32_int32", "fp64", "tensor_core")
"""Components that a streaming multiprocessor holds."""


class Range(NamedTuple):
    """A value [mm2] and the ends of what the evidence allows."""

    value: Array
    low: Array
    high: Array


class DieArea(eqx.Module):
    """The area model: its coefficients at tsmc_n7, and one call for mm2 by component.

    Scalars in, scalars out; the units of the coefficients stand in ``data/process/area.csv``. Valid for NVIDIA dies
    from Pascal to Blackwell: fitted to 22 of them and to blocks of five (experiments/005_die_area leaves each die out).
    The two dies of a Blackwell B200 come out too small. Not charged, because no die tells: resident threads and CTAs,
    MSHR and queue entries, latencies, clocks. Of what is switched off only SMs and L2 capacity count: the record does
    not hold switched-off memory channels, L2 slices or links (3 % of an A100) or lanes (the FP64 of an H800).
    """

    nodes: Nodes
    memory_types: MemoryTypes
    sm_control: Array
    second_issue: Array
    sm_sram: Array
    l1_port: Array
    fma: Array
    fp32_lane: Array
    int32_lane: Array
    sfu_lane: Array
    fp64_lane: Array
    fp64_support: Array
    tensor_fma: Array
    type_support: Array
    tensor: dict[str, Array]
    l2: Array
    noc: Array
    die_link: Array
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
        values = {row["coefficient"]: held(float(row["value"])) for row in rows}
        tensor = {dtype: held(data_types()[dtype].tensor_area) for dtype in TENSOR_DTYPES}
        return cls(nodes=Nodes.from_table(), memory_types=MemoryTypes.from_table(), tensor=tensor, **values)

    @property
    def error_interval(self) -> ErrorInterval:
        """Dies, each under a fit without its family: a design that nobody built has none either.

        A node without a die may be a fifth off.
        """
        ratios = sorted(1 / (1 + float(row["family_error"])) for row in read_table("process/area_error.csv"))
        low, high = np.quantile(ratios, [(1 - SHARE) / 2, (1 + SHARE) / 2])
        return ErrorInterval(float(low), float(high), f"areas of {len(ratios)} dies, each family left out of the fit")

    def __call__(self, gpu: Gpu) -> dict[str, Array]:
        """Area of each of COMPONENTS [mm2]."""
        sms = gpu.sm_count / gpu.sm_enabled_fraction
        l2_mib = gpu.l2_mib / gpu.l2_enabled_fraction
        logic, sram, analog = self._densities(gpu)
        per_sm = {
            "sm_control": self._sm_control(gpu) / logic,  # fitted
            "register_file": self.sm_sram * gpu.registers_per_sm * KIB_PER_REGISTER / sram,  # blocks of GA10B and Thor
            # the same; the port is assumed
            "l1_shared": self.sm_sram * gpu.l1_kib / sram + self.l1_port * gpu.l1_bytes_per_cycle / logic,
            "tensor_memory": self.sm_sram * gpu.tensor_memory_kib / sram,  # block of Thor
            "fp32_int32": self.fma * self._lanes(gpu) / logic,  # fitted area, Horowitz ratios
            "fp64": self.fma * self.fp64_lane * self._fp64_rate(gpu) / logic,  # fitted area, Horowitz ratio
            "tensor_core": self.tensor_fma * gpu.tensor_cores_per_sm * self._tensor_rate(gpu) / logic,  # fitted
        }
        return {name: sms * area for name, area in per_sm.items()} | {
            "l2": self.l2 * l2_mib / sram,  # GA100 die shot
            # GA100 die shot; between dies assumed
            "noc": self.noc * self._noc_ports(gpu, sms) / logic + self.die_link * self._links(gpu) / analog,
            "memory_phy": self._phy_per_bit(gpu) * gpu.dram_bus_bits / analog,  # GA100 die shot (HBM), fitted (GDDR)
            "memory_controller": self.memory_channel * self._channels(gpu) / logic,  # GA100 die shot
            "nvlink": self.nvlink * gpu.nvlink_gbs / analog,  # GA100 die shot
            # front end: GA100 die shot; graphics: fitted; PCIe: LLMCompass
            "other": (self.front_end + sms * self._share_of_sm(gpu)) / logic + self.pcie * gpu.pcie_gbs / analog,
        }

    def total(self, gpu: Gpu) -> Array:
        """Area of the die [mm2]; of all dies together where a package holds several."""
        return jnp.sum(jnp.stack(list(self(gpu).values())), axis=0)

    def tensor_range(self, gpu: Gpu) -> Range:
        """Area of the tensor cores [mm2] and its ends under every set of evidence of ``process/tensor_evidence.csv``.

        The area is proportional to the rates, so that this is also what doubling the rates of all types but FP64 adds.
        """
        areas = [
            self(gpu)["tensor_core"],
            *(model(gpu)["tensor_core"] for model in self.tensor_alternatives().values()),
        ]
        return Range(areas[0], jnp.min(jnp.stack(areas), axis=0), jnp.max(jnp.stack(areas), axis=0))

    def tensor_alternatives(self) -> dict[str, "DieArea"]:
        """The model by evidence, with the coefficients of tensor cores that this evidence gives alone."""
        return {
            row["evidence"]: replace(
                self,
                tensor_fma=jnp.asarray(float(row["tensor_fma"])),
                type_support=jnp.asarray(float(row["type_support"])),
            )
            for row in read_table("process/tensor_evidence.csv")
        }

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
        """Rate of a tensor core's shared multipliers [FP16 FMA/cycle of the same area]."""
        rates = [self.tensor[dtype] * gpu.tensor_fma[dtype] for dtype in _multiplied_in(SHARED_ARRAY)]
        return _shared(rates, self.type_support)

    def _fp64_rate(self, gpu: Gpu) -> Array:
        """Rate of the FP64 multipliers of an SM [FMA/cycle], which lanes and tensor instructions share."""
        tensor = [gpu.tensor_cores_per_sm * gpu.tensor_fma[dtype] for dtype in _multiplied_in(FP64_ARRAY)]
        return _shared([gpu.fp64_lanes, *tensor], self.fp64_support)

    def _noc_ports(self, gpu: Gpu, sms: Array) -> Array:
        """Ports of the network on chip, of the SMs and of the L2 slices [B/cycle]."""
        return sms * gpu.l2_port_bytes_per_cycle + gpu.l2_slices * gpu.l2_slice_bytes_per_cycle

    def _links(self, gpu: Gpu) -> Array:
        """Bandwidth of the links of all dies to the others, in one direction [GB/s]; 0 on one die."""
        return jnp.where(gpu.dies > 1, gpu.dies * gpu.die_link_gbs, 0.0)

    def _phy_per_bit(self, gpu: Gpu) -> Array:
        return own_or_type(gpu.dram_phy_mm2_per_bit, self.memory_types.phy_mm2_per_bit, gpu.dram_type)

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


def _multiplied_in(array: str) -> list[str]:
    """Data types of tensor cores that are multiplied in an array."""
    return [dtype for dtype in TENSOR_DTYPES if data_types()[dtype].tensor_array == array]


def _shared(rates: list[Array], support: Array) -> Array:
    """Rate that an array of multipliers is built for, of those it serves in units of the same area.

    The largest sets its multipliers; each other adds the share ``support`` [1] of its own. More of any rate takes more
    area, and rates that are raised together cost in proportion.
    """
    largest = reduce(jnp.maximum, rates)
    return largest + support * (sum(rates[1:], rates[0]) - largest)

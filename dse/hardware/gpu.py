"""The record of what a GPU is: every attribute an array, so that one GPU and a million GPUs are the same class."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from dse.base.brief import brief
from dse.base.errors import InputError, accepted, expect
from dse.base.numerics import held
from dse.base.shapes import OnBatch
from dse.base.units import GIGA, KILO, MEGA, MIB, NANO, WARP_SIZE
from dse.hardware.data_types import TENSOR_RATE, tensor_rates
from dse.hardware.schema import gpu_schema

ATTRIBUTES = tuple(gpu_schema())
"""Every attribute of a GPU by its public name: the rows of ``data/schema/gpu.csv``."""

SHOWN = ("sm_count", "boost_clock_mhz", "tensor_fma_bf16", "l2_mib", "dram_gb", "dram_bandwidth_gbs", "tdp_w")
"""Attributes by which a GPU is shown at a glance, the units in their names."""


class Gpu(eqx.Module):
    """What a data sheet or a microbenchmark states of a GPU; the attributes are the rows of ``data/schema/gpu.csv``.

    Every field is a scalar array, or one of shape (designs,) in a batch; unit and meaning stand in the schema table
    (``dse show schema``). What must be fitted is no attribute: it lives in the models.
    """

    compute_capability: OnBatch
    warpgroup_mma: OnBatch
    async_copy: OnBatch
    cluster_size: OnBatch
    process: OnBatch
    sm_count: OnBatch
    sm_enabled_fraction: OnBatch
    subcores_per_sm: OnBatch
    issue_rate: OnBatch
    boost_clock_mhz: OnBatch
    tensor_clock_mhz: OnBatch
    threads_per_sm: OnBatch
    ctas_per_sm: OnBatch
    registers_per_sm: OnBatch
    l1_kib: OnBatch
    shared_memory_kib: OnBatch
    shared_reserved_kib: OnBatch
    tensor_memory_kib: OnBatch
    fp32_lanes: OnBatch
    int32_lanes: OnBatch
    fp64_lanes: OnBatch
    sfu_lanes: OnBatch
    tensor_cores_per_sm: OnBatch
    tensor_fma: dict[str, OnBatch]  # dense rate by data type [FMA/cycle/tensor core]: attributes tensor_fma_bf16 ...
    warp_mma_fraction: OnBatch
    alu_latency_cycles: OnBatch
    fp64_latency_cycles: OnBatch
    sfu_latency_cycles: OnBatch
    mma_latency_cycles: OnBatch
    shared_load_latency_cycles: OnBatch
    shared_store_latency_cycles: OnBatch
    l1_latency_cycles: OnBatch
    l2_latency_ns: OnBatch
    l2_far_latency_ns: OnBatch
    dram_latency_ns: OnBatch
    l1_bytes_per_cycle: OnBatch
    l1_banks: OnBatch
    l1_bank_bytes: OnBatch
    l1_line_bytes: OnBatch
    sector_bytes: OnBatch
    l1_mshr_entries: OnBatch
    operand_queue_entries: OnBatch
    fu_queue_entries: OnBatch
    l2_mib: OnBatch
    l2_enabled_fraction: OnBatch
    l2_slices: OnBatch
    l2_slice_bytes_per_cycle: OnBatch
    l2_port_bytes_per_cycle: OnBatch
    l2_crossbar_bytes_per_cycle: OnBatch
    l2_clock_mhz: OnBatch
    l2_partitions: OnBatch
    dies: OnBatch
    die_link_gbs: OnBatch
    die_link_latency_ns: OnBatch
    dram_type: OnBatch
    dram_gb: OnBatch
    dram_bandwidth_gbs: OnBatch
    dram_sustained_fraction: OnBatch
    dram_bus_bits: OnBatch
    dram_pin_gbps: OnBatch
    dram_pj_per_bit: OnBatch
    dram_idle_w_per_gb: OnBatch
    dram_phy_mm2_per_bit: OnBatch
    dram_usd_per_gb: OnBatch
    nvlink_gbs: OnBatch
    nvlink_gpus: OnBatch
    nvlink_latency_us: OnBatch
    pcie_gbs: OnBatch
    pcie_latency_us: OnBatch
    tdp_w: OnBatch

    def __repr__(self) -> str:
        return brief(self, {name: self.attribute(name) for name in SHOWN})

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any] | Any) -> "Gpu":
        """Return the record of plain numbers (choices already encoded), in JAX's default float type.

        Raises InputError where an attribute is missing or there is none of a name.
        """
        expect("numbers", numbers, Mapping, "give the number of every attribute by its name")
        for name in numbers:
            if name not in ATTRIBUTES:
                raise InputError(f"numbers: {name!r} is not an attribute of a GPU; {accepted(str(name), ATTRIBUTES)}")
        if missing := [name for name in ATTRIBUTES if name not in numbers]:
            raise InputError(f"numbers: {', '.join(missing[:3])} missing ({len(missing)} in all); give every attribute")
        plain = (int, float)  # arrays may be traced
        return cls.from_attributes(
            {name: held(x) if isinstance(x, plain) else jnp.asarray(x, dtype=float) for name, x in numbers.items()}
        )

    @classmethod
    def from_attributes(cls, values: Mapping[str, Any]) -> "Gpu":
        """Return the record of every attribute of the schema, its values as they are: arrays, axes, None."""
        plain = {name: value for name, value in values.items() if not name.startswith(TENSOR_RATE)}
        return cls(tensor_fma=tensor_rates(values), **plain)

    def attributes(self) -> dict[str, Any]:
        """Return the values by attribute, in the schema's order."""
        return {name: self.attribute(name) for name in ATTRIBUTES}

    def attribute(self, name: str) -> Any:
        """Return the value of one attribute."""
        dtype = name.removeprefix(TENSOR_RATE)
        return getattr(self, name) if dtype == name else self.tensor_fma[dtype]

    def with_attributes(self, changes: Mapping[str, Any]) -> "Gpu":
        """Return the record with some attributes changed."""
        return self.from_attributes(self.attributes() | dict(changes))

    @property
    def l2_bytes(self) -> OnBatch:
        """Last-level cache in use [B]."""
        return self.l2_mib * MIB

    @property
    def l2_parts(self) -> OnBatch:
        """L2 partitions that keep copies of their own: a die holds at least one [partition]."""
        return jnp.maximum(self.l2_partitions, self.dies)

    @property
    def dram_bytes_per_ns(self) -> OnBatch:
        """DRAM bandwidth that a streaming read sustains [B/ns]."""
        return self.dram_bandwidth_gbs * self.dram_sustained_fraction * (GIGA * NANO)

    @property
    def l2_bytes_per_ns(self) -> OnBatch:
        """Bandwidth of the L2 [B/ns]: of all slices, or of the network to all SMs where that passes less."""
        slices = self.l2_slices * self.l2_slice_bytes_per_cycle
        passed = self.sm_count * self.l2_crossbar_bytes_per_cycle
        return jnp.minimum(slices, passed) * self.l2_clock_mhz * (MEGA * NANO)

    @property
    def tensor_clock_ghz(self) -> OnBatch:
        """Clock of kernels that use tensor cores [GHz]: never above the boost clock."""
        return jnp.minimum(self.tensor_clock_mhz, self.boost_clock_mhz) / KILO

    @property
    def boost_clock_ghz(self) -> OnBatch:
        """Clock of kernels that use no tensor core [GHz]."""
        return self.boost_clock_mhz / KILO

    @property
    def warp_passes(self) -> dict[str, OnBatch]:
        """Initiation interval of a warp instruction on each CUDA-core unit of a sub-core [cycle], AMALI Eq. (14)."""
        per_subcore = WARP_SIZE * self.subcores_per_sm
        return {
            "fp32": per_subcore / self.fp32_lanes,
            "int32": per_subcore / self.int32_lanes,
            "sfu": per_subcore / self.sfu_lanes,
            "fp64": per_subcore / jnp.maximum(self.fp64_lanes, 1.0),  # a GPU without FP64 lanes: one, as if emulated
        }

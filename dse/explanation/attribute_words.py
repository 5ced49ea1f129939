"""Attributes and metrics as words of a sentence."""

from dse.base.units import signed
from dse.explanation.sensitivity_steps import Step
from dse.hardware.data_types import data_types
from dse.hardware.schema import Attribute
from dse.space.metrics import PHASE_OF
from dse.workload.workload import Workload

METRIC_WORDS = {"ttft_ms": "TTFT", "tbt_ms": "TBT", "time_ms": "time", "energy_j": "energy"}
"""Metric -> its word in a sentence."""

ATTRIBUTE_WORDS = {
    "cluster_size": "CTAs in a cluster",
    "sm_count": "SMs",
    "sm_enabled_fraction": "of the die's SMs in use",
    "subcores_per_sm": "sub-cores an SM",
    "issue_rate": "issue rate",
    "boost_clock_mhz": "boost clock",
    "tensor_clock_mhz": "tensor clock",
    "threads_per_sm": "threads an SM",
    "ctas_per_sm": "CTA slots an SM",
    "registers_per_sm": "registers an SM",
    "l1_kib": "L1 capacity",
    "shared_memory_kib": "shared memory an SM",
    "shared_reserved_kib": "reserved shared memory",
    "tensor_memory_kib": "tensor memory an SM",
    "fp32_lanes": "FP32 lanes",
    "int32_lanes": "INT32 lanes",
    "fp64_lanes": "FP64 lanes",
    "sfu_lanes": "special-function lanes",
    "tensor_cores_per_sm": "tensor cores an SM",
    **{kind.tensor_rate: f"{kind.title} tensor rate" for kind in data_types().values() if kind.operands},
    "warp_mma_fraction": "warp-level share of the tensor rate",
    "alu_latency_cycles": "ALU latency",
    "fp64_latency_cycles": "FP64 latency",
    "sfu_latency_cycles": "special-function latency",
    "mma_latency_cycles": "tensor-instruction latency",
    "shared_load_latency_cycles": "shared-memory load latency",
    "shared_store_latency_cycles": "shared-memory store latency",
    "l1_latency_cycles": "L1 latency",
    "l2_latency_ns": "L2 latency",
    "l2_far_latency_ns": "far-L2 latency",
    "dram_latency_ns": "DRAM latency",
    "l1_bytes_per_cycle": "L1 and shared-memory bandwidth",
    "l1_banks": "L1 banks",
    "l1_bank_bytes": "L1 bank width",
    "l1_line_bytes": "L1 line size",
    "sector_bytes": "sector size",
    "l1_mshr_entries": "L1 MSHRs",
    "operand_queue_entries": "operand-queue entries",
    "fu_queue_entries": "unit-queue entries",
    "l2_mib": "L2 capacity",
    "l2_enabled_fraction": "of the die's L2 in use",
    "l2_slices": "L2 slices",
    "l2_slice_bytes_per_cycle": "L2 bandwidth a slice",
    "l2_port_bytes_per_cycle": "L2-port bandwidth of an SM",
    "l2_crossbar_bytes_per_cycle": "crossbar bandwidth to an SM",
    "l2_clock_mhz": "L2 clock",
    "l2_partitions": "L2 partitions",
    "dies": "dies",
    "die_link_gbs": "bandwidth between dies",
    "die_link_latency_ns": "latency between dies",
    "dram_gb": "DRAM capacity",
    "dram_bandwidth_gbs": "DRAM bandwidth",
    "dram_sustained_fraction": "of the DRAM bandwidth sustained",
    "dram_bus_bits": "DRAM bus width",
    "dram_pin_gbps": "fastest DRAM pin",
    "dram_pj_per_bit": "DRAM energy a bit",
    "dram_idle_w_per_gb": "DRAM standby power",
    "dram_phy_mm2_per_bit": "DRAM interface area a bit",
    "dram_usd_per_gb": "DRAM price",
    "nvlink_gbs": "NVLink bandwidth",
    "nvlink_gpus": "GPUs joined by NVLink",
    "nvlink_latency_us": "NVLink latency",
    "pcie_gbs": "PCIe bandwidth",
    "pcie_latency_us": "PCIe latency",
    "tdp_w": "power limit",
}
"""Attribute -> what there is more or less of."""

_COMPARED = {"latency": ("longer", "shorter"), "clock": ("higher", "lower"), "limit": ("higher", "lower")}


def words(attr: Attribute) -> str:
    """Return an attribute's words in a sentence."""
    return ATTRIBUTE_WORDS.get(attr.name, attr.name)


def step_words(step: Step) -> str:
    """Return a step as "10 % more DRAM bandwidth", with both values where they are whole numbers."""
    name = words(step.attribute)
    more, less = _COMPARED.get(name.split()[-1], ("more", "less"))
    percent = 100 * (step.factor - 1)
    text = f"{abs(percent):.3g} % {more if percent > 0 else less} {name}"
    if step.attribute.type != "int":
        return text
    unit = "" if step.attribute.unit in name else after_number(step.attribute.unit)  # "SMs" say their unit
    return f"{text} ({step.before:g} to {step.after:g}{unit})"


def after_number(unit: str) -> str:
    """Return a unit as it follows a number; nothing for a pure number."""
    return "" if unit in ("1", "") else f" {unit}"


def percent(change: float) -> str:
    """Return a relative change as "−6.1 %"."""
    return f"{signed(100 * change, 1)} %"


def explained_metrics(workload: Workload) -> list[str]:
    """Return the metrics that an explanation is about: times of phases, of all where that is another one, and
    energy."""
    phases = {phase.name for phase in workload.phases}
    metrics = [metric for metric, phase in PHASE_OF.items() if phase in phases]
    return [*metrics, *([] if metrics and len(phases) == 1 else ["time_ms"]), "energy_j"]

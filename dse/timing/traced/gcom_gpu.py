"""GPU records as GCoM configurations, and back: so that any model can be put beside any other on one trace."""

from math import floor

from dse.base.errors import InputError
from dse.base.units import GIGA, KIB, KILO, MEGA, MIB, WARP_SIZE
from dse.hardware.presets import GpuSheet, changed, preset_sheet
from dse.timing.traced.gcom_config import GcomConfig, default_values
from dse.timing.traced.trace_profile import carveouts
from dse.traces.warp_profile import RESIDUE

STAND_IN = "rtx_2060"
"""GPU that fills in what a GCoM configuration does not state (tensor rates, area, power ...)."""

_HASHED_SETS = (16, 32, 64)
_MOST = 2**31 - 1


def sheet_of_config(config: GcomConfig) -> GpuSheet:
    """Return the GPU that a GCoM configuration describes; raises InputError where a value is outside the record.

    Latencies of the record are end to end, so pipeline stages and register reads are added. What a configuration does
    not state is the RTX 2060's.
    """
    c, f = config.values, config["coreFreq"]
    lanes = WARP_SIZE * c["numSubcorePerSM"]
    operands = c["computePipeline"] + -(-3 // c["regFileReadThroughput"])
    slices = c["numMems"] * c["l2DnPerMem"]
    numbers = {
        "sm_count": c["numSMs"],
        "subcores_per_sm": c["numSubcorePerSM"],
        "issue_rate": c["subcoreIssueRate"],
        "threads_per_sm": c["maxThreadsPerSM"],
        "ctas_per_sm": c["maxCTAPerSM"],
        "registers_per_sm": c["registerPerSM"],
        "boost_clock_mhz": f * KILO,
        "tensor_clock_mhz": f * KILO,
        "fp32_lanes": round(lanes / max(c["fpInitIntv"], 1)),
        "int32_lanes": round(lanes / max(c["intInitIntv"], 1)),
        "fp64_lanes": round(lanes / max(c["dpInitIntv"], 1)),
        "sfu_lanes": round(lanes / max(c["sfuInitIntv"], 1)),
        "alu_latency_cycles": c["fpLatency"] + operands,
        "fp64_latency_cycles": c["dpLatency"] + operands,
        "sfu_latency_cycles": c["sfuLatency"] + operands,
        "shared_load_latency_cycles": c["sharedMemLatency"],
        "shared_store_latency_cycles": c["sharedMemLatency"],
        "l1_latency_cycles": c["l1DLatency"] + c["loadPipeline"] + operands - c["computePipeline"],
        "l2_latency_ns": c["L2Latency"] / f,
        "dram_latency_ns": c["dramLatency"] / f,
        "l1_kib": c["l1DnSet"] * c["l1DAssoc"] * c["l1DLineSize"] / KIB,
        "shared_memory_kib": c["sharedMemSizeOption"][-1] / KIB,
        "l1_banks": c["l1DnBank"],
        "l1_bank_bytes": c["l1DBankInterleaveByte"],
        "l1_bytes_per_cycle": c["l1DnBank"] * c["l1DBankInterleaveByte"],
        "l1_mshr_entries": c["nMSHR"],
        "operand_queue_entries": c["operandCollectorQue"],
        "fu_queue_entries": c["fuQue"],
        "l2_mib": slices * c["L2nSet"] * c["L2Assoc"] * c["L2LineSize"] / MIB,
        "l2_slices": slices,
        "l2_clock_mhz": f * KILO,
        "l2_slice_bytes_per_cycle": c["maxNoCBW"] / (slices * f),
        "dram_bandwidth_gbs": c["maxDRAMBW"],
        "dram_sustained_fraction": 1.0,
    }
    sheet = changed(preset_sheet(STAND_IN), numbers, config.path)
    return GpuSheet(
        config.path, f"{config.path} ({preset_sheet(STAND_IN).title} for what it does not state)", sheet.entries
    )


def config_of_sheet(sheet: GpuSheet) -> GcomConfig:
    """Return the GCoM configuration of a GPU record; raises InputError where GCoM's L2 hash does not cover its sets.

    Whole cycles, as the program reads them. Latencies of the record are end to end: no pipeline stages, and a register
    read of one cycle is taken off. DRAM has the data sheet's bandwidth, as in GCoM's own configurations, not the share
    that is sustained. Tensor cores, branch, texture and uniform units keep the RTX 2060's fixed numbers.
    """
    n = sheet.numbers()
    f, slices = n["boost_clock_mhz"] / KILO, round(n["l2_slices"])
    sets = n["l2_mib"] * MIB / (slices * 16 * 128)
    if sets not in _HASHED_SETS:
        raise InputError(
            f"{sheet.name}: gcom's L2 has 16, 32 or 64 sets a slice, this GPU {sets:g} in {slices} slices of 16 ways; "
            "use --timing amali, or give a GCoM .config file"
        )
    per_channel = 2 if slices % 2 == 0 else 1
    unified = int(n["l1_kib"] * KIB)
    values = default_values() | {
        "numSMs": round(n["sm_count"]),
        "numSubcorePerSM": round(n["subcores_per_sm"]),
        "subcoreIssueRate": max(round(n["issue_rate"]), 1),
        "maxThreadsPerSM": round(n["threads_per_sm"]),
        "maxCTAPerSM": round(n["ctas_per_sm"]),
        "registerPerSM": round(n["registers_per_sm"]),
        "coreFreq": f,
        "computePipeline": 0,
        "loadPipeline": 0,
        "storePipeline": 0,
        "regFileReadThroughput": 3,
        **{f"{name}Latency": max(round(n[attribute]) - 1, 1) for name, attribute in _LATENCIES.items()},
        **{f"{name}InitIntv": _interval(n, lanes) for name, lanes in _LANES.items()},
        "operandCollectorQue": round(n["operand_queue_entries"]),
        "fuQue": round(n["fu_queue_entries"]),
        "sharedMemLatency": round(n["shared_load_latency_cycles"]),
        "sharedMemSizeOption": _options(n),
        "l1DLatency": max(round(n["l1_latency_cycles"]) - 1, 0),
        "l1DnSet": 4,
        "l1DAssoc": floor(unified / (4 * 128)),
        "l1DnBank": round(n["l1_banks"]),
        "l1DBankInterleaveByte": round(n["l1_bank_bytes"]),
        "nMSHR": min(round(n["l1_mshr_entries"]), _MOST),
        "L2Latency": round(n["l2_latency_ns"] * f),
        "L2nSet": int(sets),
        "L2Assoc": 16,
        "L2SetHashFunction": RESIDUE,
        "l2DnPerMem": per_channel,
        "numMems": slices // per_channel,
        "maxNoCBW": slices * n["l2_slice_bytes_per_cycle"] * n["l2_clock_mhz"] * MEGA / GIGA,
        "dramLatency": round(n["dram_latency_ns"] * f),
        "maxDRAMBW": n["dram_bandwidth_gbs"],
    }
    return GcomConfig(sheet.name, values)


_LATENCIES = {
    "int": "alu_latency_cycles",
    "fp": "alu_latency_cycles",
    "dp": "fp64_latency_cycles",
    "sfu": "sfu_latency_cycles",
}
_LANES = {"int": "int32_lanes", "fp": "fp32_lanes", "dp": "fp64_lanes", "sfu": "sfu_lanes"}


def _interval(n: dict[str, float], lanes: str) -> int:
    """Initiation interval, AMALI Eq. (14), in whole cycles."""
    return max(round(WARP_SIZE * n["subcores_per_sm"] / max(n[lanes], 1.0)), 1)


def _options(n: dict[str, float]) -> tuple[int, ...]:
    """Carve-outs of the GPU's generation up to its shared memory [B]."""
    sizes = [size for size in carveouts(n["compute_capability"]) if size <= n["shared_memory_kib"]]
    return tuple(int(size * KIB) for size in sizes)

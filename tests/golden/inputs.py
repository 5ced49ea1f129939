"""What the golden cases read: shipped files, variants of the shipped spaces, and a small trace."""

import shutil
import tomllib
from pathlib import Path

from tests.conftest import toml_text
from tests.traces.traces import kernel_text, write_directory

SHIPPED = Path(__file__).parent / "tables"
SPACES = Path(__file__).parents[2] / "spaces"

Axes = dict[str, list[float]]

FEW: dict[str, Axes] = {
    "h100_tensor_core": {
        "tensor_fma_bf16": [256, 512, 1024],
        "sm_count": [96, 132],
        "l2_mib": [20, 50],
        "dram_bandwidth_gbs": [3350, 4800],
        "tensor_clock_mhz": [1430, 1830],
        "l2_slice_bytes_per_cycle": [64, 96],
    },
    "h100_successor": {
        "tensor_fma_bf16": [512, 768],
        "sm_count": [108, 132, 150],
        "l2_mib": [20, 60],
        "dram_bus_bits": [5120, 8192],
        "boost_clock_mhz": [1580, 1980],
    },
    "long_context_cache": {
        "l2_mib": [12, 50, 200],
        "dram_bus_bits": [4096, 6144, 8192],
        "sm_count": [48, 132],
        "l2_slice_bytes_per_cycle": [64, 96],
        "l2_port_bytes_per_cycle": [64],
    },
    "perf_per_watt": {
        "tensor_fma_bf16": [512, 768],
        "sm_count": [84, 132],
        "l2_mib": [30, 60],
        "dram_bandwidth_gbs": [4800, 8000],
        "boost_clock_mhz": [1380, 1980],
        "tdp_w": [400, 700],
    },
    "prefill_chip": {
        "tensor_fma_fp8": [1024, 2048],
        "sm_count": [48, 84, 144],
        "l2_mib": [8, 48],
        "dram_bus_bits": [256, 512],
        "boost_clock_mhz": [1500, 2000],
    },
    "decode_chip": {
        "tensor_fma_fp8": [512, 1024],
        "sm_count": [48, 72, 132],
        "l2_mib": [8, 48],
        "dram_bus_bits": [4096, 8192],
        "boost_clock_mhz": [1980],
        "tdp_w": [400, 700],
    },
    "edge_75w": {
        "sm_count": [16, 24, 58],
        "tensor_fma_bf16": [128, 256],
        "l2_mib": [8, 48],
        "dram_bus_bits": [128, 192],
        "boost_clock_mhz": [1500, 2100],
    },
}
"""Shipped space -> axes of a variant of few designs, which programs that all spaces share evaluate."""

MANY: dict[str, Axes] = {
    "h100_tensor_core": {
        "tensor_fma_bf16": [256, 384, 512, 768, 1024],
        "sm_count": [72, 96, 120, 132, 168],
        "l2_mib": [20, 40, 50, 80],
        "dram_bandwidth_gbs": [1675, 2680, 3350, 4800, 6700],
        "tensor_clock_mhz": [1230, 1430, 1630, 1830],
        "l2_slice_bytes_per_cycle": [32, 64, 80, 96, 128],
    },
    "decode_chip": {
        "tensor_fma_fp8": [256, 512, 1024],
        "sm_count": [24, 48, 60, 72, 96, 132],
        "l2_mib": [8, 16, 32, 48, 96],
        "dram_bus_bits": [4096, 6144, 8192, 10240],
        "boost_clock_mhz": [1230, 1380, 1530, 1680, 1830, 1980, 2130, 2280],
        "tdp_w": [400, 550, 700],
    },
}
"""Shipped space -> axes of a variant of more than 8,192 designs, for which a program of its own is compiled."""

TRACED = {
    "base": "rtx_2060",
    "axes": {
        "sm_count": [10, 30],
        "dram_bandwidth_gbs": [168, 336, 672],
        "l2_mib": [3, 6],
        "l1_latency_cycles": [28, 36],
    },
    "workloads": {"kernels": "trace"},
    "objectives": [{"value": "kernels.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
}
"""A space whose workload is the trace."""


def write_inputs(folder: Path) -> None:
    """Put every input of the cases into a folder, made if it does not exist."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    for kind, variants in {"few": FEW, "many": MANY}.items():
        for name, axes in variants.items():
            space = tomllib.loads((SPACES / f"{name}.toml").read_text(encoding="utf-8"))
            (folder / f"{kind}_{name}.toml").write_text(toml_text(space | {"axes": axes}), encoding="utf-8")
    (folder / "traced.toml").write_text(toml_text(TRACED), encoding="utf-8")
    ctas = [[_warp(2 * cta + warp) for warp in range(2)] for cta in range(60)]
    kernels = [kernel_text(ctas, threads=64, name=name, shmem=2048) for name in ("first", "second")]
    write_directory(folder / "trace", *kernels)


def _warp(warp: int) -> list[str]:
    """Trace lines of a warp: two streams in, arithmetic on every kind of unit, shared memory, one stream out."""
    address, shared = 0x7F0000000000 + 512 * warp, 0x7F0000000000 + 128 * (warp % 2)
    return [
        "0000 ffffffff 1 R1 IMAD.SHL.U32 2 R0 R4 0",
        f"0010 ffffffff 1 R2 LDG.E.SYS 1 R1 4 1 {address:#x} 4",
        f"0020 ffffffff 1 R5 LDG.E.SYS 1 R1 4 1 {address + (1 << 22):#x} 16",
        "0030 ffffffff 1 R3 FFMA 2 R2 R3 0",
        "0040 ffffffff 1 R6 IADD3 2 R5 R3 0",
        "0050 ffffffff 1 R4 MUFU.EX2 1 R3 0",
        f"0060 ffffffff 0 STS 2 R1 R4 4 1 {shared:#x} 4",
        "0070 ffffffff 0 BAR.SYNC 0 0",
        f"0080 ffffffff 1 R7 LDS.U 1 R1 4 1 {shared:#x} 4",
        "0090 ffffffff 1 R8 HMMA.1688.F32 2 R6 R7 0",
        *(f"{0x100 + 16 * i:04x} ffffffff 1 R9 FFMA 2 R8 R9 0" for i in range(6)),
        "0200 0000ffff 1 R10 DFMA 2 R9 R8 0",
        f"0210 ffffffff 0 STG.E.SYS 2 R1 R9 4 1 {address + (1 << 24):#x} 4",
        "0220 ffffffff 0 EXIT 0 0",
    ]

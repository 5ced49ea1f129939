"""An H100 that is not there, as XLA compiles for it, and the tools that read what comes out.

The plugin compiles for a description of the device alone; a driver or a GPU is not needed.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

NEEDED = {"jax_cuda12_plugin": "jax-cuda12-plugin", "jax_plugins.xla_cuda12": "jax-cuda12-pjrt"}
"""Module -> the package that holds it."""

TOOLS = {
    "ptxas": ("nvidia/cuda_nvcc/bin", "nvidia/cu13/bin"),
    "nvdisasm": ("nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin"),
}
"""Program -> where packages put it."""

KIND = "NVIDIA H100 80GB HBM3"
"""What JAX calls it where it is there."""

TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 28 }
runtime_version { major: 12 minor: 9 }
device_description_str: "KIND"
""".replace("KIND", KIND)
"""XLA's ``GpuTargetConfigProto`` of an H100 SXM5."""

ARCHITECTURE = "sm_90a"


def environment(dump: Path) -> dict[str, str]:
    """Return the variables of a process that compiles for the H100 and leaves in ``dump`` what came out."""
    return {
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "JAX_PLATFORMS": "cpu,cuda",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XLA_FLAGS": f"--xla_dump_to={dump}",
    }


def device() -> Any:
    """Return the H100 to compile for, in a process with :func:`environment`."""
    from jax.experimental import topologies

    return topologies.get_topology_desc("1x1x1", "cuda", topology="1x1x1", target_config=TARGET).devices[0]


def missing() -> list[str]:
    """Return the packages that are needed here and not installed."""
    lacking = [package for module, package in NEEDED.items() if not _importable(module)]
    lacking += [f"nvidia-cuda-{'nvcc-cu12' if n == 'ptxas' else n}" for n in TOOLS if tool(n) is None]
    return lacking


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@cache
def tool(name: str) -> Path | None:
    """Return the path of a program of NVIDIA's packages; None where it is not installed."""
    spec = find_spec("nvidia")
    roots = [Path(place).parent for place in (spec.submodule_search_locations or ())] if spec else []
    found = [root / folder / name for root in roots for folder in TOOLS[name] if (root / folder / name).exists()]
    return found[0] if found else None


@cache
def numbers() -> Mapping[str, float]:
    """Return what the projection knows of the device, by name (h100.csv)."""
    table = pd.read_csv(Path(__file__).with_name("h100.csv"))
    return dict(zip(table["name"], table["value"].astype(float), strict=True))


@cache
def pipes() -> Mapping[str, tuple[float, frozenset[str]]]:
    """Return each pipe's thread instructions a cycle and SM, and its opcodes (pipes.csv)."""
    table = pd.read_csv(Path(__file__).with_name("pipes.csv"))
    return {row.pipe: (float(row.lanes), frozenset(row.opcodes.split())) for row in table.itertuples()}

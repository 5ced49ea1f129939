"""Messages between GPUs: what joins them, and how long it takes to send over it."""

import jax.numpy as jnp
from jax import Array

from dse.hardware.gpu import Gpu
from dse.workload.kernel import Kernel

LEAST_GBS = 1e-3
"""Below this bandwidth [GB/s] there is no NVLink, so that cycles stay finite in 32 bits."""

PCIE_SHARE = 0.75
"""Share of PCIe's bandwidth that messages get: NCCL counts on 12 of 16 GB/s (PCI_BW of its graph/topo.h). Measured over
PCIe 5.0 between two GPUs: 0.54 by NCCL, 0.73 by kernels of one's own (flashinfer-ai/flashinfer#5023)."""

DIRECT_PCIE = 2
"""GPUs that send to all others at once over PCIe: of more, libraries send around a ring (vllm-project/vllm,
custom_all_reduce.py: "not supported on more than two PCIe-only GPUs")."""


def joined(kernel: Kernel, gpu: Gpu) -> Array:
    """Return whether NVLink joins all GPUs of a kernel."""
    return (gpu.nvlink_gbs >= LEAST_GBS) & (jnp.asarray(kernel.link_gpus) <= gpu.nvlink_gpus)


def reachable(kernel: Kernel, gpu: Gpu) -> Array:
    """Return whether a kernel's GPUs have the links that it sends over: all to all, or around a ring."""
    gpus = jnp.asarray(kernel.link_gpus)
    return (gpus <= DIRECT_PCIE) | (jnp.asarray(kernel.link_ring) > 0) | joined(kernel, gpu)


def link_gbs(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the data sheet's bandwidth between the GPUs of a kernel [GB/s]: NVLink's, or PCIe's where NVLink does not
    join them all."""
    return jnp.where(joined(kernel, gpu), jnp.maximum(gpu.nvlink_gbs, LEAST_GBS), gpu.pcie_gbs)


def link_cycles(kernel: Kernel, gpu: Gpu, clock_ghz: Array) -> Array:
    """Return the cycles that messages between GPUs take: latency of each, and bytes over what the link sustains."""
    nvlink = joined(kernel, gpu)
    latency_us = jnp.where(nvlink, gpu.nvlink_latency_us, gpu.pcie_latency_us)
    sustained = link_gbs(kernel, gpu) * jnp.where(nvlink, 1.0, PCIE_SHARE)  # GB/s = B/ns
    latency_ns = jnp.asarray(kernel.link_messages) * latency_us * 1e3
    return (latency_ns + jnp.asarray(kernel.link_bytes) / sustained) * clock_ghz

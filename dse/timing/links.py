"""Messages between GPUs: what joins them, and how long it takes to send over it."""

import jax.numpy as jnp
from jax import Array

from dse.base.constants import constant
from dse.hardware.gpu import Gpu
from dse.workload.kernel import Kernel

LEAST_GBS = 1e-3
"""Below this bandwidth [GB/s] there is no NVLink, so that cycles stay finite in 32 bits."""

PCIE_SHARE = constant("pcie_message_share")
"""Share of PCIe's bandwidth that messages get (assumed): NCCL counts on 12 of the 16 GB/s of PCIe 3.0 x16 (PCI_BW in
its graph/topo.h)."""

DIRECT_PCIE = int(constant("pcie_direct_gpus"))
"""GPUs that send to all others at once over PCIe: of more, libraries send around a ring (vllm-project/vllm,
custom_all_reduce.py: "not supported on more than two PCIe-only GPUs")."""


def joined(kernel: Kernel, gpu: Gpu) -> Array:
    """Return whether NVLink joins all GPUs of a kernel."""
    return (gpu.nvlink_gbs >= LEAST_GBS) & (jnp.asarray(kernel.link_gpus) <= gpu.nvlink_gpus)


def reachable(kernel: Kernel, gpu: Gpu) -> Array:
    """Return whether a kernel's GPUs have the links that it sends over."""
    return _over_pcie(kernel) | joined(kernel, gpu)


def _over_pcie(kernel: Kernel) -> Array:
    """Whether PCIe serves a kernel's messages: those made for it, and those between few."""
    tier = jnp.asarray(kernel.link_tier)
    return (tier < 0) | ((tier == 0) & (jnp.asarray(kernel.link_gpus) <= DIRECT_PCIE))


def link_gbs(kernel: Kernel, gpu: Gpu) -> Array:
    """Return the data sheet's bandwidth between the GPUs of a kernel [GB/s]: NVLink's, or PCIe's where NVLink does not
    join them all."""
    return jnp.where(joined(kernel, gpu), jnp.maximum(gpu.nvlink_gbs, LEAST_GBS), gpu.pcie_gbs)


def link_cycles(kernel: Kernel, gpu: Gpu, clock_ghz: Array) -> Array:
    """Return the cycles that messages between GPUs take, over the faster of the links that serve them: latency of each,
    and bytes over what the link sustains."""
    messages, sent = jnp.asarray(kernel.link_messages), jnp.asarray(kernel.link_bytes)
    nvlink_ns = messages * gpu.nvlink_latency_us * 1e3 + sent / jnp.maximum(gpu.nvlink_gbs, LEAST_GBS)  # GB/s = B/ns
    pcie_ns = messages * gpu.pcie_latency_us * 1e3 + sent / (PCIE_SHARE * gpu.pcie_gbs)
    by_pcie = ~joined(kernel, gpu) | (_over_pcie(kernel) & (pcie_ns < nvlink_ns)) | (jnp.asarray(kernel.link_tier) < 0)
    return jnp.where(by_pcie, pcie_ns, nvlink_ns) * clock_ghz

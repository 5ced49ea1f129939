"""Messages between GPUs: NVLink where it joins them all, else PCIe, over which more than two send around a ring."""

from dataclasses import replace

import numpy as np
import pytest

from dse.hardware.presets import load_gpu, preset_sheet
from dse.timing.links import PCIE_SHARE, link_cycles, link_gbs, reachable
from dse.workload.operators.collective import all_reduce_operator

SIZE = 1e8


def kernels(gpus: int, size: float = SIZE):
    """The algorithms' kernels by name."""
    return {c.label: c.kernel for c in all_reduce_operator("reduce", size, gpus, "decode").candidates}


def microseconds(kernel, preset: str) -> float:
    return float(link_cycles(kernel, load_gpu(preset), np.float32(1.0))) / 1e3


@pytest.mark.parametrize(
    ("preset", "gpus", "link"),
    [
        ("h100_pcie", 2, "nvlink"),
        ("h100_pcie", 4, "pcie"),
        ("h100_sxm", 8, "nvlink"),
        ("l40s", 2, "pcie"),
    ],
)
def test_a_bridge_joins_two_and_more_exchange_over_pcie(preset, gpus, link):
    numbers, kernel = preset_sheet(preset).numbers(), kernels(gpus)["PCIe" if link == "pcie" else "two-shot"]
    share = PCIE_SHARE if link == "pcie" else 1.0
    sent = kernel.link_bytes / (share * numbers[f"{link}_gbs"]) / 1e3
    latency = kernel.link_messages * numbers[f"{link}_latency_us"]
    assert microseconds(kernel, preset) == pytest.approx(sent + latency, rel=1e-5)
    assert reachable(kernel, load_gpu(preset))
    assert numbers["nvlink_gbs"] != numbers["pcie_gbs"]


@pytest.mark.parametrize(
    ("preset", "gpus", "able"),
    [
        ("l40s", 2, {"PCIe"}),
        ("l40s", 4, {"PCIe"}),
        ("h100_pcie", 4, {"PCIe"}),
        ("h100_sxm", 8, {"one-shot", "two-shot", "ring", "in-switch", "PCIe"}),
    ],
)
def test_more_than_two_send_to_all_others_over_nvlink_alone(preset, gpus, able):
    assert {name for name, kernel in kernels(gpus).items() if reachable(kernel, load_gpu(preset))} == able


@pytest.mark.parametrize(("gpus", "size", "measured"), [(8, 8, 41.0), (4, 32768, 18.8)])
def test_short_reductions_over_pcie_as_nccl_has_them(gpus, size, measured):
    """RTX 4090s: NVIDIA/nccl#1530, tinygrad/open-gpu-kernel-modules#22 (the rows that the latency was taken from)."""
    assert microseconds(kernels(gpus, size)["PCIe"], "rtx_4090") == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize("gpus", [2, 4])
def test_a_slower_nvlink_beside_pcie_costs_nothing(gpus):
    """The faster link of the two is taken; all to all over more than two GPUs there is no choice."""
    numbers = {"nvlink_gpus": np.float32(8), "nvlink_gbs": np.float32(0)}
    none = replace(load_gpu("l40s"), **numbers)
    slow, fast = (replace(none, nvlink_gbs=np.float32(gbs)) for gbs in (5, 100))

    def best(gpu) -> float:
        able = [kernel for kernel in kernels(gpus).values() if reachable(kernel, gpu)]
        return min(float(link_cycles(kernel, gpu, np.float32(1.0))) for kernel in able)

    assert best(slow) == best(none) > 2 * best(fast)


def test_a_kernel_alone_needs_no_link():
    gpu = replace(load_gpu("l40s"), pcie_gbs=np.float32(1.0))
    alone = replace(kernels(2)["PCIe"], link_gpus=1.0, link_bytes=0.0, link_messages=0.0)
    assert reachable(alone, gpu)
    assert link_cycles(alone, gpu, np.float32(1.0)) == 0


def test_no_nvlink_is_no_division_by_zero():
    assert np.isfinite(link_gbs(kernels(2)["one-shot"], replace(load_gpu("l40s"), nvlink_gbs=np.float32(0.0))))

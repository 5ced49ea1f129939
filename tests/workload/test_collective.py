"""All-reduce: bytes and messages of the two algorithms."""

import pytest

from dse.hardware.presets import load_gpu, preset_sheet
from dse.timing.memory import link_cycles
from dse.workload.collective import all_reduce_operator


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_bytes_and_messages_by_hand(gpus):
    one_shot, two_shot = (c.kernel for c in all_reduce_operator("reduce", 1e6, gpus, "decode").candidates)
    assert (one_shot.link_bytes, one_shot.link_messages) == ((gpus - 1) * 1e6, 1)
    assert (two_shot.link_bytes, two_shot.link_messages) == (pytest.approx(2 * (gpus - 1) / gpus * 1e6), 2)


def test_two_gpus_send_the_same_bytes_either_way():
    one_shot, two_shot = (c.kernel for c in all_reduce_operator("reduce", 1e6, 2, "decode").candidates)
    assert one_shot.link_bytes == two_shot.link_bytes


@pytest.mark.parametrize(("preset", "gpus", "link"), [
    ("h100_pcie", 2, "nvlink_gbs"), ("h100_pcie", 4, "pcie_gbs"), ("h100_sxm", 8, "nvlink_gbs"),
    ("l40s", 2, "pcie_gbs"),
])  # fmt: skip
def test_a_bridge_joins_two_and_more_exchange_over_pcie(preset, gpus, link):
    numbers = preset_sheet(preset).numbers()
    _, two_shot = (c.kernel for c in all_reduce_operator("r", 1e8, gpus, "decode").candidates)
    us = float(link_cycles(two_shot, load_gpu(preset), 1.0)) / 1e3
    assert us == pytest.approx(two_shot.link_bytes / numbers[link] / 1e3 + 2 * numbers["nvlink_latency_us"], rel=1e-5)
    assert numbers["nvlink_gbs"] != numbers["pcie_gbs"]


def test_the_operator_says_where_it_belongs():
    operator = all_reduce_operator("mlp_all_reduce", 2e6, 4, "prefill", repeats=32)
    assert (operator.kind, operator.phase, operator.repeats) == ("all_reduce", "prefill", 32)
    assert operator.shape == "2 MB over 4 GPUs"


def test_a_large_reduction_loads_all_its_bytes():
    for candidate in all_reduce_operator("r", 268e6, 8, "decode").candidates:
        kernel = candidate.kernel
        assert float(kernel.per_warp("load_bytes") * kernel.warps * kernel.ctas) >= 268e6

"""All-reduce: bytes and messages of the two algorithms."""

import pytest

from dse import Workload, run
from dse.workload.operators.collective import OVER_NVLINK, OVER_PCIE, algorithms, all_reduce_operator
from dse.workload.workload import Phase


def kernels(gpus, size=1e6):
    return {c.label: c.kernel for c in all_reduce_operator("reduce", size, gpus, "decode").candidates}


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_bytes_and_messages_by_hand(gpus):
    found, costs = kernels(gpus), algorithms()
    sent = {"one-shot": (gpus - 1) * 1e6, "two-shot": 2 * (gpus - 1) / gpus * 1e6, "ring": 2 * (gpus - 1) / gpus * 1e6}
    sent |= {"in-switch": (1 + 1 / gpus) * 1e6} if gpus == 8 else {}
    for name, count in sent.items():
        cost, kernel = costs[name.replace("-", "_")], found[name]
        assert kernel.link_bytes == pytest.approx(count / cost.share)
        assert kernel.link_messages == pytest.approx(cost.messages + cost.further * (gpus - 2))
        assert kernel.link_tier == OVER_NVLINK
    assert set(found) == {*sent, "PCIe"}


@pytest.mark.parametrize(("gpus", "messages"), [(2, 1), (4, 6), (8, 14)])
def test_over_pcie_nothing_is_fitted(gpus, messages):
    kernel = kernels(gpus)["PCIe"]
    assert (kernel.link_messages, kernel.link_tier) == (messages, OVER_PCIE)
    assert kernel.link_bytes == pytest.approx(2 * (gpus - 1) / gpus * 1e6)


def test_short_reductions_take_one_shot_and_large_ones_the_switch():
    def fastest(size):
        operator = all_reduce_operator("reduce", size, 8, "kernel")
        return run("h100_sxm", Workload("w", "w", (operator,), (Phase("kernel"),))).kernels["implementation"].iloc[0]

    assert [fastest(size) for size in (4096, 4e6, 1e9)] == ["one-shot", "two-shot", "in-switch"]


def test_the_operator_says_where_it_belongs():
    operator = all_reduce_operator("mlp_all_reduce", 2e6, 4, "prefill", repeats=32)
    assert (operator.kind, operator.phase, operator.repeats) == ("all_reduce", "prefill", 32)
    assert operator.shape == "2 MB over 4 GPUs"


def test_a_large_reduction_loads_all_its_bytes():
    for candidate in all_reduce_operator("r", 268e6, 8, "decode").candidates:
        kernel = candidate.kernel
        assert float(kernel.per_warp("load_bytes") * kernel.warps * kernel.ctas) >= 268e6


def test_more_gpus_than_a_server_holds_have_no_path_over_pcie():
    labels = [{c.label for c in all_reduce_operator("r", 1e6, gpus, "decode").candidates} for gpus in (8, 16)]
    assert labels[0] - labels[1] == {"PCIe"}

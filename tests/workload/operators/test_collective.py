"""All-reduce: bytes and messages of the two algorithms."""

import pytest

from dse.workload.operators.collective import all_reduce_operator


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_bytes_and_messages_by_hand(gpus):
    one_shot, two_shot, *ring = (c.kernel for c in all_reduce_operator("reduce", 1e6, gpus, "decode").candidates)
    assert (one_shot.link_bytes, one_shot.link_messages) == ((gpus - 1) * 1e6, 1)
    assert (two_shot.link_bytes, two_shot.link_messages) == (pytest.approx(2 * (gpus - 1) / gpus * 1e6), 2)
    assert [(k.link_bytes, k.link_messages, k.link_ring) for k in ring] == (
        [(two_shot.link_bytes, 2 * (gpus - 1), 1)] if gpus > 2 else []
    )


def test_two_gpus_send_the_same_bytes_either_way():
    one_shot, two_shot = (c.kernel for c in all_reduce_operator("reduce", 1e6, 2, "decode").candidates)
    assert one_shot.link_bytes == two_shot.link_bytes


def test_the_operator_says_where_it_belongs():
    operator = all_reduce_operator("mlp_all_reduce", 2e6, 4, "prefill", repeats=32)
    assert (operator.kind, operator.phase, operator.repeats) == ("all_reduce", "prefill", 32)
    assert operator.shape == "2 MB over 4 GPUs"


def test_a_large_reduction_loads_all_its_bytes():
    for candidate in all_reduce_operator("r", 268e6, 8, "decode").candidates:
        kernel = candidate.kernel
        assert float(kernel.per_warp("load_bytes") * kernel.warps * kernel.ctas) >= 268e6

"""Loops of one unit: what they demand, by hand."""

import pytest

from dse.workload.microbenchmarks import BLOCK, FMA_STEPS, LOOPS, TILE, WARPS, hops, loop_kernel


def test_a_loop_keeps_one_unit_busy():
    tensor, lanes, cache, memory = (loop_kernel(op, 100, 50) for op in LOOPS)
    assert tensor.per_warp("tensor_fma") * tensor.ctas * tensor.warps == 100 * 50 * TILE**3 == tensor.fma
    assert lanes.per_warp("fp32") * 32 * WARPS * 100 == 100 * 50 * BLOCK * FMA_STEPS
    assert cache.l2_bytes == memory.l2_bytes == cache.per_warp("load_bytes") * WARPS * 100 == 100 * 50 * 4 * BLOCK
    assert (cache.cold_distance, memory.cold_distance) == (2**23, 2**30)
    assert tensor.l2_bytes == lanes.l2_bytes == tensor.per_warp("fp32") == 0
    for kernel in (tensor, lanes, cache, memory):
        assert kernel.per_warp("instructions") >= kernel.per_warp("fp32")


@pytest.mark.parametrize(("lines", "expected"), [(8, 2**16), (2**20, 2**20)])
def test_a_small_ring_is_passed_many_times(lines, expected):
    assert hops(lines) == expected

"""Element-wise kernels: bytes, instructions, and vectors a lane."""

import pytest

from dse.workload.elementwise import LANE_ELEMENTS, THREADS, elementwise_operator


def test_an_addition_by_hand():
    operator = elementwise_operator("add", 2**20, inputs=2)
    kernel = operator.candidates[0].kernel
    assert kernel.ctas == 2**20 / (256 * 8)
    assert (kernel.warm_bytes, kernel.write_bytes) == (2**20 * 4, 2**20 * 2)
    body = kernel.loop
    assert body.load_bytes == 32 * 8 * 4  # a warp's 256 elements, two 16-bit inputs
    assert body.store_bytes == 32 * 8 * 2
    assert body.fp32 == 8


@pytest.mark.parametrize("elements", [1, 7, 2048, 100_000, 3e8])
def test_every_candidate_covers_all_elements(elements):
    for candidate in elementwise_operator("x", elements).candidates:
        kernel = candidate.kernel
        assert kernel.ctas * kernel.warps * kernel.loop.load_bytes >= kernel.warm_bytes
        assert (kernel.ctas - 1) * kernel.warps * kernel.loop.load_bytes < kernel.warm_bytes


def test_small_grids_are_not_unrolled():
    assert len(elementwise_operator("x", LANE_ELEMENTS * THREADS).candidates) == 1
    assert len(elementwise_operator("x", 8 * LANE_ELEMENTS * THREADS).candidates) == 4


def test_quantisation_writes_the_narrow_type():
    kernel = elementwise_operator("quantise", 1000, dtype="bf16", out_dtype="fp8").candidates[0].kernel
    assert (kernel.warm_bytes, kernel.write_bytes) == (2000, 1000)


def test_special_functions_are_counted():
    silu, add = (elementwise_operator("x", 1000, sfu=sfu).candidates[0].kernel.loop for sfu in (2.0, 0.0))
    assert (silu.sfu, add.sfu) == (16.0, 0.0)
    assert silu.instructions == add.instructions + 16
    assert (silu.sfu_waits, add.sfu_waits) == (1.0, 0.0)

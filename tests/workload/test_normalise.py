"""Row kernels: one CTA a row, reductions counted, rows covered."""

import pytest

from dse.workload.normalise import REDUCTIONS, row_operator


def test_a_norm_by_hand():
    kernel = next(c.kernel for c in row_operator("norm", "rmsnorm", 100, 4096).candidates if c.label.startswith("256"))
    assert (kernel.ctas, kernel.warps) == (100, 8)
    assert kernel.warm_bytes == kernel.write_bytes == 100 * 4096 * 2
    assert kernel.loop.load_bytes * kernel.warps == 4096 * 2
    assert kernel.loop.fp32 == 16 * 5 + 10  # five instructions an element, a tree of five shuffles


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("columns", [1, 100, 5120, 128_256])
def test_every_candidate_covers_a_row(kind, columns):
    for candidate in row_operator("x", kind, 3, columns).candidates:
        kernel = candidate.kernel
        assert kernel.warps * kernel.loop.load_bytes >= columns * 2
        assert 0 < kernel.registers <= 255


def test_softmax_takes_an_exponential_an_element_and_two_reductions():
    norm, softmax = (row_operator("x", kind, 1, 1024).candidates[0].kernel.loop for kind in ("rmsnorm", "softmax"))
    assert (norm.sfu, softmax.sfu) == (1, 8)
    assert softmax.shared_waits == 2 * norm.shared_waits


def test_a_fused_addition_moves_two_arrays_each_way():
    plain, fused = (
        row_operator("x", "rmsnorm", 64, 4096, inputs=n, outputs=n).candidates[0].kernel for n in (1.0, 2.0)
    )
    assert fused.warm_bytes == 2 * plain.warm_bytes
    assert fused.l2_bytes == 2 * plain.l2_bytes


def test_short_rows_take_few_threads():
    assert [c.label for c in row_operator("x", "softmax", 8, 64).candidates] == ["128 threads a row"]
    assert len(row_operator("x", "softmax", 8, 8192).candidates) == 4

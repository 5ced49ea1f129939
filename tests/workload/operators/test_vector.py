"""Vector kernels as libraries write them: grids, work, variants for short rows, refusals."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.operators.vector import (
    FITTED_COUNTS,
    counts_of,
    variant,
    variants,
    vector_counts,
    vector_kernel,
    vector_operator,
    vector_ops,
)


def kernel(op, rows, cols, dtype="bf16", implementation="vllm_vector", **more):
    (candidate,) = vector_operator(op, op, rows, cols, dtype, implementation, **more).candidates
    return candidate.kernel


def base(kernel):
    """The operator of a kernel's name."""
    return kernel.removesuffix("_half").removesuffix("_block").removesuffix("_wide")


def test_an_addition_by_hand():
    add = kernel("add", 1024, 4096)
    assert (add.ctas, add.warps, add.loop.repeats) == (1024 * 4096 / 512, 4, 1)
    assert (add.warm_bytes, add.write_bytes) == (1024 * 4096 * 4, 1024 * 4096 * 2)
    assert add.loop.load_bytes == pytest.approx(32 * 4 * 4)  # four elements a lane, two 16-bit inputs
    assert IMPLEMENTATIONS[int(add.implementation)] == "vllm_vector"


def test_a_row_kernel_takes_a_cta_a_row():
    silu = kernel("silu_and_mul", 100, 14336)
    assert (silu.ctas, silu.warps, silu.loop.repeats) == (100, 32, 14)
    assert kernel("silu_and_mul", 100, 256).warps == 8
    newer = kernel("silu_and_mul", 100, 14336, implementation="vllm_0_19_vector")
    assert (newer.warps, newer.loop.repeats) == (32, 2)  # eight elements a lane


def test_a_warp_without_elements_issues_nothing():
    row, wide = (kernel("silu_and_mul", 8, cols).loop for cols in (1024, 1056))
    assert wide.repeats == 2 * row.repeats
    assert wide.repeats * wide.instructions == pytest.approx(33 / 32 * row.instructions)


def test_queries_and_keys_are_rotated_in_turn():
    together, apart = (kernel("rope", 8, 1280, second=keys).loop.repeats for keys in (0.0, 256.0))
    assert (together, apart) == (2, 2)
    assert kernel("rope", 8, 2304, second=256.0).loop.repeats == 3
    assert kernel("rope", 8, 2048, second=1024.0).loop.repeats == 2


def test_short_rows_of_a_softmax_are_a_warps():
    short = kernel("softmax", 4096, 100, "fp32", "pytorch_vector")
    assert (short.ctas, short.warps, short.loop.repeats) == (4096 / 8, 4, 1)  # two rows a warp, padded to 128
    long = kernel("softmax", 4096, 1025, "fp32", "pytorch_vector")
    assert long.ctas == 4096
    assert long.again_bytes > short.again_bytes == 0


def test_many_rows_load_32_bytes_where_the_gpu_can():
    narrow, wide = vector_operator("s", "silu_and_mul", 129, 14336, "bf16", "vllm_0_19_vector").candidates
    assert (narrow.kernel.warps, narrow.kernel.loop.repeats, narrow.kernel.capability_end) == (32, 2, 10)
    assert (wide.kernel.warps, wide.kernel.loop.repeats, wide.kernel.compute_capability) == (28, 1, 10)
    assert len(vector_operator("s", "silu_and_mul", 128, 14336, "bf16", "vllm_0_19_vector").candidates) == 1
    names = [variant("vllm_0_19_vector", "silu_and_mul", 129, 14336, "bf16", x) for x in (9.0, 12.0)]
    assert names == ["silu_and_mul", "silu_and_mul_wide"]


def test_norms_of_16_bit_types_go_to_dram_once():
    half, single = (kernel("layernorm", 4096, 8192, dtype, "pytorch_vector") for dtype in ("fp16", "fp32"))
    assert half.again_bytes == 0
    assert single.again_bytes > 0


def test_long_rows_of_a_softmax_load_16_bytes_a_lane():
    half, single = (kernel("softmax", 4096, 16384, dtype, "pytorch_vector").loop for dtype in ("fp16", "fp32"))
    assert (half.repeats, single.repeats) == (2, 4)


def test_threads_without_a_vector_take_room_and_no_time():
    few, many = (kernel("add_rmsnorm", rows, 5120, implementation="vllm_0_19_vector") for rows in (255, 256))
    assert (few.warps, few.loop.repeats, many.warps, many.loop.repeats) == (32, 1, 8, 3)
    issued = [k.warps * k.loop.repeats * k.loop.instructions for k in (few, many)]
    assert issued[0] == pytest.approx(issued[1])


def test_the_residual_stream_is_older_than_the_sum_added_to_it():
    plain, older = (
        kernel("add_rmsnorm", 8, 4096, residual_distance=d, implementation="vllm_0_19_vector") for d in (0.0, 1e8)
    )
    assert (plain.cold_bytes, plain.warm_bytes) == (0, 8 * 4096 * 4)
    assert (older.cold_bytes, older.warm_bytes, older.cold_distance) == (8 * 4096 * 2, 8 * 4096 * 2, 1e8)


def test_few_embeddings_are_gathered_in_turn():
    few, many = (kernel("embedding", rows, 4096) for rows in (16, 17))
    assert (few.ctas, few.loop.repeats) == (32, 16)
    assert (many.ctas, many.loop.repeats) == (17 * 32, 1)


def taken() -> list[Any]:
    """Every library's kernel with each shape that it takes, and a type that it takes it in."""
    return [
        pytest.param((implementation, op), shape, dtype, id=f"{implementation}-{op}-{shape[0]}x{shape[1]}")
        for implementation, op in sorted(vector_counts())
        for shape in ((1, 1), (3, 100), (4096, 4096), (7, 128_256))
        if (dtype := first_type(implementation, op, shape))
    ]


def first_type(implementation: str, op: str, shape: tuple[int, int]) -> str | None:
    what = vector_ops()[base(op)]
    return next((t for t in ("bf16", "fp32") if op in variants(implementation, what.op, *shape, t)), None)


@pytest.mark.parametrize(("key", "shape", "dtype"), taken())
def test_every_kernel_moves_its_bytes(key, shape, dtype):
    implementation, op = key
    what = vector_ops()[base(op)]
    candidates = vector_operator("v", what.op, *shape, dtype, implementation).candidates
    made = next(c.kernel for c in candidates if c.label == f"{implementation} {op}")
    passes = counts_of(implementation, op).passes
    loaded = made.ctas * made.warps * made.loop.repeats * made.loop.load_bytes
    assert loaded == pytest.approx(made.warm_bytes * passes)
    assert made.l2_bytes == pytest.approx(loaded + made.write_bytes)
    assert all(np.isfinite(leaf) and leaf >= 0 for leaf in jax.tree.leaves(made))


def test_quantisation_writes_the_narrow_type():
    made = kernel("elementwise_quant_bf16_fp8", 10, 100)
    assert (made.warm_bytes, made.write_bytes) == (2000, 1000)


def test_arrays_and_numbers_make_the_same_kernel():
    what, counts = vector_ops()["rmsnorm"], counts_of("vllm_vector", "rmsnorm")
    rows, cols = np.array([1.0, 300.0]), np.array([4096.0, 5120.0])
    both = vector_kernel(what, counts, rows, cols, (2.0, 2.0), (1e6, 1e6, 0.0))
    for i in range(2):
        one = vector_kernel(what, counts, rows[i], cols[i], (2.0, 2.0), (1e6, 1e6, 0.0))
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(np.broadcast_to(a, (2,))[i], b), both, one)
    slower = vector_kernel(what, replace(counts, waits=9.0), 1.0, 4096.0, (2.0, 2.0), (1e6, 1e6, 0.0))
    assert slower.loop.global_waits == 9.0


def test_a_kernel_that_a_library_does_not_have_is_refused():
    with pytest.raises(InputError, match="quantise has no kernel of 'rope'"):
        vector_operator("r", "rope", 1, 1, "bf16", "quantise")


def test_the_tables_agree():
    for implementation, op in vector_counts():
        assert KINDS[implementation] == "vector"
        assert base(op) in vector_ops()
    copies = [row for row in read_table("calibration/vector_counts.csv") if row["source"].startswith("as ")]
    rows = read_table("calibration/vector_counts.csv")
    values = {(r["implementation"], r["op"], r["attribute"]): r["value"] for r in rows}
    assert copies
    for row in copies:
        _, implementation, op = row["source"].split(" ")
        assert row["value"] == values[implementation, op, row["attribute"]]
    assert {"instructions", "waits"} <= set(FITTED_COUNTS)

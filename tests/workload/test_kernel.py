"""The kernel record: defaults that demand nothing, and stacking into a batch."""

import jax
import numpy as np
import pytest

from dse.hardware.data_types import TENSOR_DTYPES
from dse.workload.kernel import Interval, Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator


def test_a_batch_holds_the_kernels_in_order():
    kernels = [c.kernel for c in gemm_operator("gemm", Gemm(512, 512, 512)).candidates]
    batch = Kernel.stack(kernels)
    assert batch.ctas.shape == (len(kernels),)
    for number, kernel in enumerate(kernels):
        row = jax.tree.map(lambda x, i=number: x[i], batch)
        assert jax.tree.all(jax.tree.map(lambda a, b: float(a) == float(b), row, kernel))


def test_kernels_of_different_operators_stack():
    kernels = [
        gemm_operator("gemm", Gemm(64, 64, 64)).candidates[0].kernel,
        vector_operator("add", "add", 1, 1000).candidates[0].kernel,
    ]
    batch = Kernel.stack(kernels)
    assert np.array_equal(batch.uses_tensor, [kernels[0].uses_tensor, 0.0])
    assert batch.loop.instructions.shape == (2,)


def test_intervals_stand_in_the_order_they_run():
    kernel = Kernel(Interval(repeats=1), Interval(repeats=2), Interval(repeats=3))
    assert [interval.repeats for interval in kernel.intervals] == [1, 2, 3]


def test_as_arrays_keeps_the_numbers():
    kernel = gemm_operator("gemm", Gemm(64, 64, 64)).candidates[0].kernel
    leaves = zip(jax.tree.leaves(kernel), jax.tree.leaves(kernel.as_arrays()), strict=True)
    assert all(float(a) == pytest.approx(float(b)) for a, b in leaves)
    assert TENSOR_DTYPES[int(kernel.tensor_dtype)] == "bf16"


def test_a_kernel_is_shown_in_a_line_alone_and_in_a_batch():
    operator = gemm_operator("gemm", Gemm(64, 64, 64))
    kernel = operator.candidates[0].kernel
    assert f"fma={64**3}, " in repr(kernel) and "\n" not in repr(kernel)
    assert "ctas=f64[2](numpy), " in repr(Kernel.stack([kernel, kernel]))
    assert repr(operator).startswith("Operator('gemm': gemm, ")

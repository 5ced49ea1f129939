"""What a layer gets of its step: quantisation before products, norms of the stream, sums over GPUs."""

from dataclasses import replace

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.step import Step
from dse.workload.target import Target

STEP = Step("prefill", 2, 100, 100, 4096, "rmsnorm", precision("x"), 1, Target((9.0, 9.0), True), 1e9, 1e7)


def test_rows_are_new_tokens_of_all_requests():
    assert STEP.rows == 200
    assert STEP.activation_bytes(4096) == 200 * 4096 * 2


def test_a_product_reads_weights_a_step_ago_and_an_input_just_written():
    (gemm,) = STEP.gemm("up", STEP.rows, 14336, 4096)
    kernel = gemm.candidates[0].kernel
    assert (gemm.phase, kernel.fma) == ("prefill", 200 * 14336 * 4096)
    assert (kernel.cold_bytes, kernel.cold_distance) == (14336 * 4096 * 2, 1e9)
    assert (kernel.warm_bytes, kernel.warm_distance) == (200 * 4096 * 2, 2 * 200 * 4096 * 2)
    assert (kernel.write_bytes, kernel.write_distance) == (200 * 14336 * 2, 1e7)


def test_narrow_activations_are_quantised_first():
    narrow = replace(STEP, precision=precision("x", dtype="fp8"))
    quantise, gemm = narrow.gemm("up", STEP.rows, 14336, 4096)
    assert (quantise.name, gemm.name) == ("up_quantise", "up")
    kernel = quantise.candidates[0].kernel
    assert (kernel.warm_bytes, kernel.write_bytes) == (200 * 4096 * 2, 200 * 4096)
    assert gemm.candidates[0].kernel.warm_bytes == 200 * 4096


def test_a_norm_of_the_stream_adds_to_it():
    kernel = STEP.stream_norm("norm").candidates[0].kernel
    assert kernel.warm_bytes == kernel.write_bytes == 2 * 200 * 4096 * 2
    assert (kernel.warm_distance, kernel.write_distance) == (5e6, 1e7)


@pytest.mark.parametrize(("gpus", "count"), [(1, 0), (2, 1), (8, 1)])
def test_several_gpus_add_up_the_stream(gpus, count):
    reductions = list(replace(STEP, gpus=gpus).all_reduce("sum"))
    assert [o.candidates[0].kernel.warm_bytes for o in reductions] == count * [200 * 4096 * 2]

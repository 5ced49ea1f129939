"""The kernels that a library would choose: the fastest of each operator's, by the model called one by one."""

import numpy as np
import pytest

from dse.evaluate.fastest import fastest_kernels, timings_on
from dse.hardware.presets import load_sheet
from dse.timing.roofline import Roofline
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.programs import quick_jit

OPERATORS = [gemm_operator("g", Gemm(*shape)) for shape in ((1, 4096, 4096), (300, 1000, 5000), (4096, 4096, 512))]


alone = quick_jit(Roofline())


def one_by_one(operator, gpu):
    """Nanoseconds of each of an operator's kernels, infinite where it does not run."""
    timings = [alone(candidate.kernel.as_arrays(), gpu) for candidate in operator.candidates]
    return np.array([float(t.nanoseconds) if t.feasible else np.inf for t in timings])


def test_a_batch_of_any_count_is_timed_as_each_is():
    gpu, candidates = load_sheet("h100_sxm").record(), OPERATORS[1].candidates
    batch = timings_on(gpu, Kernel.stack([candidate.kernel for candidate in candidates]), Roofline())
    assert batch.cycles.shape == (len(candidates),)
    runs = np.asarray(batch.feasible) > 0
    assert np.asarray(batch.nanoseconds)[runs] == pytest.approx(one_by_one(OPERATORS[1], gpu)[runs], rel=1e-6)


def test_the_fastest_of_each_operator():
    gpu = load_sheet("h100_sxm").record()
    kernels, timing = fastest_kernels(Roofline(), OPERATORS, gpu)
    assert kernels.ctas.shape == (len(OPERATORS),)
    least = [one_by_one(operator, gpu).min() for operator in OPERATORS]
    assert np.asarray(timing.nanoseconds) == pytest.approx(least, rel=1e-6)


def test_an_operator_without_a_kernel_that_runs_is_infeasible():
    gpu = load_sheet("v100_sxm2_16gb").record()  # no tensor cores for bf16
    _, timing = fastest_kernels(Roofline(), [gemm_operator("g", Gemm(64, 64, 64)), OPERATORS[0]], gpu)
    assert not np.asarray(timing.feasible).any()

"""A model's corrections of kernels, which no GPU decides, moved into the kernels."""

import jax
import numpy as np

from dse.evaluate.corrections import correction_factors, fold_corrections
from dse.hardware.presets import load_gpu
from dse.timing.amali import Amali
from dse.timing.discrepancy import Points
from dse.timing.roofline import Roofline
from dse.workload.kernel import PROBLEM, Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.programs import quick_jit

SIZES = np.pad(np.array([(160, 8192, 4096), (4096, 4096, 4096)], float), ((0, 0), (0, PROBLEM - 3)))
POINTS = Points("matrix", SIZES, np.array([0.4, -0.05]), 132.0)
OPERATORS = [gemm_operator("g", Gemm(m, 8192, 4096), (9.0, 9.0)) for m in (16, 160, 4096)]
KERNELS = Kernel.stack([candidate.kernel for one in OPERATORS for candidate in one.candidates])


def test_the_times_are_the_same_and_the_corrections_stand_in_the_kernels():
    model, gpu = Amali(discrepancy=POINTS.record()), load_gpu("h100_sxm")
    bare, folded = fold_corrections(model, KERNELS)
    assert isinstance(bare, Amali) and bare.discrepancy is None and np.ptp(folded.stretch) > 0.1
    of_each = quick_jit(lambda model, kernels: jax.vmap(lambda kernel: model.nanoseconds(kernel, gpu))(kernels))
    np.testing.assert_allclose(of_each(bare, folded), of_each(model, KERNELS), rtol=1e-5)
    again, same = fold_corrections(bare, folded)
    assert again is bare and same is folded


def test_a_model_without_corrections_changes_no_time():
    model = Roofline()
    assert fold_corrections(model, KERNELS) == (model, KERNELS)
    assert (correction_factors(model, KERNELS) == 1.0).all()

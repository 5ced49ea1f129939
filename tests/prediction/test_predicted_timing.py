"""A fitted predictor as a timing model: stack, batch, jit, kinds of kernels, and a run by it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dse.evaluate import space_program as evaluate
from dse.evaluate.run import run
from dse.grid.sweep import sweep
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_gpu, preset_sheet
from dse.prediction.features import DEMANDS
from dse.prediction.predicted_timing import KINDS, Predicted, kernel_kind, type_of
from dse.prediction.predictors import PREDICTORS, FittedPredictor, Rows, fit
from dse.reports.sweep.answer import caveats
from dse.space.space import space_from_mapping
from dse.timing.amali import Amali
from dse.timing.roofline import Roofline
from dse.timing.timing import CAUSES
from dse.workload.kernel import Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from tests.conftest import SMALL
from tests.programs import quick_jit

H100 = load_gpu("h100_sxm")
OPERATORS = {
    0: gemm_operator("g", Gemm(4096, 4096, 4096), (9.0, 9.0)),
    1: attention_operator("a", Attention(1, 32, 8, 128, 2048, 2048), (9.0, 9.0)),
    2: attention_operator("a", Attention(4, 32, 8, 128, 1, 4096), (9.0, 9.0)),
    3: vector_operator("e", "add", 1000, 1e4),
}
AMALI = Amali()
RNG = np.random.default_rng(0)
X = np.exp(RNG.uniform(3, 14, (200, len(DEMANDS) + 1)))


def learned(name, residual):
    return fit(name, Rows(X, X @ np.r_[np.full(len(DEMANDS), 0.1), 1.3]), residual, 8)


def predicted(name="nnls", residual=True, base=AMALI):
    return Predicted(base, (learned(name, residual),), (0,), (type_of("bf16"),), (True,), "a table")


def test_kinds_of_kernels():
    for kind, operator in OPERATORS.items():
        for candidate in operator.candidates:
            assert int(kernel_kind(candidate.kernel)) == kind, operator.name
    assert {int(kernel_kind(c.kernel)) for c in vector_operator("r", "rmsnorm", 64, 4096).candidates} == {3}
    assert set(KINDS.values()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("name", "base", "residual"),  # of the linear ones, one on the model that compiles longest
    [
        ("forest", AMALI, False),
        *(
            pytest.param(name, base, residual, marks=pytest.mark.slow)
            for name, base, residual in (
                ("ols", Roofline(), False),
                ("ols", Roofline(), True),
                ("nnls", AMALI, False),
                ("nnls", AMALI, True),
                ("elastic_net", Roofline(), False),
                ("elastic_net", Roofline(), True),
                ("forest", AMALI, True),
                ("network", AMALI, False),
                ("network", AMALI, True),
            )
        ),
    ],
)
def test_the_contract_of_timing_models(name, base, residual):
    model, kernels = (
        predicted(name, residual, base),
        Kernel.stack([c.kernel for c in OPERATORS[0].candidates]).as_arrays(),
    )
    designs = [
        preset_sheet("h100_sxm").numbers() | {"sm_count": n, "l2_mib": m} for n in (8, 132, 1024) for m in (1, 400)
    ]
    gpus = jax.tree.map(lambda *x: np.stack(x), *[Gpu.from_numbers(d) for d in designs])
    timing = quick_jit(jax.vmap(jax.vmap(model, (0, None)), (None, 0)))(kernels, gpus)
    stack = np.stack([np.asarray(v) for v in timing.stack().values()])
    assert np.isfinite(stack).all() and (stack >= 0).all()
    assert (np.asarray(timing.cycles) > 0).all()
    assert list(timing.stack()) == list(CAUSES)
    one = model(jax.tree.map(lambda x: x[0], kernels), Gpu.from_numbers(designs[3]))
    assert float(one.cycles) == pytest.approx(float(timing.cycles[3, 0]), rel=1e-5)
    gradient = jax.grad(lambda g: model(jax.tree.map(lambda x: x[0], kernels), g).cycles)(Gpu.from_numbers(designs[3]))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_kernels_of_other_kinds_keep_the_base_timing():
    model = predicted()
    other = OPERATORS[3].candidates[0].kernel
    assert float(model(other, H100).cycles) == pytest.approx(float(Amali()(other, H100).cycles), rel=1e-6)
    gemm = OPERATORS[0].candidates[0].kernel
    assert float(model(gemm, H100).cycles) > 1.2 * float(Amali()(gemm, H100).cycles)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "fp8"])
def test_kernels_in_a_type_that_was_not_learned_keep_the_base_timing(dtype):
    product = Gemm(512, 4096, 4096, 1.0, dtype, dtype, dtype)
    kernel = gemm_operator("g", product, (9.0, 9.0)).candidates[0].kernel
    assert float(predicted()(kernel, H100).cycles) == pytest.approx(float(Amali()(kernel, H100).cycles), rel=1e-6)


@pytest.mark.slow
def test_a_workload_runs_by_it():
    result = run("h100_sxm", "gpt2_xl:phase=decode,batch=8,context=512", predicted())
    plain = run("h100_sxm", "gpt2_xl:phase=decode,batch=8,context=512", Amali())
    assert result.calibration == "learned on a table; kernels of other kinds and types by amali, uncalibrated"
    assert result.metrics["tbt_ms"][0] > plain.metrics["tbt_ms"][0]


def test_a_forest_runs_and_is_swept(monkeypatch):
    """Its places in tables are whole numbers, and its steps no loop that a sweep's own program cannot take apart."""
    model = predicted("forest", True, Roofline())
    learned, plain = (run("h100_sxm", "gpt2_xl:phase=decode,batch=8,context=512", m) for m in (model, Roofline()))
    assert learned.metrics["tbt_ms"][0] > plain.metrics["tbt_ms"][0]
    decode = {"workloads": {"prefill": SMALL["workloads"]["prefill"]}, "objectives": SMALL["objectives"][::2]}
    space = replace(space_from_mapping(SMALL | decode, "small", "small"), model=model)
    shared = sweep(space).points(["prefill.ttft_ms"]).to_numpy()
    monkeypatch.setattr(evaluate, "by_shared_programs", lambda *_: False)
    np.testing.assert_allclose(sweep(space).points(["prefill.ttft_ms"]).to_numpy(), shared, rtol=1e-5)


@pytest.mark.slow
def test_a_grid_is_swept_with_a_fitted_predictor():
    prefill = {"workloads": {"prefill": SMALL["workloads"]["prefill"]}, "objectives": SMALL["objectives"][::2]}
    space = space_from_mapping(SMALL | prefill, "small", "small")
    learned_space = replace(space, model=predicted("nnls"))
    learned, base = sweep(learned_space), sweep(space)
    assert learned.calibration == "learned on a table; kernels of other kinds and types by amali, uncalibrated"
    assert "amali, uncalibrated. Products run" in caveats(learned)[0]
    times = learned.points(["prefill.ttft_ms"]).to_numpy()
    assert np.isfinite(times).all() and (times > 0).all()
    assert not np.allclose(times, base.points(["prefill.ttft_ms"]).to_numpy())  # GEMMs by the predictor


def test_every_predictor_is_fitted_to_one_kind_of_record():
    assert len(PREDICTORS) == 18
    assert isinstance(learned("nnls", True), FittedPredictor)

"""Costs of vector kernels under their calibrations: neutral by default, monotone, differentiable, finite."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.presets import load_gpu
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration, shipped_implementations
from dse.timing.sustained import Sustained
from dse.timing.timing import CAUSES
from dse.workload.kernel import Kernel
from dse.workload.l2_hit_rate import between_launches
from dse.workload.operators.vector import vector_counts, vector_operator, vector_ops
from tests.programs import quick_jit

SHAPES = ((1, 28672), (64, 4096), (4096, 5120), (32768, 512))
GPUS = ("t4", "p100_pcie_16gb", "a100_pcie_40gb", "h100_sxm", "rtx_pro_6000")


@pytest.fixture(scope="module")
def batch() -> Kernel:
    names = [(i, op) for i, op in vector_counts() if op in vector_ops()]
    made = [
        vector_operator(op, op, rows, cols, "fp16", i, input_distance=4.0 * rows * cols, out_distance=4.0 * rows * cols)
        for i, op in names
        for rows, cols in SHAPES
    ]
    return Kernel.stack([c.kernel for operator in made for c in operator.candidates]).as_arrays()


@pytest.fixture(scope="module")
def model() -> Amali:
    return floats(replace(load_timing_calibration("shared").model, calibrated_on=""))


def floats(record):
    """Numbers of one type, so that one program serves all."""
    return jax.tree.map(lambda x: jnp.asarray(x, float), record)


@quick_jit
def timed(model, gpu, batch):
    return jax.vmap(lambda kernel: model(kernel, gpu))(batch)


def cycles(model, gpu, batch):
    return np.asarray(timed(floats(model), floats(gpu), batch).cycles)


def test_every_vector_implementation_is_calibrated():
    assert {"vllm_vector", "vllm_0_19_vector", "pytorch_vector", "quantise"} <= set(shipped_implementations())


@pytest.mark.parametrize("name", GPUS)
def test_causes_add_up_and_stay_finite(name, batch, model):
    gpu = load_gpu(name)
    timing = timed(model, floats(gpu), batch)
    stack = np.array([np.asarray(getattr(timing, cause)) for cause in CAUSES])
    assert np.isfinite(stack).all()
    assert (stack >= 0).all()
    np.testing.assert_allclose(stack.sum(axis=0), np.asarray(timing.cycles), rtol=1e-5)
    capability = gpu.compute_capability
    runs = (batch.compute_capability <= capability) & (capability < batch.capability_end)
    np.testing.assert_array_equal(np.asarray(timing.feasible), np.asarray(runs, float))
    assert runs.mean() > 0.9


@pytest.mark.parametrize(
    "attribute", ["dram_bandwidth_gbs", "l2_slice_bytes_per_cycle", "l2_port_bytes_per_cycle", "l2_mib"]
)
def test_more_of_a_rate_is_never_slower(attribute, batch, model):
    gpu = load_gpu("a100_sxm_80gb")
    last = cycles(model, gpu, batch)
    for factor in (1.2, 2.0, 5.0):
        now = cycles(model, replace(gpu, **{attribute: getattr(gpu, attribute) * factor}), batch)
        assert (now <= last * (1 + 1e-4)).all()
        last = now


def test_gradients_are_finite(batch, model):
    gpu = load_gpu("h100_sxm")

    def total(bandwidth, costs):
        return sum_of(replace(model, sustained=costs), replace(gpu, dram_bandwidth_gbs=bandwidth))

    def sum_of(model, gpu):
        return jnp.sum(jax.vmap(lambda kernel: model(kernel, gpu).cycles)(batch))

    slope, costs = quick_jit(jax.grad(total, argnums=(0, 1)))(gpu.dram_bandwidth_gbs, model.sustained)
    assert np.isfinite(slope)
    assert slope < 0
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(costs))


def test_fields_of_vector_kernels_are_neutral_by_default(batch):
    gpu = load_gpu("h100_sxm")
    neutral = Sustained(streams=0.0, queued=1.0, turnaround=0.0, lockstep=0.0)
    np.testing.assert_array_equal(cycles(Amali(sustained=neutral), gpu, batch), cycles(Amali(), gpu, batch))
    for name, value in (("queued", 0.0), ("turnaround", 0.5), ("lockstep", 1.0)):
        costs = replace(Sustained(), **{name: value})
        assert (cycles(Amali(sustained=costs), gpu, batch) != cycles(Amali(), gpu, batch)).any(), name


def test_what_a_stream_finds_in_the_cache():
    distance = jnp.array([1.0, 1e6, 2e7, 4e7, 4e8, 1e15])
    missed = np.asarray(between_launches(distance, jnp.asarray(4e7), 0.5, 3.0))
    assert (np.diff(missed) >= 0).all()
    np.testing.assert_allclose(missed[[0, 2, 3, 5]], [0.0, 0.5, 8 / 9, 1.0], atol=1e-6)
    products = np.asarray(between_launches(distance, jnp.asarray(4e7), 0.5, 0.0))
    np.testing.assert_array_equal(products, np.asarray(between_launches(distance, jnp.asarray(4e7), 0.5)))

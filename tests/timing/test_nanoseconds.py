"""The total alone, by which candidates are compared, is what the stack adds up to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.space.shipped import find_space
from dse.space.space import load_space
from dse.timing.amali import Amali
from dse.timing.timing import TimingModel
from dse.workload.kernel import Kernel
from tests.programs import quick_jit


@quick_jit
def brief(model: Amali, kernels: Kernel, gpu: Gpu) -> Array:
    return jax.vmap(lambda kernel: model.nanoseconds(kernel, gpu))(kernels)


@quick_jit
def whole(model: Amali, kernels: Kernel, gpu: Gpu) -> Array:
    return jax.vmap(lambda kernel: TimingModel.nanoseconds(model, kernel, gpu))(kernels)


@pytest.mark.parametrize("gpu", ["h100_sxm", "a100_sxm_80gb"])
@pytest.mark.parametrize("calibrated", [pytest.param(False, marks=pytest.mark.slow), True])
def test_nanoseconds_are_the_total_of_the_stack(gpu: str, calibrated: bool) -> None:
    space = load_space(find_space("h100_tensor_core"))
    model = jax.tree.map(lambda x: jnp.asarray(x, float), space.model if calibrated else Amali())
    record = Gpu(**{name: jnp.asarray(value, float) for name, value in preset_sheet(gpu).numbers().items()})
    kernels = jax.tree.map(lambda *x: jnp.concatenate(x), *(w.kernels.as_arrays() for w in space.workloads))
    assert np.allclose(brief(model, kernels, record), whole(model, kernels, record), rtol=3e-6)

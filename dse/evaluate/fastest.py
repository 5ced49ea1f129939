"""Timings of many kernels on one GPU, and the kernel of each operator that a library would choose: the fastest."""

from collections.abc import Sequence

import jax
import numpy as np

from dse.base.compilation import filled_up, quick_filter_jit
from dse.hardware.gpu import Gpu
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator, fastest


def timings_on(gpu: Gpu, kernels: Kernel, model: TimingModel) -> Timing:
    """Return the timing of each kernel on one GPU, NumPy arrays (kernels,); one program serves all GPUs."""
    kernels, gpu = jax.tree.map(lambda x: np.asarray(x, float), (kernels, gpu))
    model, told = model.told(kernels)
    timing = _timings_on(model.anonymous(), filled_up(told), gpu)
    return jax.tree.map(lambda x: np.asarray(x)[: len(kernels.ctas)], timing)


@quick_filter_jit
def _timings_on(model: TimingModel, kernels: Kernel, gpu: Gpu) -> Timing:
    return jax.vmap(lambda kernel: model(kernel, gpu))(kernels)


def fastest_kernels(model: TimingModel, operators: Sequence[Operator], gpu: Gpu) -> tuple[Kernel, Timing]:
    """Return the fastest kernel of each operator, and its timing: fields of shape (operators,).

    Where none of an operator's runs, its first stands there, infeasible.
    """
    kernels = Kernel.stack([candidate.kernel for operator in operators for candidate in operator.candidates])
    timing = timings_on(gpu, kernels, model)
    best = fastest_of(timing, np.cumsum([0, *(len(operator.candidates) for operator in operators[:-1])]))
    return jax.tree.map(lambda x: np.asarray(x)[best], (kernels, timing))


def fastest_of(timing: Timing, starts: np.ndarray, equal: float = 0.0) -> np.ndarray:
    """Return where each operator's fastest candidate stands (:func:`dse.workload.operator.fastest`); one that cannot
    run is never faster than one that can."""
    return fastest(np.where(np.asarray(timing.feasible) > 0, timing.microseconds, np.inf), starts, equal)

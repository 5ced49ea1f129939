"""Corrections of a timing model that depend on no GPU, moved into the kernels: computed once, not for each design."""

from dataclasses import replace

import numpy as np
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.evaluate.batching import over_arrays
from dse.timing.discrepancy import Discrepancy
from dse.timing.timing import TimingModel
from dse.workload.kernel import Kernel


def fold_corrections(model: TimingModel, kernels: Kernel) -> tuple[TimingModel, Kernel]:
    """Return a model and kernels (kernels,) with the same times, the model's discrepancy held by the kernels."""
    if getattr(model, "discrepancy", None) is None:
        return model, kernels
    stretch = kernels.stretch * correction_factors(model, kernels)
    return replace(model, discrepancy=None), replace(kernels, stretch=stretch)


def correction_factors(model: TimingModel, kernels: Kernel) -> np.ndarray:
    """Return how many times as long as the equations say each kernel takes (kernels,), by the model's discrepancy."""
    discrepancy = getattr(model, "discrepancy", None)
    return np.ones(len(kernels.ctas)) if discrepancy is None else np.asarray(_factors(discrepancy, kernels))


@quick_filter_jit
def _factors(discrepancy: Discrepancy, kernels: Kernel) -> Array:
    return over_arrays(lambda kernel: discrepancy.of(kernel.implementation).factor(kernel), kernels)

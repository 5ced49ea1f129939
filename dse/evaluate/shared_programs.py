"""Programs that all workloads share: kernels and GPUs are arguments, so that each is compiled once and kept.

A space's own program (:mod:`dse.evaluate.space_program`) evaluates a design in microseconds, after many seconds of
tracing and compilation. These take a fraction of a millisecond for a design. They evaluate a few designs, a design's
neighbours, one GPU, and measured rows; batches are filled up to a few sizes.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import filled_up, quick_filter_jit, shared_filter_jit
from dse.base.numerics import INFEASIBLE
from dse.evaluate import steps
from dse.evaluate.batching import in_blocks
from dse.evaluate.corrections import fold_corrections
from dse.evaluate.fastest import fastest, fastest_of
from dse.evaluate.platform import local_platform
from dse.hardware.gpu import Gpu
from dse.power.power import PowerModel
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator

DESIGNS = 64
"""Designs that a program takes at once: enough to keep vectors full, and a search often asks for fewer."""

CANDIDATES, OPERATORS = 512, 32
"""Candidates and operators that a workload is filled up to: those of most that a space has."""

Launches = Callable[[TimingModel, PowerModel, Kernel, Gpu], steps.Launch]

launches_of_many_calls: Launches = shared_filter_jit(steps.launches)
settle_of_many_calls = shared_filter_jit(steps.settle_phase)
launches_of_few_calls: Launches = quick_filter_jit(steps.launches)
settle_of_few_calls = quick_filter_jit(steps.settle_launches)
times_of_designs = shared_filter_jit(steps.times)
activities_of_few_calls = quick_filter_jit(steps.activities)
watts_of_few_calls = quick_filter_jit(steps.unlimited_power)
_timings = quick_filter_jit(steps.timings)


@quick_filter_jit
def _times(model: TimingModel, kernels: Kernel, gpus: Gpu) -> Array:
    """The sums of the stacks [us], to which calibrations are fitted."""
    timing = steps.timings(model, kernels, gpus)
    return jnp.where(timing.feasible > 0, timing.microseconds, INFEASIBLE)


def times_of_rows(model: TimingModel, kernels: Kernel, gpus: Gpu, row: np.ndarray) -> np.ndarray:
    """Return the time [us] of candidates (candidates,) of measured rows, each on the GPU of its ``row`` among ``gpus``
    (rows,); INFEASIBLE where one cannot run."""
    anonymous = model.anonymous()

    def block(kernels: Kernel, row: np.ndarray) -> Array:
        return _times(anonymous, kernels, jax.tree.map(lambda x: np.asarray(x)[row], gpus))

    return np.asarray(in_blocks(block, local_platform().rows, kernels, row))


def fastest_of_rows(model: TimingModel, kernels: Kernel, gpus: Gpu, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the time [us] of each row's fastest candidate, and where it stands, (rows,)."""
    times = times_of_rows(model, kernels, gpus, row)
    places = fastest(times, np.flatnonzero(np.r_[True, row[1:] != row[:-1]]), 0.0)
    return times[places], places


def timings_of_rows(model: TimingModel, kernels: Kernel, gpus: Gpu) -> Timing:
    """Return the timing of kernels (rows,), each on a GPU of its own."""
    return _timings(model.anonymous(), kernels, gpus)


def timings_on(gpu: Gpu, kernels: Kernel, model: TimingModel) -> Timing:
    """Return the timing of kernels (kernels,) on one GPU, NumPy arrays; one program serves all GPUs."""
    kernels, gpu = jax.tree.map(lambda x: np.asarray(x, float), (kernels, gpu))
    model, folded = fold_corrections(model, kernels)
    timing = _timings(model.anonymous(), filled_up(folded), gpu)
    return jax.tree.map(lambda x: np.asarray(x)[: len(kernels.ctas)], timing)


def fastest_kernels(model: TimingModel, operators: Sequence[Operator], gpu: Gpu) -> tuple[Kernel, Timing]:
    """Return the fastest kernel of each operator on one GPU, and its timing: fields of shape (operators,).

    Where none of an operator's runs, its first stands there, infeasible.
    """
    kernels = Kernel.stack([candidate.kernel for operator in operators for candidate in operator.candidates])
    timing = timings_on(gpu, kernels, model)
    starts = np.cumsum([0, *(len(operator.candidates) for operator in operators[:-1])])
    return jax.tree.map(lambda x: np.asarray(x)[fastest_of(timing, starts, 0.0)], (kernels, timing))

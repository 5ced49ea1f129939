"""Which candidate runs on each design: times of all, the fastest of each operator, and what it costs.

The models are written for one kernel on one GPU. Here they are mapped over (designs, kernels) with ``jax.vmap``, which
computes a term of one side once for that side.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.hardware.gpu import Gpu
from dse.numerics import INFEASIBLE
from dse.power.activity import activity, traced_activity
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

LANES = 16
"""32-bit numbers in a vector of the widest CPUs."""


class Models(NamedTuple):
    """The models that judge a kernel on a GPU."""

    timing: TimingModel
    power: PowerChoice


def float_type() -> type:
    """Return the float type of a batch: 32 bits, unless JAX is set to 64."""
    return np.float64 if jax.config.jax_enable_x64 else np.float32  # pyright: ignore[reportAttributeAccessIssue]


def time_candidates(model: TimingModel, workload: Workload, gpus: Gpu, axes: Gpu, count: int) -> Array:
    """Return the time [ns] of every candidate on every design, (candidates, designs); INFEASIBLE where it cannot run.

    Only the total leaves the pair's program, so that it fuses to one loop: the stack is computed again for the few
    candidates that are chosen. Designs are minor, so that choosing runs along them in whole vectors.
    """
    kernels, kernel_axes = _varying(workload.kernels)

    def time(kernel: Kernel, gpu: Gpu) -> Array:
        timing = model(kernel, gpu)
        return jnp.where(timing.feasible > 0, timing.nanoseconds, INFEASIBLE)

    on_gpus = jax.vmap(time, in_axes=(None, axes), axis_size=count)
    return jax.vmap(on_gpus, in_axes=(kernel_axes, None), axis_size=workload.candidate_count)(kernels, gpus)


def choose(workload: Workload, nanoseconds: Array) -> tuple[Array, Array]:
    """Return the chosen candidate of every operator and whether one can run, arrays of shape (designs, operators).

    On each design the fastest candidate is chosen (the first of equals), as a tuned library would; candidates count
    through the workload. Two plain minima run several times faster than an ``argmin``.
    """
    chosen, runs = [], []
    for part in workload.slices:
        times, place = nanoseconds[part], jnp.arange(part.start, part.stop, dtype=float)[:, None]
        best = jnp.min(times, axis=0)
        chosen.append(jnp.min(jnp.where(times <= best, place, float(part.stop)), axis=0))
        runs.append(jnp.where(best < INFEASIBLE, 1.0, 0.0))
    return jnp.stack(chosen, axis=1).astype(jnp.int32), jnp.stack(runs, axis=1)


def judge_chosen(models: Models, workload: Workload, chosen: Array, gpus: Gpu, axes: Gpu) -> tuple[Timing, Power]:
    """Return timing and power, if nothing limits it, of the ``chosen`` candidates: arrays (designs, operators).

    ``chosen`` may repeat the last operator (:func:`in_whole_vectors`).
    """

    def judge(kernel: Kernel, gpu: Gpu) -> tuple[Timing, Power]:
        timing = models.timing(kernel, gpu)
        return timing, models.power.model.uncapped(activity(kernel, timing, gpu), gpu)

    kernels = jax.lax.optimization_barrier(_picked(workload, chosen))
    kernel_axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, kernels)
    design_axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) == 2 else None, kernels)
    on_kernels = jax.vmap(judge, in_axes=(kernel_axes, None), axis_size=chosen.shape[1])
    judged = jax.vmap(on_kernels, in_axes=(design_axes, axes), axis_size=chosen.shape[0])(kernels, gpus)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, chosen.shape), judged)


def _picked(workload: Workload, chosen: Array) -> Kernel:
    """Return the chosen kernels: fields of shape (designs, operators), or less where they do not depend on the choice.

    Gathering a field costs as much as ten terms of a model, so what the candidates of an operator share is not
    gathered, (operators,), nor what all kernels share, ().
    """
    starts = np.array([part.start for part in workload.slices])
    starts = np.pad(starts, (0, chosen.shape[1] - len(starts)), mode="edge")

    def pick(values: np.ndarray) -> Array:
        values = np.asarray(values, float_type())
        if np.all(values == values[0]):
            return jnp.asarray(values[0])
        if all(np.all(values[part] == values[part.start]) for part in workload.slices):
            return jnp.asarray(values[starts])
        return jnp.asarray(values).at[chosen].get(mode="promise_in_bounds")

    return jax.tree.map(pick, workload.kernels)


def in_whole_vectors(chosen: Array) -> Array:
    """Return the choice with its last operator repeated until their number is a multiple of LANES.

    Sums over the operators of a design then run in whole vectors; who adds up must give the repeated ones no weight.
    """
    return jnp.pad(chosen, ((0, 0), (0, -chosen.shape[1] % LANES)), mode="edge")


def judge_workload(models: Models, workload: Workload, gpus: Gpu, axes: Gpu, count: int) -> tuple[Timing, Power, Array]:
    """Return timing, power and whether it runs of every operator, arrays of shape (designs, operators).

    Timing and power of generated kernels repeat the last operator to whole vectors (:func:`in_whole_vectors`).
    """
    if not workload.traced:
        chosen, can_run = choose(workload, time_candidates(models.timing, workload, gpus, axes, count))
        return *judge_chosen(models, workload, in_whole_vectors(chosen), gpus, axes), can_run
    judged = []
    for trace in workload.traces:  # the model batches traces itself
        timing = models.timing.on_trace(trace, gpus)
        judged.append((timing, models.power.model.uncapped(traced_activity(trace, timing, gpus), gpus)))
    timing, power = jax.tree.map(lambda *t: jnp.stack([jnp.broadcast_to(x, (count,)) for x in t], axis=1), *judged)
    return timing, power, timing.feasible


def _varying(kernels: Kernel) -> tuple[Kernel, Kernel]:
    """Return the kernels with fields that all of them share as one number, and the ``in_axes`` of the fields.

    What is shared (often 0) folds into the program as a constant.
    """
    shared = jax.tree.map(lambda x: bool(np.all(x == x[0])), kernels)
    values = jax.tree.map(lambda x, same: np.asarray(x[0] if same else x, float_type()), kernels, shared)
    return values, jax.tree.map(lambda same: None if same else 0, shared)

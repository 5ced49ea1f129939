"""Derivatives of a workload's results along the attributes of a GPU, by forward-mode autodiff.

In two programs, both compiled once for all workloads of generated kernels: along every attribute, what each launch
takes and draws; and from these, what their phase takes and draws where the board settles.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.base.compilation import quick_derivatives_jit
from dse.evaluate import steps
from dse.hardware.gpu import Gpu
from dse.hardware.schema import gpu_schema
from dse.power.power import Power, PowerModel
from dse.power.sequence import LaunchSequence
from dse.space.metrics import PHASE_OF
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

T = TypeVar("T")

NUMERIC = tuple(name for name, attr in gpu_schema().items() if attr.type in ("int", "float"))
"""Attributes along which autodiff can step."""

DIFFERENTIATED = (*PHASE_OF, "time_ms", "energy_j")
"""Metrics that have elasticities."""


class Elasticities(NamedTuple):
    """d ln(result) / d ln(attribute): of each metric (attributes,), of launches' time and energy (attributes, ops)."""

    metrics: dict[str, np.ndarray]
    microseconds: np.ndarray
    joules: np.ndarray


Launches = tuple[Timing, Power]
"""Launches (launches,), or their derivatives along the logarithm of each of NUMERIC, (attributes, launches)."""

PhaseTimes = tuple[LaunchSequence, Array, Array]
"""A phase, each launch's time [ns] where the board settles, and its energy if nothing limited it [nJ]; or the
derivatives of each along NUMERIC, with an axis more in front."""


def along(function: Callable[[Gpu], T], gpu: Gpu) -> tuple[T, T]:
    """Return ``function`` at a GPU and along every attribute (the program before jit)."""

    def one(step: Array) -> tuple[T, T]:
        return jax.jvp(lambda steps: function(_stepped(gpu, steps)), (jnp.zeros(len(NUMERIC)),), (step,))

    # In a loop and not all at once: that program takes three times as long to compile.
    return _first(*lax.map(one, jnp.eye(len(NUMERIC))))


def _first(values: T, slopes: T) -> tuple[T, T]:
    """The values, alike along all attributes, once, and the slopes."""
    return jax.tree.map(lambda x: x[0], values), slopes


def _stepped(gpu: Gpu, steps: Array) -> Gpu:
    """The GPU with every attribute of NUMERIC a step further on a logarithmic scale."""
    return gpu.with_attributes({n: gpu.attribute(n) * jnp.exp(steps[k]) for k, n in enumerate(NUMERIC)})


@quick_derivatives_jit
def launches_along(model: TimingModel, power: PowerModel, kernels: Kernel, gpu: Gpu) -> tuple[Launches, Launches]:
    """Return generated kernels (launches,) at a GPU and along every attribute."""
    return along(partial(steps.launches, model, power, kernels), gpu)


@quick_derivatives_jit
def phase_along(
    power: PowerModel, limit: bool, launches: Launches, slopes: Launches, run: steps.PhaseRun, gpu: Gpu
) -> tuple[PhaseTimes, PhaseTimes]:
    """Return a phase of launches at a GPU and along every attribute."""

    def phase(timing: Timing, watts: Power, step: Array) -> PhaseTimes:
        settled, each = steps.settle_launches(power, limit, timing, watts, run, _stepped(gpu, step))
        return settled, each.nanoseconds, watts.watts * timing.nanoseconds

    def one(tangents: tuple[Launches, Array]) -> tuple[PhaseTimes, PhaseTimes]:
        (timing, watts), step = tangents
        return jax.jvp(phase, (*launches, jnp.zeros(len(NUMERIC))), (timing, watts, step))

    return _first(*lax.map(one, (slopes, jnp.eye(len(NUMERIC)))))


def elasticities(workload: Workload, phases: Mapping[str, tuple[PhaseTimes, PhaseTimes]]) -> Elasticities:
    """Return the elasticities of a workload from its phases with their derivatives, by name; attributes as NUMERIC."""
    each: list[tuple[Any, Any]] = [phases[operator.phase] for operator in workload.operators]
    of_launches = (
        np.stack([slopes[part][:, k] / values[part][k] for k, (values, slopes) in enumerate(each)], axis=1)
        for part in (1, 2)
    )

    def metrics(phases: Mapping[str, LaunchSequence]) -> dict[str, Any]:
        return {n: x for n, x in steps.phase_metrics(workload, phases).items() if n in DIFFERENTIATED}

    slopes = {name: slopes[0] for name, (_, slopes) in phases.items()}
    here = {name: values[0] for name, (values, _) in phases.items()}
    here = jax.tree.map(lambda x, slope: jnp.broadcast_to(x, slope.shape), here, slopes)
    values, slopes = jax.jvp(metrics, (here,), (slopes,))
    return Elasticities({name: np.asarray(slopes[name] / values[name]) for name in values}, *of_launches)


def with_slopes(function: Callable[[Array], Array], places: Array) -> tuple[Array, Array]:
    """Return ``function`` (designs, results) of ``places`` (designs, axes), and slopes (designs, results, axes).

    No design's results may depend on another's place: all designs are moved along one axis at a time.
    """
    values, linear = jax.linearize(function, places)
    # In a loop and not all at once: that program takes half as long again to compile, and three times to run.
    axes = jnp.eye(places.shape[1], dtype=places.dtype)
    slopes = lax.map(lambda axis: linear(jnp.broadcast_to(axis, places.shape)), axes)
    return values, jnp.moveaxis(slopes, 0, 2)

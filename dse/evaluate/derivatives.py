"""Derivatives of a workload's results along the attributes of a GPU, by forward-mode autodiff.

In two programs, both compiled once for all workloads of generated kernels: along every attribute, what each launch
takes and draws; and from these, what their phase takes and draws where the board settles.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import quick_derivatives_jit
from dse.evaluate.launches import Launches, on_kernels, settled
from dse.evaluate.phases import Chores
from dse.hardware.gpu import Gpu
from dse.hardware.schema import gpu_schema
from dse.power.board import BoardPower
from dse.power.power import Power
from dse.space.metrics import PHASE_OF, energy_metrics, time_metrics
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

NUMERIC = tuple(name for name, attr in gpu_schema().items() if attr.type in ("int", "float"))
"""Attributes that autodiff can move."""

DIFFERENTIATED = (*PHASE_OF, "time_ms", "energy_j")
"""Metrics whose elasticities are told."""


class Elasticities(NamedTuple):
    """d ln(result) / d ln(attribute): of each metric (attributes,), of launches' time and energy (attributes, ops)."""

    metrics: dict[str, np.ndarray]
    microseconds: np.ndarray
    joules: np.ndarray


class Along(NamedTuple):
    """Launches at a GPU (launches,), and their derivatives along the logarithm of each of NUMERIC (attributes, ...)."""

    here: Launches
    slopes: Launches


class PhaseSlopes(NamedTuple):
    """A phase's time [ns] and energy [J], each launch's time [ns] where the board settles, and its energy if nothing
    limited it [nJ]; or the derivatives of each along NUMERIC, with an axis more in front."""

    nanoseconds: Array
    joules: Array
    launch_ns: Array
    launch_nj: Array


def along(function: Callable[[Gpu], Launches], gpu: Gpu) -> Along:
    """Return ``function`` at a GPU and along every attribute (the program before jit)."""

    def one(step: Array) -> tuple[Launches, Launches]:
        return jax.jvp(lambda steps: function(_moved(gpu, steps)), (jnp.zeros(len(NUMERIC)),), (step,))

    # In a loop and not all at once: that program takes three times as long to compile.
    here, slopes = jax.lax.map(one, jnp.eye(len(NUMERIC)))
    return Along(jax.tree.map(lambda x: x[0], here), slopes)


def _moved(gpu: Gpu, steps: Array) -> Gpu:
    """The GPU with every attribute of NUMERIC a step further on a logarithmic scale."""
    return gpu.with_attributes({n: gpu.attribute(n) * jnp.exp(steps[k]) for k, n in enumerate(NUMERIC)})


@quick_derivatives_jit
def along_kernels(model: TimingModel, power: BoardPower, kernels: Kernel, gpu: Gpu) -> Along:
    """Return generated kernels at a GPU and along every attribute."""
    return along(partial(on_kernels, model, power, kernels), gpu)


@quick_derivatives_jit
def phase_slopes(
    power: BoardPower, limit: bool, launches: Along, run: Chores, gpu: Gpu
) -> tuple[PhaseSlopes, PhaseSlopes]:
    """Return a phase and its derivatives."""

    def results(timing: Timing, watts: Power, steps: Array) -> PhaseSlopes:
        found = settled(power, limit, timing, watts, run, _moved(gpu, steps))
        phase, each = found.sequence, watts.watts * timing.nanoseconds
        return PhaseSlopes(phase.nanoseconds, phase.joules, found.timing.nanoseconds, each)

    def one(moved: tuple[Launches, Array]) -> tuple[PhaseSlopes, PhaseSlopes]:
        slopes, step = moved
        at = (launches.here.timing, launches.here.power, jnp.zeros(len(NUMERIC)))
        return jax.jvp(results, at, (slopes.timing, slopes.power, step))

    here, slopes = jax.lax.map(one, (launches.slopes, jnp.eye(len(NUMERIC))))
    return jax.tree.map(lambda x: x[0], here), slopes


def elasticities(workload: Workload, phases: Mapping[str, tuple[PhaseSlopes, PhaseSlopes]]) -> Elasticities:
    """Return the elasticities of a workload from its phases with their derivatives, by name; attributes as NUMERIC."""
    launches = [phases[operator.phase] for operator in workload.operators]
    each = [
        (s.launch_ns[:, k] / h.launch_ns[k], s.launch_nj[:, k] / h.launch_nj[k]) for k, (h, s) in enumerate(launches)
    ]
    microseconds, joules = (np.stack(values, axis=1) for values in zip(*each, strict=True))

    def metrics(times: Mapping[str, Any], energy: Mapping[str, Any]) -> dict[str, Any]:
        found = time_metrics(workload, times)
        found |= energy_metrics(workload, times, {name: (value, 1.0) for name, value in energy.items()})
        return {name: found[name] for name in DIFFERENTIATED if name in found}

    def wide(name: str) -> tuple[Any, Any]:
        here = {p: jnp.broadcast_to(getattr(h, name), (len(NUMERIC),)) for p, (h, _) in phases.items()}
        return here, {p: getattr(s, name) for p, (_, s) in phases.items()}

    here, slopes = zip(wide("nanoseconds"), wide("joules"), strict=True)
    values, moved = jax.jvp(metrics, here, slopes)
    return Elasticities({name: np.asarray(moved[name] / values[name]) for name in values}, microseconds, joules)

"""A GPU and its neighbours on one workload: each re-evaluated with the kernels that suit it, and the derivatives.

Evaluation is that of a sweep (:mod:`dse.sweep.evaluate`), without fast-math.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.compiling import derivatives_quick_to_compile, quick_to_compile
from dse.hardware.gpu import Gpu
from dse.hardware.schema import gpu_schema, overfull
from dse.power.cap import NO_LOWER, at_clock, at_paces, shadow_between
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.space.metrics import PHASE_OF, energy_metrics, time_metrics
from dse.sweep.candidates import Models, choose, float_type, judge_chosen, judge_workload, time_candidates
from dse.sweep.evaluate import gpu_batch, phase_result
from dse.timing.occupancy import waves
from dse.timing.timing import CAUSES, HOST, Timing, TimingModel
from dse.units import GIGA, KILO, NANO
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

BATCH = 64
"""Designs are evaluated in multiples of this, so that one program does for two GPUs."""

NUMERIC = tuple(name for name, attr in gpu_schema().items() if attr.type in ("int", "float"))
"""Attributes that autodiff can move."""

Columns = Mapping[str, Any]
"""Attribute -> numbers of shape (designs,)."""


class Judged(NamedTuple):
    """A workload on designs, arrays of shape (designs,) in ``metrics`` and ``clock``, else (designs, operators).

    ``metrics`` by name, each in its unit; ``clock``: lowest share of the requested clock that the power limit leaves;
    ``microseconds`` [us] and ``stack`` [us] by cause of one launch at the clock of its phase; ``joules`` [J] of one
    launch if nothing limited it; ``dram_bytes`` [B]; ``chosen``: the candidate, counted through the workload; ``ctas``
    of the busiest SM and ``waves`` they run in; ``runs``: 1 where a candidate can run. ``waits`` [us] of a phase's GPU
    for a serving engine's host, by phase, where it does.
    """

    metrics: dict[str, Array]
    clock: Array
    microseconds: Array
    stack: dict[str, Array]
    joules: Array
    dram_bytes: Array
    chosen: Array
    ctas: Array
    waves: Array
    runs: Array
    waits: dict[str, Array]

    def bound_by(self, design: int, operator: int) -> str:
        """Return the cause that costs most."""
        return max(CAUSES, key=lambda cause: float(self.stack[cause][design, operator]))


class Elasticities(NamedTuple):
    """d ln(result) / d ln(attribute): of each metric (attributes,), of launches' time and energy (attributes, ops)."""

    metrics: dict[str, np.ndarray]
    microseconds: np.ndarray
    joules: np.ndarray


class Neighbourhood:
    """A workload and the models: evaluates GPUs, and differentiates at one. GPUs are mappings attribute -> number.

    Both programs are compiled once: nothing of a GPU is a constant in them.
    """

    def __init__(self, workload: Workload, model: TimingModel, power: PowerChoice) -> None:
        self.workload = workload
        self._models = Models(model, power)
        self._evaluate = jax.jit(self._judged, compiler_options=quick_to_compile())
        self._differentiate = jax.jit(self._slopes, compiler_options=derivatives_quick_to_compile())

    def evaluate(self, gpus: Sequence[Mapping[str, float]]) -> Judged:
        """Return ``gpus`` with the kernels that are fastest on each, NumPy arrays."""
        padded = [*gpus, *[gpus[-1]] * (-len(gpus) % BATCH)]
        columns = {name: np.array([gpu[name] for gpu in padded], float_type()) for name in padded[0]}
        return jax.tree.map(lambda x: np.asarray(x)[: len(gpus)], self._evaluate(columns))

    def elasticities(self, gpu: Mapping[str, float], names: Sequence[str], chosen: np.ndarray) -> Elasticities:
        """Return the derivatives at ``gpu`` for the attributes ``names``, by forward-mode autodiff.

        Of the candidates ``chosen`` (operators,): where the fastest is chosen, its derivative is that of the choice
        (envelope theorem). A whole number counts as a continuous one.
        """
        numbers = {name: np.asarray(value, float_type()) for name, value in gpu.items()}
        place = [NUMERIC.index(name) for name in names]
        slopes = jax.tree.map(lambda x: np.asarray(x, float)[place], self._differentiate(numbers, chosen))
        return Elasticities(*slopes)

    def _slopes(self, numbers: Columns, chosen: Array) -> tuple[dict[str, Array], Array, Array]:
        """Return the elasticities for NUMERIC, one attribute after another: arrays (attributes, ...)."""

        def logarithms(steps: Array) -> tuple[dict[str, Array], Array, Array]:
            moved = {name: numbers[name] * jnp.exp(steps[k]) for k, name in enumerate(NUMERIC)}
            columns = {name: (moved.get(name, value))[None] for name, value in numbers.items()}
            judged = self._judged(columns, chosen[None])
            metrics = {name: jnp.log(value[0]) for name, value in judged.metrics.items() if name in DIFFERENTIATED}
            return metrics, jnp.log(judged.microseconds[0]), jnp.log(judged.joules[0])

        here = jnp.zeros(len(NUMERIC))
        # In a loop and not all at once: that program takes three times as long to compile.
        return jax.lax.map(lambda tangent: jax.jvp(logarithms, (here,), (tangent,))[1], jnp.eye(len(NUMERIC)))

    def _judged(self, columns: Columns, chosen: Array | None = None) -> Judged:
        """Evaluate designs with the candidates ``chosen`` (designs, operators), by default the fastest on each."""
        workload = self.workload
        gpus, axes = gpu_batch({}, columns)
        count = len(next(iter(columns.values())))
        if workload.traced:
            timing, power, runs = judge_workload(self._models, workload, gpus, axes, count)
            chosen = jnp.broadcast_to(jnp.arange(len(workload.operators)), runs.shape)
        else:
            if chosen is None:
                chosen, runs = choose(workload, time_candidates(self._models.timing, workload, gpus, axes, count))
            else:
                runs = jnp.ones(chosen.shape)
            timing, power = judge_chosen(self._models, workload, chosen, gpus, axes)
        return self._composed(timing, power, chosen, runs, gpus, axes)

    def _composed(self, timing: Timing, power: Power, chosen: Array, runs: Array, gpus: Gpu, axes: Gpu) -> Judged:
        workload = self.workload
        phases = {
            p.name: phase_result(self._models.power, workload, p.name, timing, power, gpus) for p in workload.phases
        }
        times = {name: phase.time_ms for name, phase in phases.items()}
        energy = {name: (phase.joules, phase.clock) for name, phase in phases.items()}
        metrics = time_metrics(workload, times) | energy_metrics(workload, times, energy)
        clock = jnp.stack([phases[o.phase].clock for o in workload.operators], axis=1)
        held = at_clock(timing, clock, shadow_between(at_paces(timing)))  # each launch at the clock of its phase
        stack = {cause: cycles / held.clock_ghz / KILO for cause, cycles in held.stack().items()}
        ctas, count = self._waves(chosen, gpus, axes)
        total = sum(stack.values(), jnp.zeros_like(clock))
        joules = power.watts * timing.nanoseconds * NANO
        waits = {name: KILO * phase.stack[HOST] for name, phase in phases.items() if HOST in phase.stack}
        return Judged(
            metrics, metrics["clock_share"], total, stack, joules, timing.dram_bytes, chosen, ctas, count, runs, waits
        )

    def _waves(self, chosen: Array, gpus: Gpu, axes: Gpu) -> tuple[Array, Array]:
        """CTAs of the busiest SM and the waves they run in, arrays (designs, operators)."""
        workload = self.workload
        if workload.traced:
            found = [waves(trace, gpus) for trace in workload.traces]
            grid = jax.tree.map(lambda *x: jnp.stack([jnp.broadcast_to(v, len(chosen)) for v in x], axis=1), *found)
        else:
            kernels = jax.tree.map(lambda x: jnp.asarray(x, float)[chosen], workload.kernels)

            def on_gpu(kernel: Kernel, gpu: Gpu) -> Any:
                return jax.vmap(waves, in_axes=(0, None))(kernel, gpu)

            grid = jax.vmap(on_gpu, in_axes=(0, axes))(kernels, gpus)
        return grid.full * grid.resident + grid.rest, grid.full + jnp.where(grid.rest > 0, 1.0, 0.0)


def why_refused(workload: Workload, gpu: Mapping[str, float], judged: Judged, design: int) -> str:
    """Return why ``dse run`` refuses a judged design, ``gpu`` by its attributes; "" where it does not."""
    lacking = [o.name for o, runs in zip(workload.operators, judged.runs[design], strict=True) if not runs > 0]
    if lacking:
        return f"the changed GPU has no kernel for {lacking[0]} that runs"
    if overfull(gpu):
        return "its shared memory would be more than the L1 that holds it"
    if workload.memory.total > gpu["dram_gb"] * GIGA:
        return f"the workload needs {workload.memory.total / GIGA:.1f} GB"
    if judged.clock[design] <= NO_LOWER:
        return "at its lowest clock the board would draw more than its limit"
    return ""


DIFFERENTIATED = (*PHASE_OF, "time_ms", "energy_j")
"""Metrics whose elasticities are told."""


def told_metrics(workload: Workload) -> list[str]:
    """Return the metrics that an explanation tells: times of phases, of all where that is another one, and energy."""
    phases = {phase.name for phase in workload.phases}
    told = [metric for metric, phase in PHASE_OF.items() if phase in phases]
    return [*told, *([] if told and len(phases) == 1 else ["time_ms"]), "energy_j"]

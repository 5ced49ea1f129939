"""A GPU and its neighbours on one workload: each re-evaluated with the kernels that suit it, and the derivatives.

Evaluation is that of :func:`dse.evaluate.run.run`, by its programs.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import derivatives_quick_to_compile, filled_up, quick_to_compile, threads
from dse.base.units import GIGA, KILO, MEGA, NANO
from dse.evaluate.candidates import float_type, told
from dse.evaluate.derivatives import NUMERIC, Elasticities, along, along_kernels, elasticities, phase_slopes
from dse.evaluate.launches import OPERATORS, Launches, on_designs, on_trace, settled_on_designs
from dse.evaluate.phases import chores
from dse.evaluate.shared_programs import DESIGNS, Fastest, chosen_kernels
from dse.hardware.gpu import Gpu
from dse.hardware.schema import overfull
from dse.power.cap import NO_LOWER
from dse.power.models import PowerChoice
from dse.space.metrics import PHASE_OF, energy_metrics, time_metrics
from dse.timing.timing import CAUSES, HOST, TimingModel
from dse.workload.workload import Workload

T = TypeVar("T")


class Judged(NamedTuple):
    """A workload on designs, arrays of shape (designs,) in ``metrics`` and ``clock``, else (designs, operators).

    ``metrics`` by name, each in its unit; ``clock``: lowest share of the requested clock that the power limit leaves;
    ``microseconds`` [us] and ``stack`` [us] by cause of one launch at the clock of its phase; ``joules`` [J] of one
    launch if nothing limited it; ``dram_bytes`` [B]; ``chosen``: the candidate, counted through the workload; ``ctas``
    of the busiest SM and ``waves`` they run in; ``runs``: 1 where a candidate can run. By phase, (designs,): ``waits``
    [us] of its GPU for a serving engine's host, where it does, and mean ``watts`` [W] by component.
    """

    metrics: dict[str, Any]
    clock: Any
    microseconds: Array
    stack: dict[str, Array]
    joules: Array
    dram_bytes: Array
    chosen: np.ndarray
    ctas: Array
    waves: Array
    runs: Array
    waits: dict[str, Array]
    watts: dict[str, dict[str, Array]]

    def bound_by(self, design: int, operator: int) -> str:
        """Return the cause that costs most."""
        return max(CAUSES, key=lambda cause: float(self.stack[cause][design, operator]))


class Neighbourhood:
    """A workload and the models: evaluates GPUs, and differentiates at one. GPUs are mappings attribute -> number.

    The programs of generated kernels are compiled once for all workloads, those of traces for each.
    """

    def __init__(self, workload: Workload, model: TimingModel, power: PowerChoice) -> None:
        self._model, self.workload = told(model, workload)
        self._power = power
        self._fastest = None if workload.recorded else Fastest(self._model, self.workload)
        self._on_traces = jax.jit(self._traced, compiler_options=quick_to_compile())
        self._along_traces = jax.jit(partial(along, self._traced), compiler_options=derivatives_quick_to_compile())

    def prepare(self, gpu: Mapping[str, float]) -> None:
        """Compile what :meth:`evaluate` and :meth:`elasticities` need, side by side."""
        with threads(2) as pool:
            parts = [
                pool.submit(self.evaluate, [gpu]),
                pool.submit(self.elasticities, gpu, NUMERIC[:1], self.workload.starts),
            ]
            for part in parts:
                part.result()

    def evaluate(self, gpus: Sequence[Mapping[str, float]]) -> Judged:
        """Return ``gpus`` with the kernels that are fastest on each, NumPy arrays."""
        batches = [gpus[start : start + DESIGNS] for start in range(0, len(gpus), DESIGNS)]
        return jax.tree.map(lambda *x: np.concatenate(x), *(self._batch(batch) for batch in batches))

    def _batch(self, gpus: Sequence[Mapping[str, float]]) -> Judged:
        """Return at most DESIGNS, the last one repeated until there are so many: one program does for all numbers."""
        filled = [*gpus, *[gpus[-1]] * (-len(gpus) % DESIGNS)]
        record = _record({name: np.array([gpu[name] for gpu in filled]) for name in filled[0]})
        judged = self._judged(record, *self._launches(record))
        return jax.tree.map(lambda x: x[: len(gpus)], judged)

    def _launches(self, gpus: Gpu) -> tuple[np.ndarray, Launches]:
        """Return the candidates that are fastest on each GPU, and what they do there, filled up."""
        if self._fastest is None:
            every = np.arange(len(self.workload.operators))
            return np.broadcast_to(every, (DESIGNS, len(every))), self._on_traces(gpus)
        chosen, _ = self._fastest(gpus)
        kernels = chosen_kernels(self.workload, chosen)
        return chosen, on_designs(self._model.anonymous(), self._power.model, kernels, gpus)

    def _traced(self, gpus: Gpu) -> Launches:
        """Return every trace on one GPU or a batch: arrays (traces,) or (designs, traces)."""
        shape = jnp.shape(gpus.sm_count)
        found = [on_trace(self._model, self._power.model, trace, gpus) for trace in self.workload.recorded]
        return jax.tree.map(lambda *x: jnp.stack([jnp.broadcast_to(v, shape) for v in x], axis=-1), *found)

    def _judged(self, gpus: Gpu, chosen: np.ndarray, launches: Launches) -> Judged:
        """Return the designs where their boards settle; ``launches`` may have more operators than the workload."""
        workload, power, filled = self.workload, self._power, launches.ctas.shape[1]
        phases = {
            p.name: _arrays(
                settled_on_designs(
                    power.model, power.limit, launches.timing, launches.power, chores(workload, p.name, filled), gpus
                )
            )
            for p in workload.phases
        }
        runs = {name: phase.sequence for name, phase in phases.items()}
        times = {name: run.nanoseconds.astype(float) / MEGA for name, run in runs.items()}
        energy = {name: (run.joules.astype(float), run.clock.astype(float)) for name, run in runs.items()}
        metrics = time_metrics(workload, times) | energy_metrics(workload, times, energy)
        held = [jax.tree.map(lambda x, k=k: x[:, k], phases[o.phase].timing) for k, o in enumerate(workload.operators)]
        timing = jax.tree.map(lambda *x: np.stack(x, axis=1), *held)
        launches = jax.tree.map(lambda x: x[:, : len(held)], _arrays(launches))
        return Judged(
            metrics=metrics,
            clock=metrics["clock_share"],
            microseconds=timing.microseconds,
            stack={cause: cycles / timing.clock_ghz / KILO for cause, cycles in timing.stack().items()},
            joules=launches.power.watts * launches.timing.nanoseconds * NANO,
            dram_bytes=launches.timing.dram_bytes,
            chosen=chosen,
            ctas=launches.ctas,
            waves=launches.waves,
            runs=launches.timing.feasible,
            waits={name: run.stack[HOST] / KILO for name, run in runs.items() if HOST in run.stack},
            watts={name: run.power.breakdown() for name, run in runs.items()},
        )

    def elasticities(self, gpu: Mapping[str, float], names: Sequence[str], chosen: np.ndarray) -> Elasticities:
        """Return the derivatives at ``gpu`` for the attributes ``names``.

        Of the candidates ``chosen`` (operators,): where the fastest is chosen, its derivative is that of the choice
        (envelope theorem). A whole number counts as a continuous one.
        """
        workload, power, record = self.workload, self._power, _record(gpu)
        if workload.recorded:
            launches = self._along_traces(record)
        else:
            kernels = filled_up(jax.tree.map(lambda x: np.asarray(x)[chosen], workload.kernels), OPERATORS)
            launches = along_kernels(self._model.anonymous(), power.model, kernels, record)
        count = len(launches.here.ctas)
        phases = {
            p.name: phase_slopes(power.model, power.limit, launches, chores(workload, p.name, count), record)
            for p in workload.phases
        }
        place = [NUMERIC.index(name) for name in names]
        return jax.tree.map(lambda x: np.asarray(x, float)[place], elasticities(workload, phases))


def _arrays(found: T) -> T:
    return jax.tree.map(np.asarray, found)


def _record(numbers: Mapping[str, Any]) -> Gpu:
    """The record of one GPU or of a batch, in NumPy: converted where a program is called, not one by one before."""
    return Gpu.from_attributes({name: np.asarray(value, float_type()) for name, value in numbers.items()})


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


def told_metrics(workload: Workload) -> list[str]:
    """Return the metrics that an explanation tells: times of phases, of all where that is another one, and energy."""
    phases = {phase.name for phase in workload.phases}
    told = [metric for metric, phase in PHASE_OF.items() if phase in phases]
    return [*told, *([] if told and len(phases) == 1 else ["time_ms"]), "energy_j"]

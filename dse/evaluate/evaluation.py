"""An evaluation: a workload on designs, from the times of its candidates to power, settled clock and metrics.

Three executors run it: a space's own program (:mod:`dse.evaluate.space_program`), programs that workloads share
(:mod:`dse.evaluate.shared_programs`), and derivatives (:mod:`dse.evaluate.derivatives`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar

import jax
import numpy as np
from jax import Array

from dse.base.compilation import filled_up, threads
from dse.base.units import KILO, NANO
from dse.evaluate import steps
from dse.evaluate.batching import float_type, in_blocks, with_kernel_axis
from dse.evaluate.candidates import Candidates, Tabulated
from dse.evaluate.derivatives import NUMERIC, Elasticities, elasticities, phase_along
from dse.evaluate.platform import Platform
from dse.evaluate.shared_programs import (
    DESIGNS,
    OPERATORS,
    Launches,
    launches_of_few_calls,
    launches_of_many_calls,
    settle_of_few_calls,
    settle_of_many_calls,
    watts_of_few_calls,
)
from dse.hardware.gpu import Gpu
from dse.power.activity import Activity
from dse.power.board import BoardPower
from dse.power.models import PowerChoice
from dse.power.power import Power, PowerModel
from dse.power.sequence import LaunchSequence, SequenceTotals
from dse.timing.occupancy import Waves, waves
from dse.timing.timing import CAUSES, HOST, Timing, TimingModel
from dse.workload.workload import Workload

T = TypeVar("T")


@dataclass(frozen=True)
class WorkloadResult:
    """A workload on designs: NumPy arrays (designs,) in ``phases``, by name, else (designs, operators).

    ``phases``: each where its board settles. ``chosen``: the candidate that runs, counted through the workload.
    ``timing`` and ``power`` of one launch at the clock that is asked for, if nothing limits it; ``settled``: its timing
    at the clock that its phase is left.
    """

    workload: Workload
    phases: dict[str, LaunchSequence]
    chosen: np.ndarray
    timing: Timing
    power: Power
    settled: Timing
    gpus: Gpu

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The workload's metrics by name, each in its unit, (designs,)."""
        return steps.phase_metrics(self.workload, self.phases)

    @cached_property
    def clock(self) -> Any:
        """Lowest share of the requested clock that the power limit leaves a phase, (designs,)."""
        return self.metrics["clock_share"]

    @cached_property
    def microseconds(self) -> Array:
        """Time of one launch at the clock of its phase [us]."""
        return self.settled.microseconds

    @cached_property
    def joules(self) -> Array:
        """Energy of one launch if nothing limited it [J]."""
        return self.power.watts * self.timing.nanoseconds * NANO

    def stack(self, design: int, operator: int) -> dict[str, float]:
        """Return the time of one launch at the clock of its phase by cause [us]."""
        clock = float(self.settled.clock_ghz[design, operator])
        return {c: float(cycles[design, operator]) / clock / KILO for c, cycles in self.settled.stack().items()}

    def bound_by(self, design: int, operator: int) -> str:
        """Return the cause that costs a launch most."""
        stack = self.stack(design, operator)
        return max(CAUSES, key=lambda cause: stack[cause])

    def waves(self, design: int, operator: int) -> Waves:
        """Return the waves that a launch runs in."""
        kernel = self.workload.candidate(operator, int(self.chosen[design, operator])).kernel
        return waves(kernel, jax.tree.map(lambda x: x[design], self.gpus))

    def waits(self, phase: str, design: int) -> float:
        """Return how long the GPU waits for a serving engine's host in a phase [ns]; 0 where there is no host."""
        stack = self.phases[phase].stack
        return float(stack[HOST][design]) if HOST in stack else 0.0


class Evaluation(ABC):
    """A workload with the models that evaluate it."""

    shares_programs: ClassVar[bool]
    """Whether other workloads are evaluated by the same programs."""

    def __init__(self, workload: Workload, model: TimingModel, power: PowerChoice) -> None:
        self.workload, self.model, self.power = workload, model, power
        self._runs = cache(self._phase_runs)

    @staticmethod
    @abstractmethod
    def block(platform: Platform) -> int:
        """Return how many designs a space's own program evaluates together."""

    def candidates(self, gpus: Gpu) -> Candidates | None:
        """Return the candidates on designs of which those attributes vary that are arrays in ``gpus``; None where there
        is nothing to choose."""
        return None

    @abstractmethod
    def _launches_in_program(
        self, gpus: Gpu, count: int, simplified: bool, tabulated: Tabulated | None = None
    ) -> tuple[Timing, Power, Array]:
        """Return the fastest kernels on ``count`` designs, (designs, operators) or more, inside a program, and 1 where
        an operator has one that runs, (designs, operators). ``tabulated``: see :meth:`in_program`."""

    @abstractmethod
    def _launches_on_designs(self, gpus: Gpu, launches: Launches) -> tuple[np.ndarray, steps.Launch]:
        """Return the fastest kernels on DESIGNS designs, and what they do there, filled up to OPERATORS or more."""

    @abstractmethod
    def _launches_on_gpu(self, gpu: Gpu) -> tuple[np.ndarray, steps.Launch]:
        """Return the same on one GPU, (operators,)."""

    @abstractmethod
    def _launches_along(self, gpu: Gpu, chosen: np.ndarray) -> tuple[tuple[Timing, Power], tuple[Timing, Power]]:
        """Return timing and power of the ``chosen`` candidates on one GPU, and their derivatives along NUMERIC."""

    @abstractmethod
    def _activities(self, chosen: np.ndarray, timing: Timing, gpus: Gpu) -> Activity:
        """Return what the ``chosen`` candidates make DESIGNS designs do; all (designs, operators), filled up."""

    def shapes(self, count: int) -> tuple[dict[str, SequenceTotals], Any]:
        """Return what :meth:`in_program` does, arrays by their shape and type."""
        one: Any = jax.ShapeDtypeStruct((count,), float_type())
        operators = len(self.workload.operators)

        def phase(run: steps.PhaseRun) -> SequenceTotals:
            stack: dict[str, Any] = dict.fromkeys(CAUSES if run[1] is None else (*CAUSES, HOST), one)
            return SequenceTotals(stack, one, one, one, one)

        runs = self._runs(operators).items()
        return {name: phase(run) for name, run in runs}, jax.ShapeDtypeStruct((count, operators), float_type())

    def in_program(
        self, gpus: Gpu, count: int, *, simplified: bool, tabulated: Tabulated | None = None, needed: Any = None
    ) -> tuple[dict[str, SequenceTotals], Array]:
        """Return the phases on ``count`` designs, and 1 where an operator has a kernel that runs, (designs, operators).

        Inside a program. ``simplified``: its results may differ by rounding
        (:mod:`dse.evaluate.partial_evaluation`); derivatives pass through the other. ``tabulated``: the
        candidates with their tables, where designs come in groups. ``needed``: which arrays of the phases are, all by
        default; others may be 0.
        """
        timing, power, can_run = self._launches_in_program(gpus, count, simplified, tabulated)
        phases = self._phases(steps.settle_phase, timing, power, gpus)
        return {name: phase.totals for name, phase in phases.items()}, can_run

    def by_shared_programs(self, gpus: Gpu) -> tuple[dict[str, SequenceTotals], np.ndarray]:
        """Return the same of DESIGNS designs, by shared programs."""
        _, (timing, power) = self._launches_on_designs(gpus, launches_of_many_calls)
        phases = self._phases(settle_of_many_calls, timing, power, gpus)
        return {name: phase.totals for name, phase in phases.items()}, np.asarray(timing.feasible)[
            :, : len(self.workload.operators)
        ]

    def on_designs(self, gpus: Sequence[Mapping[str, float]]) -> WorkloadResult:
        """Return what the workload does on designs, mappings attribute -> number, by shared programs."""
        return self.on_columns({name: np.array([gpu[name] for gpu in gpus]) for name in gpus[0]})

    def on_columns(self, gpus: Mapping[str, np.ndarray]) -> WorkloadResult:
        """Return the same of designs given by columns, attribute -> numbers (designs,)."""
        return WorkloadResult(self.workload, *in_blocks(self._on_block, DESIGNS, gpu_record(gpus)))

    def boards(self, result: WorkloadResult) -> Callable[[PowerModel], dict[str, LaunchSequence]]:
        """Return what gives the phases of a result's launches under another power model, by shared programs.

        Of at most DESIGNS designs. No power model decides how long a launch takes if nothing limits it, so that
        timing and choice stay.
        """
        count, designs = len(result.chosen), -len(result.chosen) % DESIGNS
        operators = len(filled_up(result.chosen[0], OPERATORS)) - result.chosen.shape[1]
        chosen, timing = jax.tree.map(
            lambda x: np.pad(x, ((0, designs), (0, operators)), mode="edge"), (result.chosen, result.timing)
        )
        gpus = jax.tree.map(lambda x: np.pad(x, (0, designs), mode="edge"), result.gpus)
        counts = jax.tree.map(np.asarray, self._activities(chosen, timing, gpus))

        def phases(power: PowerModel) -> dict[str, LaunchSequence]:
            if not isinstance(power, BoardPower):
                return result.phases  # no number that a study changes decides its watts
            watts = watts_of_few_calls(power, counts, with_kernel_axis(gpus))
            settled = self._phases(settle_of_few_calls, timing, watts, gpus, power)
            return jax.tree.map(lambda x: np.asarray(x)[:count], {name: phase for name, (phase, _) in settled.items()})

        return phases

    def settled_by(self, result: WorkloadResult, power: BoardPower) -> dict[str, LaunchSequence]:
        """Return the phases of a result whose launches draw what they did, where boards of another limit settle."""
        operators = len(filled_up(result.chosen[0], OPERATORS)) - result.chosen.shape[1]

        def block(timing: Timing, watts: Power, gpus: Gpu) -> dict[str, LaunchSequence]:
            timing, watts = jax.tree.map(lambda x: np.pad(x, ((0, 0), (0, operators)), mode="edge"), (timing, watts))
            settled = self._phases(settle_of_few_calls, timing, watts, gpus, power)
            return {name: phase for name, (phase, _) in settled.items()}

        at_once = DESIGNS if len(result.chosen) > 1 else 1
        return in_blocks(block, at_once, result.timing, result.power, result.gpus)

    def on_gpu(self, gpu: Gpu) -> WorkloadResult:
        """Return what the workload does on one GPU, by shared programs: one design."""
        chosen, launches = self._launches_on_gpu(gpu)
        chosen, launches, gpus = jax.tree.map(lambda x: np.asarray(x)[None], (chosen, launches, gpu))
        return WorkloadResult(self.workload, *self._result(chosen, launches, gpus))

    def _on_block(self, gpus: Gpu) -> tuple[Any, ...]:
        return self._result(*self._launches_on_designs(gpus, launches_of_few_calls), gpus)

    def _result(self, chosen: np.ndarray, launches: steps.Launch, gpus: Gpu) -> tuple[Any, ...]:
        """Return the fields of a :class:`WorkloadResult` but the first; ``launches`` (designs, operators or more)."""
        settled = jax.tree.map(np.asarray, self._phases(settle_of_few_calls, *launches, gpus))
        phases = [operator.phase for operator in self.workload.operators]
        each = [jax.tree.map(lambda x, k=k: x[:, k], settled[phase][1]) for k, phase in enumerate(phases)]
        asked = jax.tree.map(lambda x: np.asarray(x)[:, : len(phases)], launches)
        at_clock = jax.tree.map(lambda *x: np.stack(x, axis=1), *each)
        return {name: phase for name, (phase, _) in settled.items()}, chosen, *asked, at_clock, gpus

    def _phases(
        self, settle: Callable[..., T], timing: Timing, power: Power, gpus: Gpu, board_power: PowerModel | None = None
    ) -> dict[str, T]:
        """Return what settles each phase of launches (designs, operators or more), on boards of this power model or
        of another."""
        board, runs = (board_power or self.power.model, self.power.limit), self._runs(timing.feasible.shape[1])
        return {name: settle(*board, timing, power, run, gpus) for name, run in runs.items()}

    def _phase_runs(self, count: int) -> dict[str, steps.PhaseRun]:
        """Return what runs in each phase, the operators filled up to ``count``."""
        return {phase.name: steps.phase_run(self.workload, phase.name, count) for phase in self.workload.phases}

    def elasticities(self, gpu: Mapping[str, float], names: Sequence[str], chosen: np.ndarray) -> Elasticities:
        """Return the derivatives at ``gpu`` for the attributes ``names``.

        Of the candidates ``chosen`` (operators,): where the fastest is chosen, its derivative is that of the choice
        (envelope theorem). A whole number counts as a continuous one.
        """
        record = gpu_record(gpu)
        launches, slopes = self._launches_along(record, chosen)
        board, runs = (self.power.model, self.power.limit), self._runs(len(launches[0].feasible))
        phases = {name: phase_along(*board, launches, slopes, run, record) for name, run in runs.items()}
        places = [NUMERIC.index(name) for name in names]
        return jax.tree.map(lambda x: np.asarray(x, float)[places], elasticities(self.workload, phases))

    def prepare(self, gpu: Mapping[str, float]) -> None:
        """Compile what :meth:`on_designs`, :meth:`boards` and :meth:`elasticities` need, side by side."""
        with threads(2) as pool:
            parts = [
                pool.submit(lambda: self.boards(self.on_designs([gpu]))(self.power.model)),
                pool.submit(self.elasticities, gpu, NUMERIC[:1], self.workload.starts),
            ]
            for part in parts:
                part.result()


def gpu_record(numbers: Mapping[str, Any]) -> Gpu:
    """Return the record of one GPU or of a batch, in NumPy: converted where a program is called, not one by one."""
    return Gpu.from_attributes({name: np.asarray(value, float_type()) for name, value in numbers.items()})

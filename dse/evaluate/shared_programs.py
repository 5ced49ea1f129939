"""A few designs, by programs that every space shares.

A space's own program (:mod:`dse.evaluate.space_program`) evaluates a design in microseconds, after many seconds of
tracing and
compilation. The programs here take kernels and designs as arguments: they are compiled once, kept, and evaluate a
design in a fraction of a millisecond.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from dse.base.compilation import filled_length, filled_up, shared_filter_jit
from dse.base.numerics import INFEASIBLE
from dse.evaluate.candidates import EQUAL, Models, judge_kernel
from dse.evaluate.phases import Chores, PhaseResult, chores, phase_result
from dse.hardware.gpu import Gpu
from dse.power.board import BoardPower
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operator import fastest
from dse.workload.workload import Workload

FEW = 8192
"""Most designs that are worth no program of their own: they are done before it is compiled (benchmarks/few.py)."""

DESIGNS = 64
"""Designs that a program takes at once: enough to keep vectors full, and a search often asks for fewer."""

CANDIDATES, OPERATORS = 512, 32
"""Candidates and operators that a workload is filled up to: those of most that a space has."""


def are_few(designs: int, workloads: Sequence[Workload]) -> bool:
    """Return whether so many designs of a space are worth no program of their own; a trace's always are worth one."""
    return designs <= FEW and not any(workload.recorded for workload in workloads)


class Found(NamedTuple):
    """A workload on designs: its phases by name, and whether each operator has a kernel that runs, 1 or 0, (designs,
    operators)."""

    phases: dict[str, PhaseResult]
    can_run: np.ndarray


class Fastest:
    """The candidates of a workload of generated kernels that a sweep would choose on DESIGNS designs.

    Call it with their record, arrays (designs,): it returns the candidates, counted through the workload, and whether
    they run, 1 or 0, each (designs, operators).
    """

    def __init__(self, model: TimingModel, workload: Workload) -> None:
        self._model, self._count = model.anonymous(), workload.candidate_count
        self._kernels = filled_up(workload.kernels, CANDIDATES)
        self._starts = workload.starts

    def __call__(self, gpus: Gpu) -> tuple[np.ndarray, np.ndarray]:
        times = np.asarray(_times(self._model, self._kernels, gpus))[:, : self._count]
        chosen = fastest(times, self._starts, EQUAL)
        can_run = np.take_along_axis(times, chosen, axis=1) < INFEASIBLE
        return chosen, can_run.astype(times.dtype)


class OnFew:
    """A workload of generated kernels: call it with a record of DESIGNS designs, arrays (designs,)."""

    def __init__(self, models: Models, workload: Workload) -> None:
        self._model, self._power, self._workload = models.timing.anonymous(), models.power, workload

    def __call__(self, gpus: Gpu) -> Found:
        """Return what the workload does on each of them, with the candidates that a sweep would choose."""
        chosen, can_run = self._fastest(gpus)
        kernels, power = chosen_kernels(self._workload, chosen), self._power.model
        timing, watts = _judged(self._model, power, kernels, gpus)
        phases = {name: _phase(power, self._power.limit, run, timing, watts, gpus) for name, run in self._runs.items()}
        return Found(phases, can_run)

    @cached_property
    def _fastest(self) -> Fastest:
        return Fastest(self._model, self._workload)

    @cached_property
    def _runs(self) -> dict[str, Chores]:
        count = filled_length(len(self._workload.operators), OPERATORS)
        return {phase.name: chores(self._workload, phase.name, count) for phase in self._workload.phases}


def chosen_kernels(workload: Workload, chosen: np.ndarray) -> Kernel:
    """Return the kernels of candidates (designs, operators), filled up to OPERATORS of a design."""
    filled = filled_up(chosen.T, OPERATORS).T
    return jax.tree.map(lambda x: np.asarray(x)[filled], workload.kernels)


@shared_filter_jit
def _times(model: TimingModel, kernels: Kernel, gpus: Gpu) -> Array:
    """Time [ns] of every candidate on every design, (designs, candidates); INFEASIBLE where it cannot run."""
    return jax.vmap(lambda gpu: jax.vmap(lambda kernel: model.nanoseconds(kernel, gpu))(kernels))(gpus)


@shared_filter_jit
def _judged(model: TimingModel, power: BoardPower, kernels: Kernel, gpus: Gpu) -> tuple[Timing, Power]:
    """Timing and power, if nothing limits it, of each design's kernels, (designs, operators)."""
    return jax.vmap(jax.vmap(partial(judge_kernel, model, power), in_axes=(0, None)))(kernels, gpus)


@shared_filter_jit
def _phase(model: BoardPower, limit: bool, run: Chores, timing: Timing, watts: Power, gpus: Gpu) -> PhaseResult:
    return phase_result(PowerChoice(model, limit), run, timing, watts, gpus)

"""The evaluation of each kind of workload: generated kernels, and recorded ones; the one place where they part."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import derivatives_quick_to_compile, filled_up, quick_to_compile
from dse.evaluate import steps
from dse.evaluate.batching import with_kernel_axis
from dse.evaluate.candidates import Candidates, Tabulated, chosen_launches
from dse.evaluate.corrections import fold_corrections
from dse.evaluate.derivatives import along, launches_along
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.fastest import choose, fastest_forms
from dse.evaluate.pallas.own_kernels import own_kernels, totals_of_chosen
from dse.evaluate.platform import Platform
from dse.evaluate.shared_programs import (
    CANDIDATES,
    DESIGNS,
    OPERATORS,
    Launches,
    activities_of_few_calls,
    launches_of_few_calls,
    times_of_designs,
)
from dse.hardware.gpu import Gpu
from dse.power.activity import Activity, recorded_activity
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.power.sequence import SequenceTotals
from dse.timing.timing import Timing, TimingModel
from dse.timing.traced.operation_counts import operation_counts
from dse.workload.kernel import Kernel, RecordedKernel
from dse.workload.once import once
from dse.workload.workload import Workload

MOST_DESIGNS = 8192
"""Most designs of a space that shared programs evaluate: they are done before its own is compiled
(benchmarks/few.py)."""

Slopes = tuple[tuple[Timing, Power], tuple[Timing, Power]]
"""Launches on one GPU, and their derivatives along the attributes."""


class KernelEvaluation(Evaluation):
    """A workload of generated kernels: the programs take all that they compute with as arguments."""

    shares_programs = True

    def __init__(self, workload: Workload, model: TimingModel, power: PowerChoice) -> None:
        model, kernels = fold_corrections(model, workload.kernels)
        super().__init__(workload.with_kernels(kernels), model, power)
        self._anonymous = model.anonymous()
        # What a space's own program evaluates; all others name every operator in their results.
        self._once, self._places = once(self.workload)

    @staticmethod
    def block(platform: Platform) -> int:
        return platform.kernel_block

    def candidates(self, gpus: Gpu) -> Candidates:
        return Candidates(self.model, self._once, gpus)

    def in_program(
        self, gpus: Gpu, count: int, *, simplified: bool, tabulated: Tabulated | None = None, needed: Any = None
    ) -> tuple[dict[str, SequenceTotals], Array]:
        if self._once is not self.workload:
            alone = KernelEvaluation(self._once, self.model, self.power)
            phases, can_run = alone.in_program(gpus, count, simplified=simplified, tabulated=tabulated, needed=needed)
            return phases, can_run[:, self._places]
        how = own_kernels() if simplified else None
        if how is None:
            return super().in_program(gpus, count, simplified=simplified, tabulated=tabulated)
        tabulated = tabulated or Tabulated(self.candidates(gpus), (), ())
        board, runs = (self.power.model, self.power.limit), self._runs(len(self.workload.operators))
        shapes = self.shapes(count)[0]
        needed = jax.tree.map(lambda _: True, shapes) if needed is None else needed
        settled = [
            partial(_leaves, partial(steps.settle_sums, *board, run), needed[name]) for name, run in runs.items()
        ]
        interpret = how == "interpreted"
        each, can_run = totals_of_chosen(tabulated, self.power.model, settled, gpus, count, interpret=interpret)
        return {name: _filled(x, needed[name], shapes[name]) for name, x in zip(runs, each, strict=True)}, can_run

    def _launches_in_program(
        self, gpus: Gpu, count: int, simplified: bool, tabulated: Tabulated | None = None
    ) -> tuple[Timing, Power, Array]:
        given = tabulated or Tabulated(self.candidates(gpus), (), ())
        chosen, can_run = choose(self.workload, given.candidates.times(gpus, count, given.common, given.of_groups))
        launches = chosen_launches(self.model, self.power.model, self.workload, chosen, gpus, simplified=simplified)
        return *launches, can_run

    def _launches_on_designs(self, gpus: Gpu, launches: Launches) -> tuple[np.ndarray, steps.Launch]:
        times = np.asarray(times_of_designs(self._anonymous, self._candidates, gpus))
        chosen = fastest_forms(self.workload, times[:, : self.workload.candidate_count])
        return chosen, launches(self._anonymous, self.power.model, self._kernels(chosen), gpus)

    def _launches_on_gpu(self, gpu: Gpu) -> tuple[np.ndarray, steps.Launch]:
        every = launches_of_few_calls(self._anonymous, self.power.model, filled_up(self.workload.kernels), gpu)
        every = jax.tree.map(lambda x: np.asarray(x)[: self.workload.candidate_count], every)
        times = np.where(np.asarray(every[0].feasible) > 0, every[0].microseconds, np.inf)
        chosen = fastest_forms(self.workload, times)
        return chosen, jax.tree.map(lambda x: x[filled_up(chosen, OPERATORS)], every)

    def _launches_along(self, gpu: Gpu, chosen: np.ndarray) -> Slopes:
        return launches_along(self._anonymous, self.power.model, self._kernels(chosen), gpu)

    def _activities(self, chosen: np.ndarray, timing: Timing, gpus: Gpu) -> Activity:
        return activities_of_few_calls(self._kernels(chosen), timing, with_kernel_axis(gpus))

    def _kernels(self, chosen: np.ndarray) -> Kernel:
        """The kernels of candidates (..., operators), filled up to OPERATORS."""
        places = filled_up(chosen.T, OPERATORS).T
        return jax.tree.map(lambda x: np.asarray(x)[places], self.workload.kernels)

    @cached_property
    def _candidates(self) -> Kernel:
        return filled_up(self.workload.kernels, CANDIDATES)


def _leaves(settle: Callable[..., SequenceTotals], needed: SequenceTotals, *given: Any) -> list[Array]:
    """Return the arrays of what settles that are needed."""
    each = zip(jax.tree.leaves(settle(*given)), jax.tree.leaves(needed), strict=True)
    return [array for array, is_needed in each if is_needed]


def _filled(arrays: Sequence[Array], needed: SequenceTotals, shape: SequenceTotals) -> SequenceTotals:
    """Return the whole of which :func:`_leaves` are these; what is not needed is 0."""
    given = iter(arrays)
    return jax.tree.map(
        lambda of, is_needed: next(given) if is_needed else jnp.zeros(of.shape, of.dtype), shape, needed
    )


class RecordedEvaluation(Evaluation):
    """A workload of recorded kernels (a trace), each of which needs programs of its own."""

    shares_programs = False

    @staticmethod
    def block(platform: Platform) -> int:
        return platform.recorded_block

    def _launches(self, gpus: Gpu, shape: tuple[int, ...]) -> steps.Launch:
        """Return every kernel on GPUs (designs,) or on one: arrays (*shape, kernels)."""
        each = [self._of(kernel)(gpus) for kernel in self.workload.recorded]
        return jax.tree.map(lambda *x: jnp.stack([jnp.broadcast_to(v, shape) for v in x], axis=-1), *each)

    def _launches_in_program(
        self, gpus: Gpu, count: int, simplified: bool, tabulated: Tabulated | None = None
    ) -> tuple[Timing, Power, Array]:
        timing, power = self._launches(gpus, (count,))
        return timing, power, timing.feasible

    def _launches_on_designs(self, gpus: Gpu, launches: Launches) -> tuple[np.ndarray, steps.Launch]:
        return np.tile(self._every, (DESIGNS, 1)), self._on_batch(gpus)

    def _launches_on_gpu(self, gpu: Gpu) -> tuple[np.ndarray, steps.Launch]:
        with jax.enable_x64(True):  # one GPU can afford it, and the recurrence adds up rounding errors
            each = [jax.jit(self._of(kernel))(gpu) for kernel in self.workload.recorded]
        places = filled_up(self._every, OPERATORS)
        return self._every, jax.tree.map(lambda *values: np.stack(values)[places], *each)

    def _launches_along(self, gpu: Gpu, chosen: np.ndarray) -> Slopes:
        return self._along(gpu)

    def _activities(self, chosen: np.ndarray, timing: Timing, gpus: Gpu) -> Activity:
        return self._counts(timing, gpus)

    @cached_property
    def _every(self) -> np.ndarray:
        return np.arange(len(self.workload.operators))

    @cached_property
    def _on_batch(self) -> Any:
        return jax.jit(lambda gpus: self._launches(gpus, (DESIGNS,)), compiler_options=quick_to_compile())

    @cached_property
    def _along(self) -> Any:
        one = partial(along, lambda gpu: self._launches(gpu, ()))
        return jax.jit(one, compiler_options=derivatives_quick_to_compile())

    @cached_property
    def _counts(self) -> Any:
        def counts(timing: Timing, gpus: Gpu) -> Activity:
            each = [jax.tree.map(lambda x, k=k: x[:, k], timing) for k in range(timing.cycles.shape[1])]
            kernels = filled_up(self._every, OPERATORS)
            parts = [
                recorded_activity(operation_counts(self.workload.recorded[k], gpus), one, gpus)
                for k, one in zip(kernels, each, strict=True)
            ]
            return jax.tree.map(lambda *x: jnp.stack([jnp.broadcast_to(v, (DESIGNS,)) for v in x], axis=-1), *parts)

        return jax.jit(counts, compiler_options=quick_to_compile())

    def _of(self, kernel: RecordedKernel) -> Callable[[Gpu], steps.Launch]:
        return partial(steps.evaluate_recorded, self.model, self.power.model, kernel)


def evaluation_type(workload: Workload) -> type[KernelEvaluation] | type[RecordedEvaluation]:
    """Return what evaluates a kind of workload."""
    return RecordedEvaluation if workload.recorded else KernelEvaluation


def evaluation_of(workload: Workload, model: TimingModel, power: PowerChoice) -> Evaluation:
    """Return the evaluation of a workload."""
    return evaluation_type(workload)(workload, model, power)


def by_shared_programs(designs: int, workloads: Sequence[Workload]) -> bool:
    """Return whether shared programs evaluate so many designs of a space; those of recorded kernels never are."""
    return designs <= MOST_DESIGNS and all(evaluation_type(workload).shares_programs for workload in workloads)

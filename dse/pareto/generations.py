"""The vectorised search as a study: a trial is a few generations of Pareto local search.

Optuna manages a thousand trials a second, the model seventy times as many designs.
"""

from typing import Any

import numpy as np

from dse.evaluate.platform import local_platform
from dse.pareto import optuna_storage as optuna_trials
from dse.pareto.batch_model import EvaluatedDesigns
from dse.pareto.fronts import thin_to
from dse.pareto.packing import packed, unpacked
from dse.pareto.pareto_sampler import ParetoSampler
from dse.pareto.study import Batch, SpaceStudy
from dse.space.space import Space

LOCAL = "local"
"""The sampler that asks for whole generations: Pareto local search."""

GENERATIONS = 8
"""Generations a trial at most: a trial is written to the disk, which takes as long as the model for a generation."""

LEAST_GENERATIONS = 48
"""Generations a search has at least, and trials: the evaluations are divided so."""

FRONT_TRIALS = 500
"""Members of the front that a generation study shows as trials of their own."""


def generation_sizes(evaluations: int) -> tuple[int, int]:
    """Return designs a generation, at most one block of the model, and generations a trial of a search."""
    batch = int(np.clip(evaluations // LEAST_GENERATIONS, 16, local_platform().generation))
    return batch, int(np.clip(evaluations // (LEAST_GENERATIONS * batch), 1, GENERATIONS))


class GenerationSampler(ParetoSampler):
    """The Pareto sampler of a study whose trials have no parameters but whole generations of designs."""

    others = 0

    def before_trial(self, study: Any, trial: Any) -> None:
        """Count the workers whose running trials came before this one."""
        self.others = sum(other.number < trial.number for other in optuna_trials.running_trials(study))

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """No parameters."""
        return {}


class GenerationStudy(SpaceStudy):
    """Pareto local search: a trial is ``generations`` generations of ``batch`` designs, its value the hypervolume.

    The trial keeps which designs were evaluated and what entered the front. The front itself, thinned, is published
    as a study of ordinary trials next to it when the search ends, for dashboards.
    """

    def __init__(self, space: Space, storage: Any, seed: int, batch: int, generations: int) -> None:
        super().__init__(space, storage, LOCAL, seed, batch)
        self.generations = generations
        self.study.sampler = self._sampler = GenerationSampler(space, seed=seed, state=self.state)
        self._trial: Any = None
        self._done: list[dict[str, str]] = []

    def _open(self) -> Any:
        return optuna_trials.generation_study(f"{self.name}, generations", self.storage)

    def _settle(self) -> None:
        for trial in optuna_trials.running_trials(self.study):
            optuna_trials.fail(self.study, trial)

    def _take(self, trials: list[Any]) -> None:
        for trial in filter(optuna_trials.is_complete, trials):
            for generation in trial.user_attrs.get("generations", []):
                index, entrants, table = unpacked(generation, len(self.space.objectives) + 1)
                self.state.add(index, entrants, table[:, :-1], table[:, -1])

    def ask(self, most: int) -> Batch | None:
        """Return the next generation, of at most ``most`` designs; None when every design has been evaluated."""
        if self._trial is None:
            self._update()
            self._trial = self.study.ask()
        index = self._sampler.draw(min(self.batch, most), self._sampler.others)
        return Batch(index, [self._trial]) if len(index) else None

    def tell(self, batch: Batch, evaluated: EvaluatedDesigns) -> None:
        """Finish a generation."""
        had = ~evaluated.blank
        entrants, costs, violation = evaluated.index[had], evaluated.costs[had], evaluated.violation[had]
        entered = self.state.add(evaluated.index, entrants, costs, violation)
        table = np.column_stack([costs, violation])[entered]
        self._done.append(packed(evaluated.index, entrants[entered], table))
        if len(self._done) == self.generations:
            self.finish()

    def finish(self) -> None:
        """Write the trial in hand with the generations that it has."""
        if self._trial is None:
            return
        self._counted.add(self._trial.number)
        if self._done:
            self._trial.set_user_attr("generations", self._done)
            self.study.tell(self._trial, self.state.hypervolume)
        else:
            optuna_trials.fail(self.study, self._trial)
        self._trial, self._done = None, []

    def publish(self) -> None:
        """Write the front, thinned, as a study of ordinary trials, for dashboards."""
        if not self.state.feasible:
            return
        shown = optuna_trials.design_study(self.name, self.storage, self.space)
        local = self.state.local
        there = {trial.user_attrs.get("design") for trial in shown.get_trials(deepcopy=False)}
        positions = [int(k) for k in thin_to(local.costs, FRONT_TRIALS) if int(local.index[k]) not in there]
        digits = local.grid.digits(local.index[positions])
        rows = [
            (row, (self.signs * local.costs[k]).tolist(), int(local.index[k]))
            for k, row in zip(positions, digits, strict=True)
        ]
        optuna_trials.add_designs(shown, self._sampler.parameters, rows)

"""Pareto local search as a sampler of Optuna: of any study over a space's axes, and of the project's own searches."""

from pathlib import Path
from typing import Any

import numpy as np

from dse.base.errors import InputError, expect
from dse.base.extras import extra
from dse.pareto.ended_trials import add_trials
from dse.pareto.optuna_storage import directions_of, ended_trials, running_trials
from dse.pareto.parameters import ValueParameter, design_numbers
from dse.pareto.search_state import SearchState
from dse.space.space import Space, space_of

with extra("search", "a search"):
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import FrozenTrial


GENERATION_KEY = "pareto:generation"
"""A trial's attribute: the number of generations that its sampler knew when it drew the trial's design."""

BATCH = 64
"""Designs a generation where nothing else is said."""


class ParetoSampler(BaseSampler):
    """Propose designs of a space around the Pareto front of a study's finished trials, a generation at a time.

    A trial's parameters are the values of the space's axes, its values the study's objectives in its directions;
    ``trial.set_constraint`` says by how much a design is infeasible. The designs depend on the seed and the finished
    trials alone, so that a study which is loaded again goes on as if it had not been interrupted. :func:`dse.search`
    draws with the same sampler, whole generations in a trial.

    ``space``: a space or the path of its file. ``directions``: those of its objectives, for ``optuna.create_study``.
    ``batch``: designs of a generation, all told before the next is drawn.
    Raises InputError for a space that cannot be read, or a batch below 1.
    """

    def __init__(
        self, space: Space | str | Path, *, seed: int = 0, batch: int = BATCH, state: SearchState | None = None
    ) -> None:
        expect("batch", batch, int, "give a whole number of at least 1")
        if batch < 1:
            raise InputError(f"batch {batch!r} is not accepted; give a whole number of at least 1")
        space = space_of(space)
        self.seed, self.batch = seed, batch
        self.parameters = [ValueParameter(axis) for axis in space.axes]
        self.state = state or SearchState(space)
        self.directions = directions_of(space)
        self._signs = np.asarray([o.sign for o in space.objectives])
        self._counted: set[int] = set()
        self._waiting: list[int] = []

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The axes by name, for ``study.ask``."""
        return {parameter.name: parameter.distribution for parameter in self.parameters}

    def draw(self, count: int, others: int = 0) -> np.ndarray:
        """Return the numbers of the next generation's designs, at most ``count``, fewer where fewer are left.

        Workers that know the same trials draw differently, by how many ``others`` asked before them.
        """
        local = self.state.local
        return local.ask(count, np.random.default_rng([self.seed, local.generations, others]))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All axes."""
        return self.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the next design's values; none when every design has been asked for: Optuna then draws at random."""
        if not self._waiting:
            self._waiting = self._next_generation(study, trial)
        if not self._waiting:
            return {}
        storage, generation = study._storage, self.state.local.generations
        storage.set_trial_system_attr(trial._trial_id, GENERATION_KEY, generation)
        digits = self.state.local.grid.digits(np.asarray([self._waiting.pop(0)]))[0]
        return {p.name: p.value(digit) for p, digit in zip(self.parameters, digits, strict=True)}

    def sample_independent(self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: Any) -> Any:
        """Draw a parameter that is no axis of the space at random."""
        random = RandomSampler(seed=trial.number)
        return random.sample_independent(study, trial, param_name, param_distribution)

    def _next_generation(self, study: Study, trial: FrozenTrial) -> list[int]:
        """Take the trials that have ended into the state and return the designs to ask for, beginning with a trial."""
        loaded = not self._counted  # a study of an earlier process
        running = [other for other in running_trials(study) if other.number < trial.number]
        for generation in self._ended_generations(study):
            rest = self._rest_of(generation, running) if loaded else []
            if rest:
                return rest
            self._take(generation)
        self.state.local.evaluated.add(self._numbers(running))
        return self.draw(self.batch, len(running)).tolist()

    def _ended_generations(self, study: Study) -> list[list[FrozenTrial]]:
        """Return the ended trials that the state lacks, by generation; trials of other samplers are one each."""
        generations: dict[Any, list[FrozenTrial]] = {}
        for trial in ended_trials(study):
            if trial.number not in self._counted and self._is_design(trial):
                generations.setdefault(trial.system_attrs.get(GENERATION_KEY, -1 - trial.number), []).append(trial)
        return list(generations.values())

    def _rest_of(self, generation: list[FrozenTrial], running: list[FrozenTrial]) -> list[int]:
        """Return what a generation that was cut short has not asked for; nothing where it was drawn by another seed."""
        if len(generation) >= self.batch:
            return []
        ended, asked = self._numbers(generation).tolist(), self._numbers(running).tolist()
        drawn = self.draw(self.batch).tolist()
        return [design for design in drawn if design not in {*ended, *asked}] if set(ended) <= set(drawn) else []

    def _take(self, generation: list[FrozenTrial]) -> None:
        self._counted.update(trial.number for trial in generation)
        add_trials(self.state, self.parameters, self._signs, generation)

    def _is_design(self, trial: FrozenTrial) -> bool:
        """Whether a trial's parameters are a design of the space: somebody may have enqueued another."""
        return all(p.name in trial.params and p.has(trial.params[p.name]) for p in self.parameters)

    def _numbers(self, trials: list[FrozenTrial]) -> np.ndarray:
        designs = [trial.params for trial in trials if self._is_design(trial)]
        return design_numbers(self.parameters, self.state.local.grid, designs)

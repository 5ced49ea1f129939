"""Optuna's own samplers as a study: a trial is one design, and batches of trials are evaluated together."""

from typing import Any

import numpy as np

from dse.pareto import optuna_storage as optuna_trials
from dse.pareto.batch_model import EvaluatedDesigns
from dse.pareto.ended_trials import add_trials
from dse.pareto.optuna_storage import CHOICES
from dse.pareto.parameters import design_numbers
from dse.pareto.study import Batch, SpaceStudy
from dse.space.space import Space


class DesignStudy(SpaceStudy):
    """A study whose designs a sampler of Optuna's own chooses."""

    def __init__(self, space: Space, storage: Any, sampler: str, seed: int) -> None:
        self._choice = CHOICES[sampler]
        self._pending: list[Any] = []
        super().__init__(space, storage, sampler, seed, self._choice.batch)

    def _open(self) -> Any:
        return optuna_trials.design_study(self.name, self.storage, self.space)

    def _settle(self) -> None:
        """Keep the trials that have all parameters: they are told with the batch that they were asked for."""
        for trial in optuna_trials.running_trials(self.study):
            if self._is_whole(trial):
                self._pending.append(optuna_trials.adopted(self.study, trial))
            else:
                optuna_trials.fail(self.study, trial)
        if not self._choice.reseed:
            ended = sum(map(self._is_whole, optuna_trials.ended_trials(self.study)))
            optuna_trials.rewind(self.study, ended + len(self._pending))

    def _is_whole(self, trial: Any) -> bool:
        return len(trial.params) == len(self.axes)

    def _take(self, trials: list[Any]) -> None:
        ended = [trial for trial in trials if optuna_trials.is_complete(trial) or "no_result" in trial.user_attrs]
        while ended:  # batch by batch, as they were told
            count = self._to_ask(self.state.count)
            add_trials(self.state, self.axes, self.signs, ended[:count])
            ended = ended[count:]

    def _to_ask(self, ended: int) -> int:
        """Trials that the batch in hand takes after so many."""
        return self.batch - ended % self.batch

    def ask(self, most: int) -> Batch | None:
        """Return the next batch, of at most ``most`` designs and those that a killed search asked for."""
        trials, self._pending = self._pending, []
        ended = self.state.count
        count = min(self._to_ask(ended), most)
        space = {p.name: p.distribution for p in self.axes}
        while len(trials) < count:
            # A seed a trial: what is drawn does not depend on which trials this process asked for before.
            place = [self.salt, ended + len(trials)] if self._choice.reseed else []
            seed = np.random.SeedSequence([self.seed, *place]).generate_state(1)[0]
            self.study.sampler = self._choice.make(int(seed), space)
            trials.append(self.study.ask(space))
        index = design_numbers(self.axes, self.state.local.grid, [trial.params for trial in trials])
        return Batch(index, trials)

    def tell(self, batch: Batch, evaluated: EvaluatedDesigns) -> None:
        """Finish a batch: an infeasible design carries its violation, one without results fails."""
        for position, trial in enumerate(batch.trials):
            if evaluated.blank[position]:
                trial.set_user_attr("no_result", True)
                optuna_trials.fail(self.study, trial)
                continue
            if "feasible" not in trial.constraints:
                trial.set_constraint("feasible", float(evaluated.violation[position]))
            self.study.tell(trial, (self.signs * evaluated.costs[position]).tolist())
        self._update()

"""A space's objectives as the objective of an Optuna study: one trial at a time, or a batch in one call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.pareto.batch_model import BatchModel, EvaluatedDesigns
from dse.pareto.optuna_storage import fail
from dse.pareto.parameters import ValueParameter, design_numbers
from dse.pareto.search_state import grid_of
from dse.space.space import Space, space_of


class SpaceObjective:
    """Evaluate a study's trials as designs of a space: ``study.optimize(objective, n_trials=100)``.

    A trial's values are the space's objectives. Its constraint ``feasible`` is 0 for a design that can be had, else how
    far it is from that [1]. Its attribute ``metrics`` holds what was computed of the design, by name, in the units of a
    sweep's columns; ``reason`` says why a design is infeasible. A trial fails where nothing can be computed of its
    design. Raises InputError for a space that cannot be read.
    """

    def __init__(self, space: Space | str | Path) -> None:
        self.space = space_of(space)
        self.parameters = [ValueParameter(axis) for axis in self.space.axes]
        self._model = BatchModel(self.space)
        self._grid = grid_of(self.space)

    def __call__(self, trial: Any) -> tuple[float, ...]:
        """Return the objectives of one trial, its parameters chosen by the study's sampler; NaN, which fails, where
        nothing can be computed."""
        evaluated = self._evaluate([trial])
        return self._described([trial], evaluated)[0]

    def ask_and_tell(self, study: Any, count: int) -> None:
        """Ask a study for ``count`` trials, evaluate them in one call of the model, and tell them."""
        trials = [study.ask() for _ in range(count)]
        for trial, values in zip(trials, self._described(trials, self._evaluate(trials)), strict=True):
            if np.isnan(values).any():
                fail(study, trial)
            else:
                study.tell(trial, values)

    def _evaluate(self, trials: Sequence[Any]) -> EvaluatedDesigns:
        designs = [{p.name: p.suggest(trial) for p in self.parameters} for trial in trials]
        return self._model(design_numbers(self.parameters, self._grid, designs))

    def _described(self, trials: Sequence[Any], evaluated: EvaluatedDesigns) -> list[tuple[float, ...]]:
        """Write constraint and attributes of trials and return the objectives of each."""
        rows = self._model.table(evaluated).to_pylist()
        values = []
        for trial, row, violation in zip(trials, rows, evaluated.violation.tolist(), strict=True):
            reason, _ = row.pop("reason"), row.pop("feasible")
            metrics = {k: v for k, v in row.items() if k not in trial.params and v is not None}
            trial.set_user_attr("metrics", metrics)
            if reason:
                trial.set_user_attr("reason", reason)
            trial.set_constraint("feasible", violation)
            values.append(tuple(metrics.get(o.name, np.nan) for o in self.space.objectives))
        return values

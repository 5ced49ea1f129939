"""Trials of designs that have ended, as a batch of a search's state."""

from collections.abc import Sequence

import numpy as np

from dse.base.extras import extra
from dse.pareto.optuna_storage import is_complete
from dse.pareto.parameters import Parameter, design_numbers
from dse.pareto.search_state import SearchState

with extra("search", "a search"):
    from optuna.trial import FrozenTrial


def add_trials(
    state: SearchState, parameters: Sequence[Parameter], signs: np.ndarray, trials: Sequence[FrozenTrial]
) -> None:
    """Add trials to a state: complete ones with their values, by ``signs`` to be minimised, and their constraints;
    others as designs without results."""
    index = design_numbers(parameters, state.local.grid, [trial.params for trial in trials])
    complete = [trial for trial in trials if is_complete(trial)]
    costs = signs * np.asarray([trial.values for trial in complete]).reshape(-1, len(signs))
    violation = np.asarray([sum(max(size, 0.0) for size in t.constraints.values()) for t in complete], float)
    state.add(index, index[[is_complete(trial) for trial in trials]], costs, violation)

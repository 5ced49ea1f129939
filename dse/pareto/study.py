"""What every study of a search shares: the space it is of, its workers, and the state from its finished trials.

A study knows only what the storage's finished trials say, and takes its random state from the seed and the number of
finished trials, so that a search that was killed goes on as if it had not been.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.base.errors import InputError
from dse.grid.model_version import model_version
from dse.pareto.optuna_storage import ended_trials
from dse.pareto.parameters import Parameter
from dse.pareto.search_state import SearchState
from dse.pareto.workers import Presence
from dse.space.space import Space


@dataclass
class Batch:
    """Designs to evaluate, by number, and the trials of Optuna's that asked for them."""

    index: np.ndarray
    trials: list[Any]


class SpaceStudy:
    """The study of a space with a sampler and a seed in a storage; one that was begun there goes on.

    ``state`` of the finished trials; ``salt``: 0 for a worker that began alone, so that it repeats itself.
    """

    def __init__(self, space: Space, storage: Any, sampler: str, seed: int, batch: int) -> None:
        self.space, self.seed, self.storage = space, seed, storage
        self.state = SearchState(space)
        self.signs = np.asarray([o.sign for o in space.objectives])
        self.name = f"{space.name}, {sampler}, seed {seed}"
        self.axes = [Parameter(axis) for axis in space.axes]
        self._counted: set[int] = set()
        self.study = self._open()
        self._check_space()
        self.batch: int = self.study.user_attrs.get("batch", batch)
        self.study.set_user_attr("batch", self.batch)
        self._presence = Presence(self.study)
        self.salt = self._presence.number
        if self._presence.alone:
            self._settle()
        self._update()

    def _open(self) -> Any:
        raise NotImplementedError

    def _settle(self) -> None:
        """Bring trials that a killed search left running to an end; no other worker is there."""
        raise NotImplementedError

    def _take(self, trials: list[Any]) -> None:
        raise NotImplementedError

    def _check_space(self) -> None:
        """Mark a new study with its space and the model; raises InputError where it is of another one."""
        now = {"space": self.space.digest, "model": model_version()}
        known = self.study.user_attrs
        before = {name: known.get(name, "unknown") for name in now} if "space" in known else now
        if changed := [f"{name} {before[name]}, now {now[name]}" for name in now if before[name] != now[name]]:
            raise InputError(
                f"the storage holds a search {self.study.study_name!r} of other inputs or of another version "
                f"({'; '.join(changed)}); give another storage with --storage or -o, or another seed"
            )
        for name, value in now.items():
            self.study.set_user_attr(name, value)

    def _update(self) -> None:
        """Add the trials that have ended since the last time, other workers' too."""
        self._presence.sign()
        new = [trial for trial in ended_trials(self.study) if trial.number not in self._counted]
        self._counted.update(trial.number for trial in new)
        self._take(new)

    def finish(self) -> None:
        """Write finished designs that are not written yet."""

    def publish(self) -> None:
        """Write what dashboards show besides the trials."""

    def close(self) -> None:
        """Say that this worker is gone."""
        self._presence.leave()

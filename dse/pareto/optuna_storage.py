"""Optuna's side of a search: storages by URL, samplers by name, studies, trials."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.base.errors import InputError
from dse.base.extras import extra
from dse.base.passwords import without_password
from dse.pareto.parameters import Parameter
from dse.space.space import Space

with extra("search", "a search"):
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, QMCSampler, RandomSampler
    from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState


Distributions = dict[str, BaseDistribution]
"""Axes by name."""

GRACE_SECONDS = 3
"""After so long a lock on a journal is one that a killed process left."""


ATTEMPTS = 3
"""Times that a database is opened again while another worker makes its tables."""


class SequenceSampler(QMCSampler):
    """A quasi-random sequence over ``axes`` from the first trial on.

    Optuna's own draws the first trial at random, to learn the axes from it: its points are then no longer one for each
    trial, and what a killed search drew could not be told (:func:`rewind`).
    """

    def __init__(self, seed: int, axes: Distributions) -> None:
        super().__init__(seed=seed, scramble=True)
        self._axes = axes

    def infer_relative_search_space(self, study: Any, trial: Any) -> Distributions:
        """All axes."""
        return self._axes


@dataclass(frozen=True)
class Choice:
    """A sampler of Optuna: ``make`` from a seed and the axes, designs a ``batch``, and whether the seed changes with
    the trials."""

    make: Callable[[int, Distributions], BaseSampler]
    batch: int
    reseed: bool = True


CHOICES = {
    "nsga2": Choice(lambda seed, _: optuna.samplers.NSGAIISampler(seed=seed), 50),
    "nsga3": Choice(lambda seed, _: optuna.samplers.NSGAIIISampler(seed=seed), 50),
    "tpe": Choice(lambda seed, _: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True), 10),
    "gp": Choice(lambda seed, _: optuna.samplers.GPSampler(seed=seed, deterministic_objective=True), 4),
    # A sequence is one sequence only while its seed stays; it counts its points in the storage.
    "qmc": Choice(SequenceSampler, 256, reseed=False),
    "random": Choice(lambda seed, _: RandomSampler(seed=seed), 256),
}
"""Optuna's samplers by name."""


def open_storage(url: str | None) -> BaseStorage:
    """Return the storage that a URL names (none: memory): journal:PATH, grpc://host:port, or any of SQLAlchemy's.

    Raises InputError with the reason where it cannot be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    if url is None:
        return InMemoryStorage()
    try:
        storage = _storage(url)
        if storage is not None:
            storage.get_all_studies()  # what is wrong shows now
            return storage
    except Exception as error:  # drivers raise errors of their own kinds, none of them ours
        torn = isinstance(error, json.JSONDecodeError) and url.startswith("journal:")
        reason = _damage(Path(url.removeprefix("journal:"))) if torn else " ".join(str(error).split())[:300]
        shown = without_password(url)
        reason = reason.replace(url, shown) or type(error).__name__
        raise InputError(f"--storage {shown}: cannot be opened: {reason}") from None
    raise InputError(
        f"--storage {without_password(url)!r} is not a storage; give journal:PATH, sqlite:///PATH, "
        "postgresql://user@host/name or grpc://host:port"
    )


def _storage(url: str) -> BaseStorage | None:
    scheme, _, rest = url.partition(":")
    if scheme == "journal" and rest:
        return _journal(Path(rest))
    if scheme == "grpc" and rest:
        return _proxy(rest.removeprefix("//"))
    return _sql(url) if "://" in url else None


def _sql(url: str) -> BaseStorage:
    """A database; of two workers that come to an empty one together, one fails to make the tables, and looks again."""
    for _ in range(ATTEMPTS):
        try:
            return optuna.storages.get_storage(url)
        except Exception as error:
            if not any(word in str(error).lower() for word in ("already exists", "duplicate", "unique")):
                raise
            time.sleep(1.0)
    return optuna.storages.get_storage(url)


def _journal(path: Path) -> JournalStorage:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ValueError("is a folder; give a file")
    # Not Optuna's own choice, a link to the journal: one of a relative path points nowhere, and is waited for for ever.
    lock = JournalFileOpenLock(str(path), grace_period=GRACE_SECONDS)
    if path.exists() and path.stat().st_size:
        lock.acquire()
        try:
            _mend(path)
        finally:
            lock.release()
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


def _mend(path: Path) -> None:
    """Cut off a last line that a killed process left half-written: what is appended to it could not be read again."""
    with path.open("r+b") as file:
        if not _is_journal(file.readline()):
            raise ValueError("is no journal of Optuna; give another file")
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)


def _damage(path: Path) -> str:
    """Return which line of a journal cannot be read, and what can be done."""
    with path.open("rb") as file:
        number = next((number for number, line in enumerate(file, 1) if not _is_journal(line)), 0)
    remedy = "keep the lines before it alone, give another storage, or remove the file to begin anew"
    return f"line {number} is damaged; {remedy}"


def _is_journal(line: bytes) -> bool:
    with suppress(ValueError):
        entry = json.loads(line)
        return isinstance(entry, dict) and "op_code" in entry
    return not line.endswith(b"\n") and line.startswith(b'{"op_code"'[: len(line)])  # cut short as it was written


def _proxy(address: str) -> BaseStorage:
    host, _, port = address.partition(":")
    if not port.isdigit():
        raise ValueError("give grpc://host:port")
    from optuna.storages import GrpcStorageProxy

    return GrpcStorageProxy(host=host or "localhost", port=int(port))


def generation_study(name: str, storage: BaseStorage) -> optuna.Study:
    """Return the study of a vectorised search by name: its trials' value is the hypervolume."""
    return optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)


def design_study(name: str, storage: BaseStorage, space: Space) -> optuna.Study:
    """Return the study by name whose trials are designs of a space, with its objectives."""
    study = optuna.create_study(
        study_name=name, storage=storage, directions=directions_of(space), load_if_exists=True, sampler=RandomSampler()
    )
    study.set_metric_names([o.name for o in space.objectives])
    return study


def directions_of(space: Space) -> list[StudyDirection]:
    """Return the directions of a space's objectives."""
    return [StudyDirection.MINIMIZE if o.sign > 0 else StudyDirection.MAXIMIZE for o in space.objectives]


def ended_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that are complete or failed."""
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))


def running_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that are asked and not told."""
    return study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


def is_complete(trial: FrozenTrial) -> bool:
    """Whether a trial was told with values."""
    return trial.state == TrialState.COMPLETE


def fail(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> None:
    """End a trial without values."""
    study.tell(trial.number, state=TrialState.FAIL)


def rewind(study: optuna.Study, points: int) -> None:
    """Let a sequence go on after so many points: a killed search counted one that no trial has."""
    storage, number = study._storage, study._study_id
    for key, last in storage.get_study_system_attrs(number).items():
        if key.startswith("qmc:") and last != points - 1:
            storage.set_study_system_attr(number, key, points - 1)


def adopted(study: optuna.Study, trial: FrozenTrial) -> optuna.Trial:
    """Return a running trial that another process asked for, to be told by this one."""
    return optuna.Trial(study, trial._trial_id)


def add_designs(
    study: optuna.Study, parameters: Sequence[Parameter], rows: Iterable[tuple[np.ndarray, list, int]]
) -> None:
    """Add designs (digits, values, number) as finished trials."""
    study.add_trials(
        optuna.create_trial(
            params={p.name: p.value(digit) for p, digit in zip(parameters, digits, strict=True)},
            distributions={p.name: p.distribution for p in parameters},
            values=values,
            user_attrs={"design": number},
        )
        for digits, values, number in rows
    )

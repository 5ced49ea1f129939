"""Studies: Optuna asks, the batch model answers, the storage remembers (the only file that imports optuna).

A vectorised search is one trial a few generations (:class:`GenerationStudy`): Optuna manages a thousand trials a
second, the model seventy times as many designs. Optuna's own samplers are one trial a design (:class:`DesignStudy`),
asked and told in batches. Both know only what the storage's finished trials say, and take their random state from the
seed and the number of finished trials, so that a search that was killed goes on as if it had not been.
"""

import base64
import importlib.util
import json
import os
import socket
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from dse.errors import InputError, accepted
from dse.search.batch import Evaluated
from dse.search.known import Known
from dse.search.local import LocalSearch
from dse.search.pareto import thin_to
from dse.space.axis import Axis
from dse.space.space import Space

LOCAL = "local"
"""The sampler that asks for whole generations: Pareto local search."""

GENERATION = 512
"""Designs a generation at most: one block of the model."""

GENERATIONS = 8
"""Generations a trial at most: a trial is written to the disk, which takes as long as the model for a generation."""

LEAST_GENERATIONS = 48
"""Generations a search has at least, and trials: the evaluations are divided so."""

FRONT_TRIALS = 500
"""Members of the front that a generation study shows as trials of their own."""

GRACE_SECONDS = 3
"""After so long a lock on a journal is one that a killed process left."""

ABSENT = timedelta(minutes=10)
"""After so long without a sign a worker on another machine is gone."""


@dataclass(frozen=True)
class _Choice:
    """A sampler of Optuna: ``make`` from a seed, designs a ``batch``, and whether the seed changes with the trials."""

    make: Callable[[int], BaseSampler]
    batch: int
    reseed: bool = True


_SAMPLERS = {
    "nsga2": _Choice(lambda seed: optuna.samplers.NSGAIISampler(seed=seed), 50),
    "nsga3": _Choice(lambda seed: optuna.samplers.NSGAIIISampler(seed=seed), 50),
    "tpe": _Choice(lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True), 10),
    "gp": _Choice(lambda seed: optuna.samplers.GPSampler(seed=seed, deterministic_objective=True), 4),
    # A sequence is one sequence only while its seed stays; it counts its points in the storage.
    "qmc": _Choice(lambda seed: optuna.samplers.QMCSampler(seed=seed, scramble=True), 256, reseed=False),
    "random": _Choice(lambda seed: RandomSampler(seed=seed), 256),
}

SAMPLERS = (LOCAL, *_SAMPLERS)


@dataclass
class Batch:
    """Designs to evaluate, by number, and the trials that asked for them."""

    index: np.ndarray
    trials: list[optuna.Trial]


def check_sampler(name: str) -> None:
    """Refuse a sampler that does not exist or cannot run here; raises InputError."""
    if name not in SAMPLERS:
        raise InputError(f"--sampler {name!r} is not known; {accepted(name, SAMPLERS)}")
    if name == "gp" and importlib.util.find_spec("torch") is None:
        raise InputError("--sampler gp needs torch, which is not installed; pip install torch, or use tpe")


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
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"--storage {url}: cannot be opened: {reason or type(error).__name__}") from None
    raise InputError(
        f"--storage {url!r} is not a storage; give journal:PATH, sqlite:///PATH, postgresql://user@host/name or "
        "grpc://host:port"
    )


def _storage(url: str) -> BaseStorage | None:
    scheme, _, rest = url.partition(":")
    if scheme == "journal" and rest:
        return _journal(Path(rest))
    if scheme == "grpc" and rest:
        return _proxy(rest.removeprefix("//"))
    return optuna.storages.get_storage(url) if "://" in url else None


def _journal(path: Path) -> JournalStorage:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise ValueError("is a folder; give a file")
    lock = JournalFileSymlinkLock(str(path), grace_period=GRACE_SECONDS)
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
        if "op_code" not in json.loads(file.readline() or b"{}"):
            raise ValueError("is no journal of Optuna")
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)


def _proxy(address: str) -> BaseStorage:
    host, _, port = address.partition(":")
    if not port.isdigit():
        raise ValueError("give grpc://host:port")
    from optuna.storages import GrpcStorageProxy

    return GrpcStorageProxy(host=host or "localhost", port=int(port))


class _Study:
    """What both kinds share: the study, its marks, the workers on it, and the fold over its finished trials.

    ``salt``: 0 for a worker that began alone, so that it repeats itself; others draw otherwise.
    """

    def __init__(self, space: Space, storage: BaseStorage, sampler: str, seed: int, batch: int) -> None:
        self.space, self.seed, self.storage = space, seed, storage
        self.known = Known(space)
        self._signs = np.asarray([o.sign for o in space.objectives])
        self.name = f"{space.name}, {sampler}, seed {seed}"
        self.axes = [_Parameter(axis) for axis in space.axes]
        self._folded: set[int] = set()
        self._worker = f"worker {socket.gethostname()}:{os.getpid()}"
        self.study = self._open()
        self._check_space()
        self.batch: int = self.study.user_attrs.get("batch", batch)
        self.study.set_user_attr("batch", self.batch)
        alone = not self._others()
        self._signed = datetime.min.replace(tzinfo=UTC)
        self._sign()
        self.salt = 0 if alone else sum(key.startswith("worker ") for key in self.study.user_attrs)
        if alone:
            self._settle()
        self._fold()

    def _open(self) -> optuna.Study:
        raise NotImplementedError

    def _settle(self) -> None:
        """Bring trials that a killed search left running to an end; no other worker is there."""
        raise NotImplementedError

    def _take(self, trials: list[FrozenTrial]) -> None:
        raise NotImplementedError

    def _check_space(self) -> None:
        """Write on a new study what it searches, or refuse one of other inputs or of another version."""
        found = self.study.user_attrs.setdefault("space", self.space.digest)
        if found != self.space.digest:
            raise InputError(
                f"the storage holds a search {self.study.study_name!r} of other inputs or of another version (digest "
                f"{found}, now {self.space.digest}); give another storage with --storage or -o, or another seed"
            )
        self.study.set_user_attr("space", found)

    def _sign(self) -> None:
        """Show other workers, once a minute, that this one is here."""
        if datetime.now(UTC) - self._signed > timedelta(minutes=1):
            self._signed = datetime.now(UTC)
            self.study.set_user_attr(self._worker, self._signed.isoformat(timespec="seconds"))

    def _others(self) -> bool:
        """Whether another worker is at the study: alive on this machine, or heard of lately from another."""
        host = socket.gethostname()
        for key, seen in self.study.user_attrs.items():
            if not key.startswith("worker ") or not seen or key == self._worker:
                continue
            machine, _, process = key.removeprefix("worker ").rpartition(":")
            lately = datetime.now(UTC) - datetime.fromisoformat(seen) < ABSENT
            if (machine == host and _alive(int(process))) or (machine != host and lately):
                return True
        return False

    def _fold(self) -> None:
        """Take in what has finished since the last time, other workers' trials too."""
        self._sign()
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))
        new = [trial for trial in trials if trial.number not in self._folded]
        self._folded.update(trial.number for trial in new)
        self._take(new)

    def _running(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def finish(self) -> None:
        """Write what is finished and not written yet."""

    def publish(self) -> None:
        """Show what dashboards should see beside the trials."""

    def close(self) -> None:
        """Say that this worker is gone."""
        self.study.set_user_attr(self._worker, "")


class GenerationSampler(BaseSampler):
    """Optuna's side of a vectorised search: a trial has no parameters but whole generations of designs."""

    def __init__(self, local: LocalSearch, seed: int) -> None:
        self.local, self.seed, self._others = local, seed, 0

    def draw(self, count: int) -> np.ndarray:
        """Return the next generation of at most ``count`` designs; workers that know the same draw differently."""
        random = np.random.default_rng([self.seed, self.local.generations, self._others])
        return self.local.ask(count, random)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Count the workers whose running trials came before this one."""
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        self._others = sum(other.number < trial.number for other in running)

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, BaseDistribution]:
        """No parameters."""
        return {}

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        """No parameters."""
        return {}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Draw a parameter that somebody adds at random."""
        return RandomSampler(seed=trial.number).sample_independent(study, trial, param_name, param_distribution)


class GenerationStudy(_Study):
    """Pareto local search: a trial is ``generations`` generations of ``batch`` designs, its value the hypervolume.

    The trial keeps which designs were evaluated and what entered the front. The front itself, thinned, is published
    as a study of ordinary trials beside it when the search ends, for dashboards.
    """

    def __init__(self, space: Space, storage: BaseStorage, seed: int, batch: int, generations: int) -> None:
        super().__init__(space, storage, LOCAL, seed, batch)
        self.generations = generations
        self.study.sampler = self._sampler = GenerationSampler(self.known.local, seed)
        self._trial: optuna.Trial | None = None
        self._done: list[dict[str, str]] = []

    def _open(self) -> optuna.Study:
        return optuna.create_study(
            study_name=f"{self.name}, generations", storage=self.storage, direction="maximize", load_if_exists=True
        )

    def _settle(self) -> None:
        for trial in self._running():
            self.study.tell(trial.number, state=TrialState.FAIL)

    def _take(self, trials: list[FrozenTrial]) -> None:
        for trial in trials:
            for generation in trial.user_attrs.get("generations", []) if trial.state == TrialState.COMPLETE else []:
                index, entrants, table = _unpacked(generation, len(self.space.objectives) + 1)
                self.known.add(index, entrants, table[:, :-1], table[:, -1])

    def ask(self, most: int) -> Batch | None:
        """Return the next generation, of at most ``most`` designs; None when every design has been evaluated."""
        if self._trial is None:
            self._fold()
            self._trial = self.study.ask()
        index = self._sampler.draw(min(self.batch, most))
        return Batch(index, [self._trial]) if len(index) else None

    def tell(self, batch: Batch, evaluated: Evaluated) -> None:
        """Finish a generation."""
        had = ~evaluated.blank
        entrants, costs, missed = evaluated.index[had], evaluated.costs[had], evaluated.violation[had]
        entered = self.known.add(evaluated.index, entrants, costs, missed)
        table = np.column_stack([costs, missed])[entered]
        self._done.append(_packed(evaluated.index, entrants[entered], table))
        if len(self._done) == self.generations:
            self.finish()

    def finish(self) -> None:
        """Write the trial in hand with the generations that it has."""
        if self._trial is None:
            return
        self._folded.add(self._trial.number)
        if self._done:
            self._trial.set_user_attr("generations", self._done)
            self.study.tell(self._trial, self.known.hypervolume)
        else:
            self.study.tell(self._trial, state=TrialState.FAIL)
        self._trial, self._done = None, []

    def publish(self) -> None:
        """Show the front, thinned, as a study of ordinary trials."""
        if not self.known.feasible:
            return
        shown = optuna.create_study(
            study_name=self.name, storage=self.storage, load_if_exists=True, directions=_directions(self.space)
        )
        shown.set_metric_names([o.name for o in self.space.objectives])
        local = self.known.local
        kept = thin_to(local.costs, FRONT_TRIALS)
        there = {trial.user_attrs.get("design") for trial in shown.get_trials(deepcopy=False)}
        kept = [int(k) for k in kept if int(local.index[k]) not in there]
        digits = local.grid.digits(local.index[kept])
        shown.add_trials(
            optuna.create_trial(
                params={p.name: p.value(d) for p, d in zip(self.axes, row, strict=True)},
                distributions={p.name: p.distribution for p in self.axes},
                values=(self._signs * local.costs[k]).tolist(),
                user_attrs={"design": int(local.index[k])},
            )
            for k, row in zip(kept, digits, strict=True)
        )


class DesignStudy(_Study):
    """A sampler of Optuna's own: a trial is a design, asked and told in batches."""

    def __init__(self, space: Space, storage: BaseStorage, sampler: str, seed: int) -> None:
        self._choice = _SAMPLERS[sampler]
        self._asked: list[optuna.Trial] = []
        super().__init__(space, storage, sampler, seed, self._choice.batch)
        self.study.set_metric_names([o.name for o in space.objectives])

    def _open(self) -> optuna.Study:
        return optuna.create_study(
            study_name=self.name, storage=self.storage, directions=_directions(self.space), load_if_exists=True,
            sampler=RandomSampler(),
        )  # fmt: skip

    def _settle(self) -> None:
        """Keep the trials that have all parameters: they are told with the batch that they were asked for."""
        for trial in self._running():
            if len(trial.params) < len(self.axes):
                self.study.tell(trial.number, state=TrialState.FAIL)
            else:
                self._asked.append(optuna.Trial(self.study, trial._trial_id))

    def _take(self, trials: list[FrozenTrial]) -> None:
        ended = [trial for trial in trials if _has_ended(trial)]
        while ended:  # batch by batch, as they were told
            count = self._to_ask(self.known.count)
            self._take_batch(ended[:count])
            ended = ended[count:]

    def _to_ask(self, ended: int) -> int:
        """Trials that the batch in hand takes after so many."""
        if not self._choice.reseed and ended == 0:
            return 1  # a sequence starts only when a finished trial tells it the axes
        return self.batch - ended % self.batch

    def _take_batch(self, ended: list[FrozenTrial]) -> None:
        index = self._index([trial.params for trial in ended])
        had = np.asarray([trial.state == TrialState.COMPLETE for trial in ended])
        complete = [trial for trial in ended if trial.state == TrialState.COMPLETE]
        costs = self._signs * np.asarray([t.values for t in complete]).reshape(-1, len(self._signs))
        missed = np.maximum([sum(trial.constraints.values()) for trial in complete], 0.0)
        self.known.add(index, index[had], costs, missed)

    def _index(self, params: list[dict[str, Any]]) -> np.ndarray:
        digits = [[p.digit(row[p.name]) for p in self.axes] for row in params]
        return self.known.local.grid.index(np.asarray(digits, np.int64).reshape(len(params), len(self.axes)))

    def ask(self, most: int) -> Batch | None:
        """Return the next batch, of at most ``most`` designs and those that a killed search asked for."""
        trials, self._asked = self._asked, []
        ended = self.known.count
        count = min(self._to_ask(ended), most)
        space: dict[str, BaseDistribution] = {p.name: p.distribution for p in self.axes}
        while len(trials) < count:
            # A seed a trial: what is drawn does not depend on which trials this process asked for before.
            place = [self.salt, ended + len(trials)] if self._choice.reseed else []
            seed = np.random.SeedSequence([self.seed, *place]).generate_state(1)[0]
            self.study.sampler = self._choice.make(int(seed))
            trials.append(self.study.ask(space))
        return Batch(self._index([trial.params for trial in trials]), trials)

    def tell(self, batch: Batch, evaluated: Evaluated) -> None:
        """Finish a batch: a design that misses something carries by how much, one without results failed."""
        for position, trial in enumerate(batch.trials):
            if evaluated.blank[position]:
                trial.set_user_attr("no_result", True)
                self.study.tell(trial, state=TrialState.FAIL)
                continue
            if "feasible" not in trial.constraints:
                trial.set_constraint("feasible", float(evaluated.violation[position]))
            self.study.tell(trial, (self._signs * evaluated.costs[position]).tolist())
        self._fold()


class _Parameter:
    """An axis as a parameter of Optuna: its values where they are evenly spaced whole numbers or names, else places."""

    def __init__(self, axis: Axis) -> None:
        self.name, self._values = axis.name, axis.values
        numbers = np.asarray(axis.numbers)
        steps = np.diff(numbers)
        self.distribution: BaseDistribution
        if axis.attribute.choices or axis.attribute.type == "bool":
            self.distribution = CategoricalDistribution(self._values)
        elif (numbers == np.round(numbers)).all() and (steps > 0).all() and (steps == steps[:1]).all():
            step = int(steps[0]) if len(steps) else 1
            self.distribution = IntDistribution(int(numbers[0]), int(numbers[-1]), step=step)
        else:
            self.name = f"{axis.name} (place)"
            self.distribution = IntDistribution(0, len(numbers) - 1)
            self._values = list(range(len(numbers)))
        self._digits = {value: digit for digit, value in enumerate(self._values)}

    def value(self, digit: int) -> Any:
        """Return the parameter's value at a place of the axis."""
        value = self._values[int(digit)]
        return int(value) if isinstance(self.distribution, IntDistribution) else value

    def digit(self, value: Any) -> int:
        """Return the place of a value on the axis."""
        return self._digits[value]


def make_study(space: Space, storage: BaseStorage, sampler: str, seed: int, evaluations: int) -> "Searching":
    """Return the study of a sampler by name; one that was begun in the storage goes on."""
    if sampler == LOCAL:
        batch = int(np.clip(evaluations // LEAST_GENERATIONS, 16, GENERATION))
        generations = int(np.clip(evaluations // (LEAST_GENERATIONS * batch), 1, GENERATIONS))
        return GenerationStudy(space, storage, seed, batch, generations)
    return DesignStudy(space, storage, sampler, seed)


Searching = GenerationStudy | DesignStudy


def _directions(space: Space) -> list[StudyDirection]:
    return [StudyDirection.MINIMIZE if o.sign > 0 else StudyDirection.MAXIMIZE for o in space.objectives]


def _has_ended(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.COMPLETE or (trial.state == TrialState.FAIL and "no_result" in trial.user_attrs)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _packed(index: np.ndarray, entrants: np.ndarray, table: np.ndarray) -> dict[str, str]:
    """A generation as texts: designs and entrants as 64-bit whole numbers, costs and violation as 64-bit floats."""
    arrays = {"designs": index.astype("<i8"), "front": entrants.astype("<i8"), "costs": table.astype("<f8")}
    return {key: base64.b64encode(zlib.compress(array.tobytes(), 1)).decode() for key, array in arrays.items()}


def _unpacked(attr: dict[str, str], width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    raw = {key: zlib.decompress(base64.b64decode(text)) for key, text in attr.items()}
    index, entrants = np.frombuffer(raw["designs"], "<i8"), np.frombuffer(raw["front"], "<i8")
    return index.astype(np.int64), entrants.astype(np.int64), np.frombuffer(raw["costs"], "<f8").reshape(-1, width)

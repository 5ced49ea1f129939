"""Portions on a Dask cluster, the only file that imports distributed: workers may come, go and die.

Every worker gets the space once (a plugin, which a worker that comes later gets too), and then the bounds of portions.
A portion whose worker dies is given to another one; no other portion is lost.
"""

import logging
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from itertools import count, islice
from threading import Lock
from typing import Any

import jax

from dse.base.compilation import cache_compilations
from dse.base.errors import InputError
from dse.evaluate.batching import float_type
from dse.grid.checkpoint import GO_ON
from dse.grid.machine import machine, unlike
from dse.grid.shard import Portion, PortionResult, SpaceEvaluator

try:
    import distributed
    from distributed.client import FutureCancelledError
    from distributed.diagnostics.plugin import WorkerPlugin
except ImportError:
    raise InputError("--cluster needs Dask; pip install 'gpu-dse[cluster]'") from None

PATIENCE = 20
"""Seconds to wait for a scheduler's first answer."""

DEATHS = 5
"""Times that a portion is tried again after all workers that had it died (Dask itself tries four)."""


class SweepWorker(WorkerPlugin):
    """What a worker holds of a sweep: its space, and the evaluator from the first portion on."""

    def __init__(self, evaluator: SpaceEvaluator) -> None:
        self.name = f"dse {evaluator.space.digest} {evaluator.chunk_size} {float_type().__name__}"
        self._space, self._chunk = pickle.dumps(evaluator.space), evaluator.chunk_size
        self._wide = float_type().__name__ == "float64"

    def setup(self, worker: Any) -> None:
        """Prepare a worker, when it joins."""
        jax.config.update("jax_enable_x64", self._wide)
        cache_compilations()
        self._lock, self._evaluator = Lock(), None

    def evaluate(self, portion: Portion, keep_all: bool) -> tuple[PortionResult, dict[str, str]]:
        """Evaluate a portion; return it and what this worker computes with."""
        with self._lock:
            if self._evaluator is None:
                self._evaluator = SpaceEvaluator(pickle.loads(self._space), self._chunk)
                self._evaluator.compile()
        return self._evaluator.portion(portion, keep_all), machine()


def _evaluate(plugin: str, portion: Portion, keep_all: bool) -> tuple[PortionResult, dict[str, str]]:
    """Evaluate a portion on the worker that runs this."""
    return distributed.get_worker().plugins[plugin].evaluate(portion, keep_all)  # pyright: ignore[reportAttributeAccessIssue]


def on_cluster(
    cluster: Any,
    evaluator: SpaceEvaluator,
    todo: Iterable[Portion],
    keep_all: bool,
    progress: Callable[[int], None],
    notes: list[str],
) -> Generator[PortionResult]:
    """Yield the portions as workers of a cluster finish them.

    ``cluster``: a scheduler's address, ``local:N`` for N processes of this machine, or a cluster object of Dask's.
    ``notes`` takes what the workers are unlike this machine in. Raises InputError where there is no cluster, or where
    it is lost.
    """
    ours, seen = machine(), set[str]()
    with ExitStack() as stack:
        client = stack.enter_context(_client(cluster, stack))
        try:
            plugin = _registered(client, SweepWorker(evaluator), stack)
            for evaluated, theirs in _Portions(client, plugin, keep_all).run(iter(todo)):
                _compare(ours, theirs, seen, notes)
                progress(evaluated.portion.stop - evaluated.portion.start)
                yield evaluated
        except (CancelledError, FutureCancelledError, OSError) as error:
            raise InputError(f"--cluster {cluster}: the scheduler is lost ({type(error).__name__}); {GO_ON}") from None


def check_cluster(cluster: Any) -> None:
    """Raise InputError where an address names no cluster, so that nothing is begun in vain."""
    with ExitStack() as stack:
        if _processes(cluster) is None:
            stack.enter_context(_client(cluster, stack))


def _compare(ours: dict[str, str], theirs: dict[str, str], seen: set[str], notes: list[str]) -> None:
    """Note, once, in what a worker is unlike this machine; raises InputError where its results are other ones."""
    if theirs["dse"] != ours["dse"]:
        raise InputError(f"--cluster: a worker has dse {theirs['dse']}, not {ours['dse']}; install the same")
    text = ", ".join(unlike(ours, theirs))
    if text and text not in seen:
        seen.add(text)
        notes.append(f"workers with {text}: equal to one machine's result within about 1e-6, not to the bit")


class _Portions:
    """Portions in the hands of a cluster: two for each of its threads, as many as it has at the time."""

    def __init__(self, client: Any, plugin: str, keep_all: bool) -> None:
        self._client, self._plugin, self._keep_all = client, plugin, keep_all
        self._numbers, self._deaths = count(), dict[int, int]()
        self._portion: dict[Any, Portion] = {}
        self._ready = distributed.as_completed(loop=client.loop)

    def run(self, todo: Iterator[Portion]) -> Iterator[tuple[PortionResult, dict[str, str]]]:
        """Yield the results as they come."""
        try:
            self._fill(todo)
            for future in self._ready:
                portion = self._portion.pop(future)
                result = self._result(future, portion)
                self._fill(todo)
                if result is not None:
                    yield result
        finally:
            with suppress(Exception):
                self._client.cancel(list(self._portion), force=True)

    def _fill(self, todo: Iterator[Portion]) -> None:
        room = max(2, 2 * sum(self._client.ncores().values())) - len(self._portion)
        for portion in islice(todo, max(room, 0)):
            self._submit(portion)

    def _submit(self, portion: Portion) -> None:
        key = f"{self._plugin} {id(self)} {next(self._numbers)}"
        future = self._client.submit(_evaluate, self._plugin, portion, self._keep_all, key=key, pure=False)
        self._portion[future] = portion
        self._ready.add(future)

    def _result(self, future: Any, portion: Portion) -> tuple[PortionResult, dict[str, str]] | None:
        """Return a portion's result; None where its workers died and it is tried again."""
        try:
            return future.result()
        except distributed.KilledWorker as error:
            self._deaths[portion.number] = self._deaths.get(portion.number, 0) + 1
            if self._deaths[portion.number] > DEATHS:
                raise InputError(f"--cluster: designs {portion.start:,} on killed every worker ({error})") from None
            self._submit(portion)
            return None


def _client(cluster: Any, stack: ExitStack) -> Any:
    """Return the client of a cluster, started where it is ``local:N``."""
    address, number = cluster, _processes(cluster)
    if number is not None:
        address = stack.enter_context(
            distributed.LocalCluster(
                n_workers=number, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
            )
        )
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"--cluster {cluster}: no scheduler answers ({said}); give tcp://HOST:PORT of 'dask scheduler', or local:N"
        ) from None


def _processes(cluster: Any) -> int | None:
    """N of ``local:N``, None for any other cluster."""
    if not isinstance(cluster, str) or not cluster.startswith("local:"):
        return None
    number = cluster.removeprefix("local:")
    if not number.isdigit() or int(number) < 1:
        raise InputError(f"--cluster {cluster} is not accepted; give local:N with a whole number of at least 1")
    return int(number)


def _registered(client: Any, plugin: SweepWorker, stack: ExitStack) -> str:
    """Give the plugin to all workers, now and later, until the sweep ends; return its name."""
    try:
        client.register_plugin(plugin, name=plugin.name)
    except ImportError as error:
        raise InputError(f"--cluster: the workers lack a package ({error}); install gpu-dse[cluster] there") from None
    stack.callback(_forget, client, plugin.name)
    return plugin.name


def _forget(client: Any, name: str) -> None:
    with suppress(Exception):
        client.unregister_worker_plugin(name)

"""Shards on a Dask cluster, whose workers may come, go and die; the only file that imports distributed.

Every worker gets the space once (a plugin, which a worker that joins later gets too), and then the bounds of shards.
A shard whose worker dies is given to another one; no other shard is lost.
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

from dse.base.errors import InputError
from dse.base.extras import extra
from dse.base.kept.between_commands import cache_compilations
from dse.evaluate.batching import float_type
from dse.grid.checkpoint import GO_ON
from dse.grid.machine import machine, unlike
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator

with extra("cluster", "--cluster"):
    import distributed
    from distributed.client import FutureCancelledError
    from distributed.diagnostics.plugin import WorkerPlugin

PATIENCE = 20
"""Seconds to wait for a scheduler's first answer."""

DEATHS = 5
"""Times that a shard is tried again after all workers that had it died (Dask itself tries four), and times that the
space is sent again to workers of which one has died meanwhile."""

LOOPBACK = "127.0.0.1"
"""Where the scheduler and the dashboard of ``local:N`` listen: nobody else's machine reaches them."""


class SweepWorker(WorkerPlugin):
    """A worker's part of a sweep: its space, and the evaluator from the first shard on."""

    def __init__(self, evaluator: SpaceEvaluator) -> None:
        self.name = f"dse {evaluator.space.digest} {evaluator.chunk_size} {float_type().__name__} {evaluator.reduced}"
        self._space, self._chunk, self._reduced = pickle.dumps(evaluator.space), evaluator.chunk_size, evaluator.reduced
        self._wide = float_type().__name__ == "float64"

    def setup(self, worker: Any) -> None:
        """Prepare a worker, when it joins."""
        jax.config.update("jax_enable_x64", self._wide)
        cache_compilations()
        self._lock, self._evaluator = Lock(), None

    def evaluate(self, shard: Shard, keep_all: bool) -> tuple[ShardResult, dict[str, str]]:
        """Evaluate a shard; return it and this worker's processor, device and versions."""
        with self._lock:
            if self._evaluator is None:
                self._evaluator = SpaceEvaluator(pickle.loads(self._space), self._chunk, reduced=self._reduced)
                self._evaluator.compile()
        return self._evaluator.shard(shard, keep_all), machine()


def _evaluate(plugin: str, shard: Shard, keep_all: bool) -> tuple[ShardResult, dict[str, str]]:
    """Evaluate a shard on the worker that runs this."""
    return distributed.get_worker().plugins[plugin].evaluate(shard, keep_all)  # pyright: ignore[reportAttributeAccessIssue]


def on_cluster(
    cluster: Any,
    evaluator: SpaceEvaluator,
    todo: Iterable[Shard],
    keep_all: bool,
    progress: Callable[[int], None],
    notes: list[str],
) -> Generator[ShardResult]:
    """Yield the shards as workers of a cluster finish them.

    ``cluster``: a scheduler's address, ``local:N`` for N processes of this machine, or a cluster object of Dask's.
    ``notes`` gains how the workers differ from this machine. Raises InputError where there is no cluster, or where
    it is lost.
    """
    ours, noted = machine(), set[str]()
    with ExitStack() as stack:
        client = stack.enter_context(_client(cluster, stack))
        try:
            plugin = _registered(client, SweepWorker(evaluator), stack)
            for evaluated, theirs in _SubmittedShards(client, plugin, keep_all).run(iter(todo)):
                _compare(ours, theirs, noted, notes)
                progress(evaluated.shard.stop - evaluated.shard.start)
                yield evaluated
        except (CancelledError, FutureCancelledError, OSError) as error:
            reply = " ".join(str(error).split()) or type(error).__name__
            lost = f"workers were lost, the scheduler answers ({reply})"
            if not _answers(client):
                lost = f"the scheduler is lost ({type(error).__name__})"
            raise InputError(f"--cluster {cluster}: {lost}; {GO_ON}") from None


def check_cluster(cluster: Any) -> None:
    """Raise InputError where an address names no cluster, so that nothing is begun in vain."""
    with ExitStack() as stack:
        if _processes(cluster) is None:
            stack.enter_context(_client(cluster, stack))


def _compare(ours: dict[str, str], theirs: dict[str, str], noted: set[str], notes: list[str]) -> None:
    """Note once how a worker differs from this machine; raises InputError where its version of dse does."""
    if theirs["dse"] != ours["dse"]:
        raise InputError(f"--cluster: a worker has dse {theirs['dse']}, not {ours['dse']}; install the same")
    text = ", ".join(unlike(ours, theirs))
    if text and text not in noted:
        noted.add(text)
        notes.append(f"workers with {text}: equal to one machine's result within about 1e-6, not to the bit")


class _SubmittedShards:
    """Shards submitted to a cluster: two for each of the threads that it has at the time."""

    def __init__(self, client: Any, plugin: str, keep_all: bool) -> None:
        self._client, self._plugin, self._keep_all = client, plugin, keep_all
        self._numbers, self._deaths = count(), dict[int, int]()
        self._shards: dict[Any, Shard] = {}
        self._ready = distributed.as_completed(loop=client.loop)

    def run(self, todo: Iterator[Shard]) -> Iterator[tuple[ShardResult, dict[str, str]]]:
        """Yield the results as they come."""
        try:
            self._fill(todo)
            for future in self._ready:
                shard = self._shards.pop(future)
                result = self._result(future, shard)
                self._fill(todo)
                if result is not None:
                    yield result
        finally:
            with suppress(Exception):
                self._client.cancel(list(self._shards), force=True)

    def _fill(self, todo: Iterator[Shard]) -> None:
        room = max(2, 2 * sum(self._client.ncores().values())) - len(self._shards)
        for shard in islice(todo, max(room, 0)):
            self._submit(shard)

    def _submit(self, shard: Shard) -> None:
        key = f"{self._plugin} {id(self)} {next(self._numbers)}"
        future = self._client.submit(_evaluate, self._plugin, shard, self._keep_all, key=key, pure=False)
        self._shards[future] = shard
        self._ready.add(future)

    def _result(self, future: Any, shard: Shard) -> tuple[ShardResult, dict[str, str]] | None:
        """Return a shard's result; None where its workers died and it is tried again."""
        try:
            return future.result()
        except distributed.KilledWorker as error:
            self._deaths[shard.number] = self._deaths.get(shard.number, 0) + 1
            if self._deaths[shard.number] > DEATHS:
                raise InputError(f"--cluster: designs {shard.start:,} on killed every worker ({error})") from None
            self._submit(shard)
            return None


def _client(cluster: Any, stack: ExitStack) -> Any:
    """Return the client of a cluster, started where it is ``local:N``."""
    address, number = cluster, _processes(cluster)
    if number is not None:
        address = stack.enter_context(
            distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                silence_logs=logging.ERROR,
            )
        )
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reply = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"--cluster {cluster}: no scheduler answers ({reply}); give tcp://HOST:PORT of 'dask scheduler', tls:// "
            "where it has certificates, or local:N"
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
    """Give the plugin to all workers, now and later, until the sweep ends; return its name.

    The scheduler sends it to all workers at once, and fails where one of them dies meanwhile: it is sent again.
    """
    stack.callback(_forget, client, plugin.name)
    for death in count(1):
        try:
            client.register_plugin(plugin, name=plugin.name)
            break
        except ImportError as error:
            raise InputError(
                f"--cluster: the workers lack a package ({error}); install gpu-dse[cluster] there"
            ) from None
        except (OSError, CancelledError):
            if death > DEATHS or not _answers(client):
                raise
    return plugin.name


def _answers(client: Any) -> bool:
    """Tell whether the scheduler of a client still answers."""
    try:
        client.sync(client.scheduler.identity, callback_timeout=PATIENCE / 2)
    except Exception:  # whatever Dask makes of a closed connection
        return False
    return True


def _forget(client: Any, name: str) -> None:
    with suppress(Exception):
        client.unregister_worker_plugin(name)

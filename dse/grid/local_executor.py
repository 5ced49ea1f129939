"""Shards on this machine: two threads a device, since one program keeps a core or a GPU busy most of its time."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Event, Lock

from dse.base.compilation import pool_of
from dse.grid.shard import Shard, ShardResult, SpaceEvaluator

THREADS = 2
"""Shards in evaluation at once on a device."""


class _StoppedError(Exception):
    """The sweep has ended; the shard in evaluation is given up."""


def on_this_machine(
    evaluator: SpaceEvaluator, todo: Iterable[Shard], keep_all: bool, progress: Callable[[int], None]
) -> Generator[ShardResult]:
    """Yield the shards as they are finished; ``progress`` is called after each chunk."""
    stop, lock = Event(), Lock()

    def tick(count: int) -> None:
        if stop.is_set():
            raise _StoppedError
        with lock:
            progress(count)

    count = THREADS * len(evaluator.devices)
    running: set[Future[ShardResult]] = set()
    with pool_of(count) as pool:
        try:
            for shard in todo:
                running.add(pool.submit(evaluator.shard, shard, keep_all, tick))
                if len(running) > count:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            stop.set()
            for future in running:
                future.cancel()

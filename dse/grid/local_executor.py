"""Portions on this machine: two threads a device, since one program keeps a core or a GPU busy for most of its time."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Event, Lock

from dse.base.compilation import pool_of
from dse.grid.shard import Portion, PortionResult, SpaceEvaluator

THREADS = 2
"""Portions in evaluation at once on a device."""


class _StoppedError(Exception):
    """The sweep has ended; the portion in hand is given up."""


def on_this_machine(
    evaluator: SpaceEvaluator, todo: Iterable[Portion], keep_all: bool, progress: Callable[[int], None]
) -> Generator[PortionResult]:
    """Yield the portions as they are finished; ``progress`` is called after each chunk."""
    stop, lock = Event(), Lock()

    def tick(count: int) -> None:
        if stop.is_set():
            raise _StoppedError
        with lock:
            progress(count)

    count = THREADS * len(evaluator.devices)
    running: set[Future[PortionResult]] = set()
    with pool_of(count) as pool:
        try:
            for portion in todo:
                running.add(pool.submit(evaluator.portion, portion, keep_all, tick))
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

"""Shards on this machine: each once, errors handed on, and nothing evaluated after the end."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from dse.grid.local_executor import on_this_machine


class Evaluator:
    """Evaluates a number to its square, in ``ticks`` chunks."""

    def __init__(self, ticks: int = 1) -> None:
        self.devices, self.ticks, self.evaluated = ["one"], ticks, []

    def shard(self, number: int, keep_all: bool, tick: Callable[[int], None]) -> int:
        for _ in range(self.ticks):
            tick(1)
        if number < 0:
            raise ValueError(number)
        self.evaluated.append(number)
        return number**2


def run(evaluator: Any, numbers: Any, progress: Callable[[int], None] = lambda count: None) -> list[Any]:
    return list(on_this_machine(evaluator, numbers, False, progress))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_every_shard_comes_back_once(count: int) -> None:
    assert sorted(run(Evaluator(), range(count))) == [n**2 for n in range(count)]


def test_progress_is_reported_of_each_chunk_by_one_thread_at_a_time() -> None:
    counts, busy = [], threading.Lock()

    def progress(count: int) -> None:
        assert busy.acquire(blocking=False)
        counts.append(count)
        busy.release()

    run(Evaluator(ticks=5), range(20), progress)
    assert counts == [1] * 100


def test_an_error_ends_the_sweep() -> None:
    with pytest.raises(ValueError, match="-7"):
        run(Evaluator(), [1, 2, -7, *range(100)])


def test_who_stops_reading_stops_the_evaluation() -> None:
    evaluator = Evaluator()
    results: Any = on_this_machine(evaluator, iter(range(10_000)), False, lambda count: None)  # pyright: ignore[reportArgumentType]
    next(results)
    results.close()
    assert len(evaluator.evaluated) < 20

"""Time of a kernel on the host's clock: many launches of one program, and one dispatch by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import jax

WARM_UP = 2
"""Runs of a program before the first that is timed."""


@dataclass(frozen=True)
class Times:
    """Time of a launch over runs of a program."""

    middle: float  # median [us]
    low: float  # [us]
    high: float  # [us]
    repeats: int  # runs


def times(run: Callable[[], Any], launches: int, repeats: int, warm_up: int = WARM_UP) -> Times:
    """Return the time of one of the ``launches`` that ``run`` makes, synchronised with the host [us]."""
    for _ in range(warm_up):
        jax.block_until_ready(run())
    readings = []
    for _ in range(repeats):
        start = perf_counter()
        jax.block_until_ready(run())
        readings.append((perf_counter() - start) * 1e6 / launches)
    return Times(median(readings), min(readings), max(readings), repeats)


def busy(run: Callable[[], Any], seconds: float) -> None:
    """Run again and again for ``seconds`` [s], one run queued ahead, so that the device never waits."""
    end, before = perf_counter() + seconds, run()
    while perf_counter() < end:
        ahead = run()
        jax.block_until_ready(before)
        before = ahead
    jax.block_until_ready(before)

"""Work accounting: how many instructions a library's kernels execute, over those that a generated kernel counts.

A generated kernel holds what its algorithm asks for. What a compiler adds (addresses, predicates, moves) a profiler
counts, and a calibration may hold its share by class (Asri and others, simulator calibration: the stage that closes
their largest gap).
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jax import Array

from dse.base.errors import InputError
from dse.base.toml_file import coefficient, refuse_keys
from dse.workload.implementation import PerImplementation
from dse.workload.kernel import Interval, Kernel

CLASSES = {"instructions": ("instructions",), "lanes": ("fp32", "int32"), "sfu": ("sfu",)}
"""Class of instructions -> its counts in an interval."""


class Work(PerImplementation):
    """Executed over generated warp instructions, by class: numbers, or arrays with one for each of IMPLEMENTATIONS."""

    instructions: Array | np.ndarray | float = 1.0  # [1] of all that are issued
    lanes: Array | np.ndarray | float = 1.0  # [1] of those on FP32 and INT32 lanes
    sfu: Array | np.ndarray | float = 1.0  # [1] of those on special-function units

    def counted(self, kernel: Kernel) -> Kernel:
        """Return the kernel with the instructions that are executed."""
        start, loop, end = (self._interval(interval) for interval in kernel.intervals)
        return replace(kernel, start=start, loop=loop, end=end)

    def _interval(self, interval: Interval) -> Interval:
        scaled = {
            count: getattr(interval, count) * getattr(self, name)
            for name, counts in CLASSES.items()
            for count in counts
        }
        return replace(interval, **scaled)

    def factors(self) -> dict[str, float]:
        """Return the factors of one implementation by class."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self)}


def executed(work: Work | None, kernel: Kernel) -> Kernel:
    """Return the kernel with the instructions that are executed: as it is where nothing was counted."""
    return kernel if work is None else work.counted(kernel)


def generated(kernel: Kernel, name: str) -> Any:
    """Return the warp instructions of a class that a generated kernel's grid has in all."""
    return kernel.ctas * kernel.warps * sum(kernel.per_warp(count) for count in CLASSES[name])


def composed(works: Sequence[Work | None]) -> Work | None:
    """Return the work of all implementations as one record, None where no instructions of any were counted."""
    if not any(works):
        return None
    return Work(*(np.array([getattr(work or Work(), f.name) for work in works], float) for f in fields(Work)))


def read_work(path: Path, place: str, content: Any) -> Work | None:
    """Return the work of a calibration's table, None where it has none; ``place``: the table around it and a dot.

    Raises InputError.
    """
    if content is None:
        return None
    where = f"{place}work"
    if not isinstance(content, dict):
        raise InputError(f"{path}: {where} is {content!r}; give a table")
    refuse_keys(path, where, content, tuple(CLASSES))
    return Work(**{name: coefficient(path, f"{where}.{name}", value) for name, value in content.items()})

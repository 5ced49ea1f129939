"""XLA's list of what a program starts on a GPU: kernels with their grids, copies, and loops of them."""

import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

STARTED = ("kCustomKernel", "kKernel", "kCopy", "kMemset32BitValue", "kMemzero", "kGemm", "kCubSort", "kCustomCall")
"""Kinds that are one launch each; others hold some, or none."""

_LINE = re.compile(r"^(\s*)(\d+): (k\w+)\s*(?:\[[^\]]*\])?\s*(.*)$")
_GRID = re.compile(r"^(\S+) grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]")
_BRANCH = re.compile(r"^\s*(condition|body|branch_computation\S*):")


class Launch(NamedTuple):
    """A kernel, or a copy (``kernel`` empty): ``times`` a call it is started with ``threads``; ``source``: its HLO
    instruction; ``known``: whether all loops around it say how often they run."""

    kernel: str
    threads: int
    times: int
    source: str
    known: bool


def sources(metadata: str) -> dict[int, str]:
    """Return the HLO instruction of each thunk, from the text of ``thunk_metadata``."""
    found = re.findall(r'profile_annotation: "([^"]*)"\s*thunk_id: (\d+)', metadata)
    return {int(number): name for name, number in found}


class _Loop(NamedTuple):
    """What stands inside a loop, by its indent: started ``times``; ``own``: whether the loop's own trips are known,
    ``known``: those of all around it too."""

    indent: int
    times: int
    own: bool
    known: bool


def launches(sequence: str, source_of: Mapping[int, str], trips: Mapping[str, int | None]) -> list[Launch]:
    """Return all launches of a call from the text of ``thunk_sequence``.

    A loop whose trips are known starts no condition; of one that does not tell them, one pass is counted.
    """
    found: list[Launch] = []
    loops = [_Loop(-1, 1, False, True)]
    skipped = False  # whether a condition that is never started is read
    for line in sequence.splitlines():
        if branch := _BRANCH.match(line):
            skipped = branch[1] == "condition" and loops[-1].own
        parts = None if skipped else _LINE.match(line)
        if parts is None:
            continue
        indent, number, kind = len(parts[1]), int(parts[2]), parts[3]
        while indent <= loops[-1].indent:
            loops.pop()
        source = source_of.get(number, "")
        if kind == "kWhile":
            count = trips.get(source)
            known = count is not None
            loops.append(_Loop(indent, loops[-1].times * (count or 1), known, known and loops[-1].known))
        elif kind in STARTED:
            grid = _GRID.match(parts[4])
            threads = prod(map(int, grid.groups()[1:])) if grid else 0
            name = grid[1] if grid else ""
            found.append(Launch(name, threads, loops[-1].times, source, loops[-1].known))
    return found

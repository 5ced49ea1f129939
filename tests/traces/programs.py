"""Random programs of one warp, and the plain recurrence over their instructions."""

from typing import NamedTuple

import numpy as np

from dse.traces.segments import COMPUTE, GLOBAL, SHARED


class Program(NamedTuple):
    """Instructions as :func:`dse.traces.segments.make_segments` takes them."""

    destination: np.ndarray
    sources: np.ndarray
    source_count: np.ndarray
    row: np.ndarray
    cause: np.ndarray


def random_program(seed: int, instructions: int = 120, registers: int = 12, rows: int = 6) -> Program:
    """Return a program in which registers are read, written again, read twice, and never written."""
    rng = np.random.default_rng(seed)
    cause_of_row = rng.choice([COMPUTE, COMPUTE, SHARED, GLOBAL], rows)
    row = rng.integers(rows, size=instructions)
    return Program(
        destination=np.where(rng.random(instructions) < 0.8, rng.integers(registers, size=instructions), -1),
        sources=rng.integers(registers + 2, size=(instructions, 4)),
        source_count=rng.integers(0, 5, size=instructions),
        row=row,
        cause=cause_of_row[row],
    )


class Plain(NamedTuple):
    """A warp in time: issue cycles, stalls and their causes (largest, and by operand order), drain and its cause."""

    issue: np.ndarray
    stall: np.ndarray
    largest: np.ndarray
    in_order: np.ndarray
    drain: float
    drain_cause: int


def plain_recurrence(program: Program, latency: np.ndarray) -> Plain:
    """Return the recurrence of docs/model/timing_traced.md 5 instruction by instruction, with a table of registers."""
    done: dict[int, float] = {}
    cause: dict[int, int] = {}
    n = len(program.row)
    issue, stall = np.zeros(n), np.zeros(n)
    largest, in_order = np.zeros(n, int), np.zeros(n, int)
    before = 0.0
    for i in range(n):
        ready = running = before + 1
        registers = [r for r in program.sources[i, : program.source_count[i]].tolist() if r in done]
        for r in registers:
            running = max(running, done[r])
            if running > ready and cause[r] == GLOBAL:
                in_order[i] = GLOBAL
        largest[i] = max((cause[r] for r in registers if done[r] == running), default=COMPUTE)
        issue[i], stall[i], before = running, running - ready, running
        if program.destination[i] >= 0:
            r = int(program.destination[i])
            done[r], cause[r] = running + latency[program.row[i]], int(program.cause[i])
    start = int(np.flatnonzero(stall > 0)[-1]) if (stall > 0).any() else 0
    ends = issue[start:] + latency[program.row[start:]]
    last = ends.max()
    drain_cause = int(program.cause[start:][ends == last].max())
    return Plain(issue, stall, largest, in_order, max(last - issue[-1] - 1, 0.0), drain_cause)

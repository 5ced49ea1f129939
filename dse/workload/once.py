"""Operators of a workload that are alike, evaluated once: layers of two kinds have many in common.

DeepSeek-V3 has dense layers and such with experts, whose attention is the same; windows and full attention stand
between the same projections.
"""

from collections.abc import Hashable
from dataclasses import replace

import jax
import numpy as np

from dse.workload.workload import Workload

LEAST_SAVED = 0.1
"""Share of the candidates below which operators stay as they are: two norms alike save nothing that shows."""


def once(workload: Workload) -> tuple[Workload, np.ndarray]:
    """Return a workload of generated kernels without operators that are alike, and which of its own each of the given
    operators is, (operators,).

    Alike are operators of a phase whose candidates have the same kernels in the same forms: the fastest is the same on
    every design, so that one of them runs as often as all. What is chosen together stays together.
    """
    firsts: dict[Hashable, int] = {}
    places, kept = np.empty(len(workload.operators), int), 0
    leaves = [np.asarray(x) for x in jax.tree.leaves(workload.kernels)]
    operator = 0
    for together in workload.choices:
        run = range(operator, operator := operator + len(together))
        alike = tuple(_identity(workload, k, leaves) for k in run)
        if alike not in firsts:
            firsts[alike], kept = kept, kept + len(run)
        places[run] = firsts[alike] + np.arange(len(run))
    found = _of_places(workload, places, kept)
    saves = found.candidate_count <= (1.0 - LEAST_SAVED) * workload.candidate_count
    stay_apart = len(found.choices) == len(firsts)  # choices between which only others alike stood would become one
    return (found, places) if saves and stay_apart else (workload, np.arange(len(places)))


def _identity(workload: Workload, operator: int, leaves: list[np.ndarray]) -> Hashable:
    """What an operator shares with those that are alike."""
    known, part = workload.operators[operator], workload.slices[operator]
    return known.phase, *(c.form for c in known.candidates), *(x[part].tobytes() for x in leaves)


def _of_places(workload: Workload, places: np.ndarray, kept: int) -> Workload:
    """The workload whose operators are those at ``places``, each once, as often as all that stand there."""
    repeats = np.bincount(places, [operator.repeats for operator in workload.operators], kept)
    firsts = [int(np.flatnonzero(places == place)[0]) for place in range(kept)]
    operators = tuple(replace(workload.operators[k], repeats=float(n)) for k, n in zip(firsts, repeats, strict=True))
    rows = np.concatenate([np.arange(workload.slices[k].start, workload.slices[k].stop) for k in firsts])
    kernels = jax.tree.map(lambda x: np.asarray(x)[rows], workload.kernels)
    return replace(workload, operators=operators).with_kernels(kernels)

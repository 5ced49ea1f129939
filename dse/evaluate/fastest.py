"""Which of an operator's candidates runs: the fastest, as a tuned library would choose; the first of those that tie."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.numerics import INFEASIBLE
from dse.evaluate.batching import in_parts
from dse.timing.timing import Timing
from dse.workload.workload import Workload

EQUAL = 4e-6
"""Share of a time by which candidates must differ to be distinguished: where bytes bind, many take as long, and
rounding must not choose among them."""

UNROLLED = 96
"""Rows that are compared one by one; of more a program takes longer to compile than to run."""


def fastest(times: np.ndarray, starts: np.ndarray, equal: float = EQUAL) -> np.ndarray:
    """Return where the least time of each operator stands, (..., operators).

    ``times`` (..., candidates) of all of them, one after the other, each from its ``starts`` (operators,). Of those
    that are longer than the least by at most a share ``equal``, the first.
    """
    count = times.shape[-1]
    least = np.minimum.reduceat(times, starts, axis=-1) * (1.0 + equal)
    ties = times <= np.repeat(least, np.diff(np.r_[starts, count]), axis=-1)
    return np.minimum.reduceat(np.where(ties, np.arange(count), count - 1), starts, axis=-1)


def fastest_of(timing: Timing, starts: np.ndarray, equal: float = EQUAL) -> np.ndarray:
    """Return where each operator's fastest candidate stands; one that cannot run is never faster than one that can."""
    return fastest(np.where(np.asarray(timing.feasible) > 0, timing.microseconds, np.inf), starts, equal)


def choose(workload: Workload, nanoseconds: Sequence[Array]) -> tuple[Array, Array]:
    """Return :func:`fastest` inside a program: the candidate of every operator, and 1 where it can run, else 0.

    Arrays (designs, operators). The second follows from the times, since a program that also returned it of the stacks
    would hold these in memory instead of adding them up as they come.

    ``nanoseconds``: arrays (candidates, designs), one an operator; candidates count through the workload. Row after
    row, in whole vectors of designs, takes a fraction of an ``argmin``'s time.
    """

    def part(times: list[Array]) -> list[Array]:
        places, least = [], []
        starts = np.repeat(workload.starts, [len(operator.forms) for operator in workload.operators])
        of_operator = np.repeat(np.arange(len(times)), [len(operator.forms) for operator in workload.operators])
        for form, start, number in zip(workload.parts, starts, of_operator, strict=True):
            place, time = fastest_row(times[number][form.start - start : form.stop - start], form.start)
            places.append(place)
            least.append(time)
        return [jnp.stack(rows) for rows in together(workload, places, least)]

    chosen, least = in_parts(part, list(nanoseconds))
    return chosen.T.astype(jnp.int32), jnp.where(least.T < INFEASIBLE, 1.0, 0.0)


def fastest_forms(workload: Workload, times: np.ndarray) -> np.ndarray:
    """Return where the fastest candidate of each operator stands, (..., operators), where operators with several forms
    take the same; ``times`` (..., candidates)."""
    places = fastest(times, np.array([part.start for part in workload.parts]))
    least = np.take_along_axis(times, places, axis=-1)
    chosen, _ = together(workload, np.moveaxis(places, -1, 0), np.moveaxis(least, -1, 0), np)
    return np.stack(chosen, axis=-1)


def together(workload: Workload, places: Any, times: Any, arrays: Any = jnp) -> tuple[list[Any], list[Any]]:
    """Return the candidate of each operator and its time, given those of each of its forms (:attr:`Workload.parts`).

    Operators that have forms together take the one whose times add up to least; of equal ones the first.
    ``arrays``: jnp, or np.
    """
    chosen, least, number = [], [], 0
    for operators in workload.choices:
        forms = len(operators[0])
        each = [range(number + k * forms, number + (k + 1) * forms) for k in range(len(operators))]
        number += forms * len(operators)
        totals = [sum(times[one[form]] for one in each) for form in range(forms)]
        for one in each:
            place, time, total = places[one[0]], times[one[0]], totals[0]
            for form in range(1, forms):
                faster = totals[form] * (1.0 + EQUAL) < total
                place = arrays.where(faster, places[one[form]], place)
                time = arrays.where(faster, times[one[form]], time)
                total = arrays.minimum(total, totals[form])
            chosen.append(place)
            least.append(time)
    return chosen, least


def fastest_row(times: Array, first: int) -> tuple[Array, Array]:
    """Return the number of the fastest row, counted from ``first``, and its time, of one operator whose candidates are
    rows."""
    last = first + len(times) - 1.0
    if len(times) > UNROLLED:
        best = jnp.min(times, axis=0)
        number = first + jnp.arange(len(times), dtype=times.dtype)[:, None]
        return jnp.min(jnp.where(times <= best * (1.0 + EQUAL), number, last), axis=0), best
    best = reduce(jnp.minimum, list(times))
    place = jnp.full(best.shape, last)
    for row in range(len(times) - 2, -1, -1):
        place = jnp.where(times[row] <= best * (1.0 + EQUAL), first + row, place)
    return place, best

"""The fastest candidate: the first of equals, whether rows are compared one by one or together."""

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.numerics import INFEASIBLE
from dse.evaluate.fastest import EQUAL, UNROLLED, choose, fastest, fastest_forms, fastest_of, fastest_row
from dse.workload.parse import load_workload


def test_the_least_time_of_each_operator_stands_where_it_is_counted_through_all() -> None:
    times = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    assert fastest(times, np.array([0, 3])).tolist() == [1, 4]


def test_designs_choose_each_for_itself() -> None:
    times = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    assert fastest(times, np.array([0, 2])).tolist() == [[1, 2], [0, 2]]


def test_of_equals_the_first_is_taken_and_a_share_may_count_as_equal() -> None:
    starts = np.array([0])
    assert fastest(np.array([2.0, 1.0, 1.0]), starts, 0.0).tolist() == [1]
    assert fastest(np.array([1.05, 1.0]), starts).tolist() == [1]
    assert fastest(np.array([1.05, 1.0]), starts, equal=0.1).tolist() == [0]


def test_one_that_never_runs_is_taken_only_where_none_does() -> None:
    assert fastest(np.array([np.inf, 7.0]), np.array([0])).tolist() == [1]
    assert fastest(np.array([np.inf, np.inf]), np.array([0])).tolist() == [0]


@pytest.mark.parametrize("equal", [0.0, 0.01])
def test_it_equals_a_loop_over_operators(equal: float) -> None:
    times = np.random.default_rng(0).uniform(1.0, 1.1, (20, 30))
    starts = np.array([0, 1, 8, 20])
    for row, found in zip(times, fastest(times, starts, equal), strict=True):
        for start, end, place in zip(starts, [*starts[1:], 30], found, strict=True):
            part = row[start:end]
            assert place == start + np.flatnonzero(part <= part.min() * (1 + equal))[0]


@pytest.mark.parametrize("rows", [3, UNROLLED, UNROLLED + 1, 300])
def test_the_first_of_equals_is_chosen(rows):
    times = np.random.default_rng(rows).uniform(1, 2, (rows, 20)).astype(np.float32)
    times[rows // 2, :5] = times[:, :5].min(axis=0)
    times[-1, :5] = times[rows // 2, :5] * (1 - EQUAL / 4)  # less, but not so that it could be told
    times[:, 7] = INFEASIBLE
    place, least = map(np.asarray, fastest_row(times, 10))
    np.testing.assert_array_equal(least, times.min(axis=0))
    np.testing.assert_array_equal(place, 10 + np.argmax(times <= times.min(axis=0) * (1 + EQUAL), axis=0))
    np.testing.assert_array_equal(place, 10 + fastest(times.T, np.array([0]), EQUAL)[:, 0])
    assert (place[:5] < 10 + rows - 1).all()


DIFFERENT, ALIKE = 1e-4, 1e-6
"""Shares of a time: what a tuned library sees, and what 32 bits lose in a sum of a dozen terms (2^-24 each)."""


@pytest.mark.parametrize("rows", [3, UNROLLED + 1])
def test_what_rounding_may_have_made_is_no_difference_but_a_ten_thousandth_is(rows):
    times = np.full((rows, 2), 2.0, np.float32)
    times[1] = 1.0
    times[-1] = 1 - ALIKE, 1 - DIFFERENT
    assert np.asarray(fastest_row(times, 0)[0]).tolist() == [1, rows - 1]


def test_every_way_of_choosing_tells_the_same_apart():
    """Inside a space's own program, and on arrays of times, of any GPUs or of one."""
    workload = load_workload("gpt2_xl:phase=decode,batch=1,context=128")
    several = [part for part in workload.slices if part.stop - part.start > 1]
    times = np.ones((2, workload.candidate_count))
    for part in several:
        times[:, part.stop - 1] = 1 - ALIKE, 1 - DIFFERENT
    first = [part.start for part in workload.slices]
    expected = [first, [part.stop - 1 if part in several else part.start for part in workload.slices]]
    assert len(several) > 2
    assert fastest(times, workload.starts).tolist() == expected
    chosen, can_run = choose(workload, [jnp.asarray(times[:, part].T) for part in workload.slices])
    assert np.asarray(chosen).tolist() == expected and (np.asarray(can_run) == 1).all()
    for one, wanted in zip(times, expected, strict=True):
        timing: Any = SimpleNamespace(feasible=np.ones(len(one)), microseconds=one)
        assert fastest_of(timing, workload.starts).tolist() == wanted


def test_an_operator_runs_where_any_of_its_candidates_does():
    workload = load_workload("gpt2_xl:phase=decode,batch=1,context=128")
    times = [np.full((part.stop - part.start, 2), INFEASIBLE) for part in workload.slices]
    for rows in times[1:]:
        rows[-1, :] = 1.0
    times[0][0, 1] = 1.0
    _, can_run = choose(workload, [jnp.asarray(rows) for rows in times])
    assert np.asarray(can_run).tolist() == [[0.0] + [1.0] * (len(times) - 1), [1.0] * len(times)]


LATENT = "deepseek_v2_lite:phase=prefill,batch=1,prompt=64,prefix=4096"


def test_operators_with_forms_take_the_one_that_is_faster_as_a_whole():
    """Against the sums of both, on times drawn by lot; other operators choose as they do alone."""
    workload = load_workload(LATENT)
    times = np.random.default_rng(0).uniform(1, 2, (40, workload.candidate_count)).astype(np.float32)
    times[0] = INFEASIBLE
    found = fastest_forms(workload, times)
    starts = [part.start for part in workload.parts]
    least, alone = np.minimum.reduceat(times, starts, axis=1), fastest(times, np.array(starts))
    column, taken = 0, set()
    for k, operator in enumerate(workload.operators):
        if len(operator.forms) == 1:
            np.testing.assert_array_equal(found[:, k], alone[:, column])
        column += len(operator.forms)
    number = {part.start: k for k, part in enumerate(workload.parts)}
    for together in (group for group in workload.choices if len(group[0]) > 1):
        columns = np.array([[number[part.start] for part in operator] for operator in together])
        best = np.argmin(least[:, columns].sum(axis=1), axis=1)
        places = [workload.parts.index(part) for part in together[0]]
        k = next(i for i, part in enumerate(workload.slices) if part.start == workload.parts[places[0]].start)
        for offset, operator in enumerate(columns):
            np.testing.assert_array_equal(found[:, k + offset], alone[np.arange(len(best)), operator[best]])
        taken |= set(best.tolist())
    assert taken == {0, 1}
    chosen, can_run = choose(workload, [jnp.asarray(times[:, part].T) for part in workload.slices])
    np.testing.assert_array_equal(chosen, found)
    assert (np.asarray(can_run)[1:] == 1).all() and not np.asarray(can_run)[0].any()

"""Operators with their candidates, and which of them is the fastest."""

import numpy as np
import pytest

from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator, fastest

KERNEL = Kernel(Interval(), Interval(), Interval())
PAIR = Operator("qkv", "gemm", (Candidate("a", KERNEL), Candidate("b", KERNEL)), repeats=3.0, phase="decode")


def test_the_least_time_of_each_operator_stands_where_it_is_counted_through_all() -> None:
    times = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    assert fastest(times, np.array([0, 3])).tolist() == [1, 4]


def test_designs_choose_each_for_itself() -> None:
    times = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    assert fastest(times, np.array([0, 2])).tolist() == [[1, 2], [0, 2]]


def test_of_equals_the_first_is_taken_and_a_share_may_count_as_equal() -> None:
    starts = np.array([0])
    assert fastest(np.array([2.0, 1.0, 1.0]), starts).tolist() == [1]
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


def test_an_operator_that_runs_more_often_keeps_its_candidates() -> None:
    more = PAIR.times(4.0, phase="prefill", name="all_qkv")
    assert (more.repeats, more.phase, more.name) == (12.0, "prefill", "all_qkv")
    assert more.candidates is PAIR.candidates
    assert (PAIR.times(2.0).phase, PAIR.times(2.0).name) == ("decode", "qkv")
    assert PAIR.times(2.0, name="").name == ""


def test_it_is_shown_by_what_it_is() -> None:
    assert repr(PAIR) == "Operator('qkv': gemm, decode, repeats=3, candidates=2)"

"""What is measured: every kind from the beginning on, each task once."""

from itertools import pairwise

import pytest

from dse.base.errors import InputError
from dse.measurement.kernels import measured
from dse.measurement.tasks import KINDS, tasks


def test_every_kind_is_planned_and_every_beginning_is_a_mixture():
    full, quick = tasks(), tasks(quick=True)
    assert {task.kind for task in full} == {task.kind for task in quick} == set(KINDS)
    assert len({task.words() for task in full}) == len(full) > 500
    assert 10 < len(quick) < 60
    assert {task.kind for task in full[:60]} == set(KINDS)
    assert {task.kind for task in tasks(only="vector,stream")} == {"vector", "stream"}
    for task in quick:
        assert measured(task).out_bytes() > 0


def test_a_wrong_kind_is_reported_with_the_nearest():
    with pytest.raises(InputError, match="'gem'; did you mean 'gemm'"):
        tasks(only="gem")


def test_kinds_are_given_in_any_order_once_or_twice():
    assert tasks(only=" stream, vector,") == tasks(only="vector,stream,vector")


def test_a_stream_reaches_from_what_an_l2_holds_to_a_gigabyte():
    sizes = sorted(4 * task.shape["rows"] * task.shape["cols"] for task in tasks(only="stream"))
    assert (sizes[0], sizes[-1]) == (2**18, 2**30)
    assert all(b == 2 * a for a, b in pairwise(sizes))

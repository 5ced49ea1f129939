"""The fastest candidate: the first of equals, whether rows are compared one by one or together."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.numerics import INFEASIBLE
from dse.evaluate.candidates import EQUAL, UNROLLED, _fastest, choose
from dse.evaluate.launches import chosen_of
from dse.evaluate.shared_programs import DESIGNS, Fastest
from dse.hardware.presets import load_gpu
from dse.timing.roofline import Roofline
from dse.workload.operator import fastest
from dse.workload.parse import load_workload


@pytest.mark.parametrize("rows", [3, UNROLLED, UNROLLED + 1, 300])
def test_the_first_of_equals_is_chosen(rows):
    times = np.random.default_rng(rows).uniform(1, 2, (rows, 20)).astype(np.float32)
    times[rows // 2, :5] = times[:, :5].min(axis=0)
    times[-1, :5] = times[rows // 2, :5] * (1 - EQUAL / 4)  # less, but not so that it could be told
    times[:, 7] = INFEASIBLE
    place, best = (np.asarray(x) for x in _fastest(times, 10.0))
    np.testing.assert_array_equal(best, times.min(axis=0))
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
    assert np.asarray(_fastest(times, 0.0)[0]).tolist() == [1, rows - 1]


def test_every_way_of_choosing_tells_the_same_apart(monkeypatch):
    """A sweep's own program, those that few designs share, and that of one GPU."""
    workload = load_workload("gpt2_xl:phase=decode,batch=1,context=128")
    several = [part for part in workload.slices if part.stop - part.start > 1]
    times = np.ones((DESIGNS, workload.candidate_count))
    for part in several:
        times[:2, part.stop - 1] = 1 - ALIKE, 1 - DIFFERENT
    first = [part.start for part in workload.slices]
    expected = [first, [part.stop - 1 if part in several else part.start for part in workload.slices]]
    assert len(several) > 2
    monkeypatch.setattr("dse.evaluate.shared_programs._times", lambda *_: times)
    gpu = load_gpu("h100_sxm")
    assert Fastest(Roofline(), workload)(gpu)[0][:2].tolist() == expected
    chosen, _ = choose(workload, [jnp.asarray(times[:, part].T) for part in workload.slices])
    assert np.asarray(chosen)[:2].tolist() == expected
    for one, wanted in zip(times, expected, strict=False):
        timing = SimpleNamespace(feasible=np.ones(len(one)), microseconds=one)
        assert chosen_of(workload, SimpleNamespace(timing=timing)).tolist() == wanted

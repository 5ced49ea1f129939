"""CTAs of unequal length: the closed form against an exact list schedule; and the busiest SM's cycles by hand."""

import heapq
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.presets import load_gpu
from dse.timing.interval import Causes, IntervalCycles
from dse.timing.occupancy import Waves, waves
from dse.timing.schedule import busiest_sm, fair_issue, makespan, rounds
from dse.workload.kernel import Interval, Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator


def list_schedule(durations, slots):
    """Makespan of handing out CTAs one by one to whichever slot is free first."""
    free = [0.0] * slots
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def causal(tiles, heads, prefix):
    """Time of every CTA in grid order: of a head's tiles each takes a block longer than the one before."""
    return np.tile(np.arange(1.0, tiles + 1.0) + 1.0 + prefix, heads)


@pytest.mark.parametrize("longest_first", [0.0, 1.0])
def test_the_closed_form_follows_an_exact_list_schedule(longest_first):
    rng, errors = np.random.default_rng(0), []
    while len(errors) < 300:
        slots, tiles = int(rng.choice([76, 108, 132, 264])), int(2 ** rng.uniform(0, 6))
        heads = int(2 ** rng.uniform(2, 9))
        if not slots < tiles * heads < 8000:
            continue
        times = causal(tiles, heads, float(rng.choice([0, 0, 16])))
        ordered = np.sort(times)[::-1] if longest_first else times
        exact = list_schedule(ordered, slots) / times.mean()
        share = len(times) / slots
        numbers = (share, np.ceil(share), times.max() / times.mean(), longest_first)
        found = makespan(*(jnp.asarray(x, float) for x in numbers))
        errors.append(abs(float(found) / exact - 1.0))
    assert np.mean(errors) < 0.015
    assert np.quantile(errors, 0.9) < 0.05


def test_equal_ctas_run_in_waves():
    cases = ((0.6, 1.0), (1.25, 1.5))
    found = [float(makespan(*(jnp.asarray(x) for x in (*case, 1.0, 0.0)))) for case in cases]
    assert found == pytest.approx([1.0, 1.5])


def test_a_share_of_the_uneven_end_shows():
    """Of 250 CTAs that 108 SMs run one at a time, the longest half as long again as the mean."""
    gpu, alike = load_gpu("a100_sxm_80gb"), Kernel(Interval(), Interval(), Interval(), ctas=250.0, warps=64.0)
    kernel = replace(alike, longest=1.5)
    even, whole = 250 / 108, float(makespan(*(jnp.asarray(x) for x in (250 / 108, 3.0, 1.5, 0.0))))
    assert whole > even + 0.2
    for tail in (0.0, 0.4, 1.0):
        found = rounds(kernel.as_arrays(), gpu, waves(kernel.as_arrays(), gpu), tail)
        assert float(found) == pytest.approx(even + tail * (whole - even), rel=1e-5)
    assert float(rounds(alike.as_arrays(), gpu, waves(alike.as_arrays(), gpu), 1.0)) == 0  # they run in waves


def test_it_is_differentiable_everywhere():
    slope = jax.grad(lambda longest: makespan(jnp.asarray(2.3), jnp.asarray(3.0), longest, jnp.asarray(0.0)))
    assert np.isfinite([float(slope(jnp.asarray(x))) for x in (1.0, 1.3, 2.0)]).all()


GRID = Waves(*map(jnp.asarray, (3.0, 2.0, 1.0, 200.0, 80.0, 1.0)))  # three waves of two CTAs, then one


def on_sm(uneven=0.0, alone=1.0, **facts):
    """Cycles of the busiest SM where a wave takes as many as its CTAs have iterations together."""
    kernel = gemm_operator("g", Gemm(4096, 4096, 4096)).candidates[0].kernel.as_arrays()
    kernel = replace(kernel, loop=replace(kernel.loop, repeats=jnp.asarray(10.0)))
    kernel = replace(kernel, **{name: jnp.asarray(value) for name, value in facts.items()})

    def wave(kernel, ctas, _):
        return IntervalCycles.of(ctas * kernel.loop.repeats, Causes(*[jnp.zeros(())] * 6))

    return float(busiest_sm(kernel, GRID, jnp.asarray(uneven), alone, wave).total)


def test_the_busiest_sm_runs_full_waves_and_the_rest():
    assert on_sm() == 3 * 20 + 10


def test_unequal_ctas_take_their_rounds_and_at_least_the_longest():
    assert on_sm(uneven=3.25, longest=1.5) == 3.25 * 20
    assert on_sm(uneven=0.25, longest=1.5) == 1.5 * 11 - 1
    assert on_sm(uneven=0.25, longest=1.5, alone=2.0) == 2 * (1.5 * 11 - 1)


def test_a_fair_share_is_that_of_every_sub_core():
    gpu, loop = load_gpu("a100_sxm_80gb"), Interval(repeats=10.0, instructions=30.0)
    kernel = Kernel(Interval(), loop, Interval(), ctas=216.0, warps=8.0)
    assert float(fair_issue(kernel, gpu)) == 216 * 8 * 300 / (108 * 4)

"""Times on the host's clock."""

import jax.numpy as jnp

from dse.measurement import stopwatch
from dse.measurement.program import compiled
from dse.measurement.stopwatch import times


def test_more_rounds_take_more_time():
    operands = (jnp.ones((128, 128)), jnp.ones((128, 128)))
    took = []
    for rounds in (4, 400):  # a hundred times the work: whatever else runs, it takes more than twice as long
        program = compiled(jnp.dot, [operands] * 4, rounds)
        took.append(times(lambda program=program: program([operands] * 4), 1, 5).low)
    assert took[1] > 2 * took[0]


def test_a_launch_s_time_is_the_median_of_runs_after_the_warm_up(monkeypatch):
    clock = iter([0.0, 4.0, 10.0, 12.0, 20.0, 29.0])  # three runs of 4, 2 and 9 s
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: next(clock))
    runs = []
    measured = times(lambda: runs.append(1), launches=2, repeats=3, warm_up=5)
    assert (measured.low, measured.middle, measured.high) == (1e6, 2e6, 4.5e6)
    assert measured.repeats == 3 and len(runs) == 8


def test_a_device_is_kept_busy_until_the_time_is_up(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 3.0])
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: next(clock))
    runs = []
    stopwatch.busy(lambda: runs.append(1), 2.5)
    assert len(runs) == 3  # one ahead, and one at each of the two looks at the clock before the end

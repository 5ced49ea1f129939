"""Programs compiled in a hurry compute what programs compiled with care do, in 64 bits; batches are filled up."""

from dataclasses import replace
from threading import Event

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dse.base.compilation import derivatives_quick_to_compile, filled_up, quick_to_compile, threads
from dse.power.sequence import in_sequence
from dse.workload.serving_engine import Host
from tests.power.test_sequence import CHOICE, H200, program, record


def of_a_clock(mhz: Array) -> Array:
    """Time [us] and energy [J] of two products whose GPU waits for a host, in its power limit."""
    gpu = replace(record(H200), tensor_clock_mhz=mhz)
    found = in_sequence(CHOICE, *program(gpu), jnp.asarray([3.0, 3.0]), gpu, Host(4000.0, 100.0))
    return jnp.stack([found.nanoseconds * 1e-3, found.joules])


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(of_a_clock, id="values"),
        pytest.param(jax.jacfwd(of_a_clock), id="derivatives", marks=pytest.mark.slow),
    ],
)
def test_every_choice_computes_the_same(function):
    """A choice of loops that XLA had was 5 % off here."""
    with jax.enable_x64(True):
        clock = jnp.asarray(H200["tensor_clock_mhz"], float)
        careful = np.asarray(jax.jit(function)(clock))
        for options in (quick_to_compile(), derivatives_quick_to_compile()):
            assert np.asarray(jax.jit(function, compiler_options=options)(clock)) == pytest.approx(careful, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "least", "rows"), [(3, 4, 4), (4, 4, 4), (5, 4, 8), (1, 1024, 1024), (1025, 1024, 2048)]
)
def test_batches_are_filled_up_by_their_last_row(count, least, rows):
    batch = {"a": np.arange(count), "b": np.arange(2.0 * count).reshape(count, 2)}
    filled = filled_up(batch, least)
    for name, values in batch.items():
        assert filled[name].shape == (rows, *values.shape[1:])
        np.testing.assert_array_equal(filled[name][:count], values)
        assert (filled[name][count:] == values[-1]).all()


def test_whoever_interrupts_does_not_wait_for_a_compilation():
    begun, done = Event(), Event()
    with pytest.raises(KeyboardInterrupt), threads(1) as pool:
        made = pool.submit(lambda: (begun.set(), done.wait(60)))
        assert begun.wait(60)
        raise KeyboardInterrupt
    assert not made.done()
    done.set()
    made.result(60)


@pytest.mark.parametrize("wide", [True, False])
def test_threads_compute_in_the_floats_of_the_one_that_asks(wide):
    """JAX holds the width for each thread."""
    with jax.enable_x64(wide), threads(1) as pool:
        assert pool.submit(lambda: jnp.ones(1) + 1e-9).result().dtype == (np.float64 if wide else np.float32)

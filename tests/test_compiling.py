"""Programs compiled in a hurry compute what programs compiled with care do: values and derivatives, in 64 bits."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dse.compiling import derivatives_quick_to_compile, quick_to_compile
from dse.power.sequence import in_sequence
from dse.workload.engine import Host
from tests.power.test_sequence import CHOICE, H200, program, record


def of_a_clock(mhz: Array) -> Array:
    """Time [us] and energy [J] of two products whose GPU waits for a host, in its power limit."""
    gpu = replace(record(H200), tensor_clock_mhz=mhz)
    found = in_sequence(CHOICE, *program(gpu), jnp.asarray([3.0, 3.0]), gpu, Host(4000.0, 100.0))
    return jnp.stack([found.nanoseconds * 1e-3, found.joules])


@pytest.mark.parametrize(
    "function",
    [pytest.param(of_a_clock, id="values"),
     pytest.param(jax.jacfwd(of_a_clock), id="derivatives", marks=pytest.mark.slow)],
)  # fmt: skip
def test_every_choice_computes_the_same(function):
    """A choice of loops that XLA had was 5 % off here."""
    with jax.enable_x64(True):
        clock = jnp.asarray(H200["tensor_clock_mhz"], float)
        careful = np.asarray(jax.jit(function)(clock))
        for options in (quick_to_compile(), derivatives_quick_to_compile()):
            assert np.asarray(jax.jit(function, compiler_options=options)(clock)) == pytest.approx(careful, rel=1e-9)

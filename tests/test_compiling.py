"""Options of XLA: those it has are taken, others left out; what is computed stays."""

import jax
import jax.numpy as jnp
import numpy as np

from dse import compiling


def test_an_option_that_xla_does_not_have_is_left_out():
    assert compiling._known({"xla_cpu_of_tomorrow": True} | compiling.LEAST) == compiling.LEAST


def test_every_choice_computes_the_same():
    def of(x):
        return jnp.cumsum(jnp.exp(-x) * x) / (1 + x)

    x = jnp.linspace(0.0, 3.0, 1000)
    for options in (compiling.quick_to_compile(), compiling.derivatives_quick_to_compile()):
        assert np.allclose(jax.jit(of, compiler_options=options)(x), jax.jit(of)(x), rtol=1e-6)
    assert np.allclose(compiling.quickly_jitted(of)(x), jax.jit(of)(x), rtol=1e-6)

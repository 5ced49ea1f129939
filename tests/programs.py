"""Compiling what a test runs once or twice."""

from functools import partial

import jax

from dse.base.compilation import derivatives_quick_to_compile

quick_jit = partial(jax.jit, compiler_options=derivatives_quick_to_compile())
"""``jax.jit``, sooner compiled and as exact."""

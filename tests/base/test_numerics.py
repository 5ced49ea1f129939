"""Quotients of whole numbers held as 32-bit floats, against integer arithmetic, with and without fast-math."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.numerics import ceil_div, few_ceil_div, few_floor_div, floor_div
from dse.evaluate.lines import Side
from dse.evaluate.partial_evaluation import Program
from dse.evaluate.platform import CPU

COUNT = 400_000

PAIRS = {
    "any": (floor_div, ceil_div, 2**23, 10**6),
    "few": (few_floor_div, few_ceil_div, 2_000_000, 2_000_000),
}


def numbers(a_most: int, b_most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of all magnitudes, half of the first within one of a multiple of the second."""
    draw = np.random.default_rng(0)
    b = np.maximum(np.exp(draw.uniform(0, np.log(b_most), COUNT)).astype(int), 1)
    a = np.exp(draw.uniform(0, np.log(a_most), COUNT)).astype(int)
    near = np.arange(COUNT) % 2 == 0
    a[near] = (a[near] // b[near]) * b[near] + draw.integers(-1, 2, near.sum())
    return np.clip(a, 0, a_most - 1), b


@pytest.mark.parametrize("which", PAIRS)
@pytest.mark.parametrize("options", [None, CPU.options], ids=["plain", "fast"])
def test_quotients_are_exact(which: str, options: dict | None) -> None:
    floor, ceil, a_most, b_most = PAIRS[which]
    a, b = numbers(a_most, b_most)
    both = jax.jit(lambda a, b: (floor(a, b), ceil(a, b)), compiler_options=options)
    down, up = both(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32))
    assert np.array_equal(np.asarray(down, int), a // b)
    assert np.array_equal(np.asarray(up, int), -(-a // b))


@pytest.mark.parametrize("which", PAIRS)
def test_quotients_are_exact_in_a_simplified_program(which: str) -> None:
    """A sweep's programs multiply with a reciprocal that Newton's method finds."""
    floor, ceil, a_most, b_most = PAIRS[which]
    a, b = numbers(a_most, b_most)
    program = Program(lambda a, b: (floor(a, b), ceil(a, b)), [Side.DESIGN, Side.DESIGN], 1, True)
    columns = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    down, up = jax.jit(lambda *given: program(given, COUNT), compiler_options=CPU.options)(*columns)
    assert np.array_equal(np.ravel(down).astype(int), a // b)
    assert np.array_equal(np.ravel(up).astype(int), -(-a // b))

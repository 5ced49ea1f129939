"""A program simplified for what is known of its arguments gives what the function gives on each pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.partial_evaluation import Program, Side, reciprocal


def _function(a, b, c, d):
    """Divisions by every side, choices that numbers decide, and terms that fold away."""
    share = jnp.where(b > 0, a / jnp.where(b > 0, b, 1.0), 0.0)
    return jnp.maximum(share * c / d, jnp.floor(a / c)) + b * d, jnp.where(b == 0, d, jnp.exp(-c / (a + d)))


@pytest.mark.parametrize("flags", [np.zeros(3), np.ones(3), np.array([0.0, 2.0, 5.0])])
@pytest.mark.parametrize("designs_minor", [True, False])
def test_a_program_gives_what_the_function_gives(flags: np.ndarray, designs_minor: bool) -> None:
    rng = np.random.default_rng(0)
    a, d = rng.uniform(1, 9, 3), rng.uniform(1, 9, 5).astype(np.float32)
    program = Program(_function, [a, flags, 2.5, Side.DESIGN], 3, designs_minor)
    found = jax.jit(lambda x: program([x], 5))(d)
    expected = _function(a[:, None], flags[:, None], 2.5, d[None, :].astype(float))
    for x, y in zip(found, expected, strict=True):
        y = np.broadcast_to(y, (3, 5))
        assert np.allclose(x, y if designs_minor else y.T, rtol=1e-6)


def test_arguments_of_pairs_stay_with_their_pair() -> None:
    pairs = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    program = Program(lambda a, b, c: a / b + c, [Side.PAIR, Side.DESIGN, np.array([0.0, 1.0, 2.0])], 3, False)
    found = program([pairs, np.array([2.0, 4.0], np.float32)], 2)
    assert np.allclose(found, pairs / np.array([[2.0], [4.0]]) + np.arange(3.0), rtol=1e-6)


def test_reciprocal_to_rounding() -> None:
    x = np.geomspace(1e-30, 1e30, 10_001).astype(np.float32)
    x = np.concatenate([x, -x])
    assert np.max(np.abs(np.asarray(reciprocal(jnp.asarray(x)), float) * x - 1)) < 3e-7

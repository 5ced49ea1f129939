"""A program simplified for what is known of its arguments gives what the function gives on each pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.evaluate.lines import Side
from dse.evaluate.partial_evaluation import Program, reciprocal


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


def test_a_loop_is_written_out() -> None:
    def root(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 6, lambda _, x: 0.5 * (x + a / x), b)

    program = Program(root, [np.array([2.0, 9.0]), Side.DESIGN], 2, True)
    found = program([np.array([1.0, 2.0, 5.0], np.float32)], 3)
    assert np.allclose(found, np.sqrt([[2.0] * 3, [9.0] * 3]), rtol=1e-6)


def test_reciprocal_to_rounding() -> None:
    x = np.geomspace(1e-30, 1e30, 10_001).astype(np.float32)
    x = np.concatenate([x, -x])
    assert np.max(np.abs(np.asarray(reciprocal(jnp.asarray(x)), float) * x - 1)) < 3e-7


def _of_groups(a, b, c, d, e):
    """Terms of a kernel (a, b) and what a group has in common (c), a comparison and a term NumPy lacks among them."""
    common = jnp.where(a > c, jnp.exp(-a / c), a * c + jnp.sqrt(b))
    flag = jnp.logical_and(b > c, a < 2.0 * c)
    return jnp.where(flag, common / d, common + b * d) + jnp.tanh(a * c) * e, common, c * d


@pytest.mark.parametrize("held", [0b001, 0b101])
def test_tables_of_what_groups_have_in_common_change_no_value(held: int) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 9, 7), rng.uniform(1, 9, 7)
    c, d, e = (rng.uniform(1, 9, n).astype(np.float32) for n in (3, 5, 3))
    program = Program(_of_groups, [a, b, Side.DESIGN, Side.DESIGN, Side.DESIGN], 7, True)
    given = [x if held >> n & 1 else None for n, x in enumerate((c, None, e))]
    tables = program.table(given, held)
    assert tables.shape[0] == 3 and tables.shape[2] == 7
    for group, table in enumerate(tables):
        others = e[group] if held & 0b100 else np.full(5, e[group])
        found = jax.jit(lambda table, *x: program(x, 5, table, held))(table, c[group], d, others)
        expected = _of_groups(*(x[:, None].astype(np.float32) for x in (a, b)), c[group], d[None, :], e[group])
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, np.broadcast_to(y, (7, 5)), rtol=2e-6)


def test_operations_move_from_pairs_to_tables() -> None:
    program = Program(_of_groups, [np.arange(1.0, 4.0), np.arange(2.0, 5.0), *[Side.DESIGN] * 3], 3, True)
    at_once, held = program.operations(0), program.operations(1)
    assert at_once.columns == 0 and not at_once.tabulated and held.columns > 0
    assert held.pairs + held.tabulated == at_once.pairs
    assert held.tabulated["exp"] == 3 and held.pairs["tanh"] == 3

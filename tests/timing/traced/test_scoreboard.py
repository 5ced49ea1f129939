"""The recurrence over segments against the plain one over instructions; a batch against single designs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dse.timing.traced.scoreboard import lone_warp, walk
from dse.traces.segments import Segments, make_segments
from tests.traces.programs import plain_recurrence, random_program

seeds = pytest.mark.parametrize("seed", range(6))


def latencies(seed: int, designs: int) -> np.ndarray:
    """Return whole latencies of 6 rows, short to long, some of them equal."""
    return np.random.default_rng(100 + seed).choice([1, 2, 4, 4, 8, 23, 23, 30, 200, 500], (6, designs)).astype(float)


def stalls(segments: Segments, latency: Array, *, by_operand_order: bool = False) -> tuple[Array, Array]:
    """Return the cycles that each segment stalls and what for, arrays (S, *designs)."""

    def note(noted, stall, cause, number):
        return tuple(table.at[number].set(x) for table, x in zip(noted, (stall, cause), strict=True))

    empty = jnp.zeros((len(segments.length), *latency.shape[1:]), latency.dtype)
    numbers = jnp.arange(len(segments.length))
    return walk(segments, latency, (empty, empty), note, numbers, by_operand_order=by_operand_order)[1]


@seeds
def test_equals_the_recurrence_over_instructions(seed: int) -> None:
    program = random_program(seed, registers=[3, 12, 60][seed % 3])
    segments = make_segments(*program)
    latency = latencies(seed, 5)
    assert segments.instructions == len(program.row)
    with jax.enable_x64(True):
        for by_order in (False, True):
            stall, cause = map(np.asarray, stalls(segments, jnp.asarray(latency), by_operand_order=by_order))
            found = lone_warp(segments, jnp.asarray(latency))
            for design in range(5):
                plain = plain_recurrence(program, latency[:, design])
                stalled = np.zeros(len(program.row))
                stalled[segments.start] = stall[:, design]
                assert np.array_equal(stalled, plain.stall)
                causes = np.zeros(len(program.row), int)
                causes[segments.start] = cause[:, design]
                expected = plain.in_order if by_order else plain.largest
                assert np.array_equal(causes[plain.stall > 0], expected[plain.stall > 0])
                assert found.drain[design] == plain.drain
                assert plain.drain == 0 or found.drain_cause[design] == plain.drain_cause
                total = plain.stall.sum() + plain.drain
                n = len(program.row)
                assert found.issue_probability[design] == pytest.approx(n / (n + total))
                assert found.mean_instructions[design] == n / (1 + (plain.stall > 0).sum())


@seeds
def test_a_batch_equals_single_designs(seed: int) -> None:
    segments, latency = make_segments(*random_program(seed)), latencies(seed, 64) * 1.01
    every = jax.jit(lambda latency: [*stalls(segments, latency), *lone_warp(segments, latency)[:-1]])
    whole = every(jnp.asarray(latency, jnp.float32))
    for design in range(0, 64, 7):
        for a, b in zip(whole, every(jnp.asarray(latency[:, design], jnp.float32)), strict=True):
            assert np.array_equal(np.asarray(a)[..., design], np.asarray(b))


def test_gradients_follow_the_latencies_that_bind() -> None:
    program = random_program(3)
    segments, latency = make_segments(*program), latencies(3, 1)[:, 0] + np.arange(6) * 0.37
    with jax.enable_x64(True):

        def total(values):
            return lone_warp(segments, values).stalled

        stalled = jax.jit(total)
        gradient = jax.jit(jax.grad(total))(jnp.asarray(latency))
        step = 1e-6 * np.eye(6)
        difference = [(stalled(jnp.asarray(latency + s)) - stalled(jnp.asarray(latency - s))) / 2e-6 for s in step]
    assert np.allclose(gradient, difference, atol=1e-4)
    assert np.abs(gradient).sum() > 0


def test_rounding_opens_no_interval() -> None:
    """An operand that is late by a float's rounding is ready; one that is late by a thousandth of a cycle is not."""
    segments = make_segments(
        np.array([1, -1]), np.array([[0], [1]]), np.array([0, 1]), np.array([0, 1]), np.zeros(2, int)
    )
    for late, stalled in ((1e-6, 0.0), (1e-3, 1e-3), (0.5, 0.5)):
        found = lone_warp(segments, jnp.asarray([1.0 + late, 1.0]))
        assert float(found.stalled) == pytest.approx(stalled, rel=1e-3)
        assert float(found.intervals) == 1 + (stalled > 0)

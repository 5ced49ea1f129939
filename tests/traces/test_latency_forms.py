"""Forms of a warp's stalls against the plain recurrence over its instructions, and where they are refused."""

from collections.abc import Sequence

import numpy as np
import pytest

from dse.traces.latency_forms import MOST_PATTERNS, Forms, find_forms
from dse.traces.segments import COMPUTE, GLOBAL, Segments, make_segments
from tests.traces.programs import Program, plain_recurrence, random_program

ALU, LOAD = 0, 1


def loop(trips: int) -> Program:
    """Return a loop that loads a trip ahead: a load, a product of what was loaded before, and a sum of products."""
    destination, sources, row = [], [], []
    for trip in range(trips):
        here, before = 10 + trip % 2, 10 + (trip + 1) % 2
        for to, of, kind in ((here, [], LOAD), (20, [before], ALU), (21, [20, 21], ALU)):
            destination.append(to)
            sources.append([*of, 0, 0][:2])
            row.append(kind)
    count = np.array([0, 1, 2] * trips)
    cause = np.where(np.array(row) == LOAD, GLOBAL, COMPUTE)
    return Program(np.array(destination), np.array(sources), count, np.array(row), cause)


def drawn(seed: int, low: Sequence[float], high: Sequence[float], designs: int = 4000) -> np.ndarray:
    """Return latencies [rows, designs] between two bounds."""
    return np.random.default_rng(seed).uniform(np.array(low)[:, None], np.array(high)[:, None], (len(low), designs))


def forms_of(program: Program, low: Sequence[float], high: Sequence[float]) -> tuple[Segments, Forms | None]:
    """Return the forms of a program for latencies between two bounds."""
    segments = make_segments(*program)
    counts = segments.length.astype(float)[:, None]
    return segments, find_forms(segments, counts, drawn(0, low, high), drawn(1, low, high))


def test_a_loop_has_a_pattern_for_either_that_binds() -> None:
    """A trip of 3 instructions takes 2 ALU latencies, or as long as a load after its issue and the product after it."""
    segments, forms = forms_of(loop(40), [2.0, 5.0], [40.0, 90.0])
    assert forms is not None
    assert 2 <= len(forms.patterns) <= 5
    assert len(forms.stall) < 12 < len(segments.length)
    trips = {round(p.stalled[row]) for p in forms.patterns for row in (ALU, LOAD)}
    assert trips & {39, 40}  # one latency a trip


@pytest.mark.parametrize("seed", range(8))
def test_patterns_equal_the_recurrence_wherever_they_hold(seed: int) -> None:
    program = random_program(seed, instructions=30, registers=8, rows=3)
    low, high = [4.0, 20.0, 200.0], [8.0, 40.0, 260.0]
    _, forms = forms_of(program, low, high)
    if forms is None:
        assert len(_distinct_waits(program, low, high)) > MOST_PATTERNS
        return
    latency = drawn(9, [0.5 * x for x in low], [2.0 * x for x in high], 300)  # beyond what they were found on
    held = 0
    for x in latency.T:
        plain = plain_recurrence(program, x)
        for pattern, repeats in zip(forms.patterns, forms.repeats, strict=True):
            if (pattern.margins @ [*x, 1.0] < 0).any():
                continue
            held += 1
            assert pattern.stalled @ [*x, 1.0] == pytest.approx(plain.stall.sum(), rel=1e-12, abs=1e-9)
            assert pattern.intervals == 1 + (plain.stall > 1e-9).sum()
            closed = np.repeat(forms.stall @ [*x, 1.0], repeats.astype(int))
            assert np.allclose(np.sort(closed[closed > 1e-9]), np.sort(plain.stall[plain.stall > 1e-9]))
            assert max((pattern.after @ [*x, 1.0]).max(), 0.0) == pytest.approx(plain.drain, abs=1e-9)
    assert held > 50


def _distinct_waits(program: Program, low: Sequence[float], high: Sequence[float]) -> set[bytes]:
    plains = [plain_recurrence(program, x) for x in drawn(0, low, high, 1000).T]
    return {(p.stall > 1e-9).tobytes() for p in plains}


def test_on_an_edge_no_stall_of_nothing_is_an_interval() -> None:
    """Whole latencies meet edges often: where an operand is ready to the cycle, nothing stalls."""
    draw = np.random.default_rng(3)
    segments = make_segments(*loop(20))
    latency = [np.stack([draw.integers(1, 9, 4000), draw.integers(1, 25, 4000)]).astype(float) for _ in range(2)]
    forms = find_forms(segments, segments.length.astype(float)[:, None], *latency)
    assert forms is not None  # equal to the recurrence on every fresh design, edges included
    x = np.vstack([latency[1], np.ones(4000)])
    margins = np.stack([(p.margins @ x).min(axis=0, initial=np.inf) for p in forms.patterns])
    assert (margins == 0).any(axis=0).sum() > 200
    intervals = [p.intervals for p in forms.patterns]
    assert intervals == sorted(intervals)


def test_no_two_patterns_hold_inside() -> None:
    _, forms = forms_of(loop(20), [2.0, 5.0], [40.0, 90.0])
    assert forms is not None
    x = np.vstack([drawn(5, [2.0, 5.0], [40.0, 90.0]), np.ones(4000)])
    holds = np.stack([(p.margins @ x >= 0).all(axis=0) for p in forms.patterns])
    assert holds.sum(axis=0).max() == 1
    assert holds.any(axis=0).mean() > 0.999


def test_the_counts_tell_intervals_apart() -> None:
    """Where every trip counts otherwise, no two of its intervals are one."""
    program = loop(100)
    segments = make_segments(*program)
    low, high = [2.0, 5.0], [40.0, 90.0]
    each = np.arange(len(segments.length), dtype=float)[:, None] ** 2
    assert find_forms(segments, each, drawn(0, low, high), drawn(1, low, high)) is None


def test_too_many_patterns_are_refused() -> None:
    _, forms = forms_of(random_program(2, instructions=300, registers=6), [1.0] * 6, [300.0] * 6)
    assert forms is None


def test_designs_unlike_those_that_patterns_were_found_on_refuse_them() -> None:
    segments = make_segments(*loop(40))
    counts = segments.length.astype(float)[:, None]
    found_on, asked = drawn(0, [2.0, 80.0], [4.0, 90.0]), drawn(1, [30.0, 5.0], [40.0, 6.0])
    assert find_forms(segments, counts, found_on, found_on) is not None
    assert find_forms(segments, counts, found_on, asked) is None

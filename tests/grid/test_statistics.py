"""Statistics of axes: counts, medians and best against all designs, in bounded memory."""

import numpy as np
import pytest

from dse.grid.statistics import AxisStatistics

EDGES = np.concatenate([2.0**octave * (1 + np.arange(64) / 64) for octave in range(-30, 30)])
"""The lower ends of the finest bins."""


def counted(statistics: AxisStatistics, axis: int, objective: int) -> np.ndarray:
    """Return the counts of an axis over the whole scale, shape (values, bins)."""
    histograms = statistics.histograms[objective]
    table = histograms.tables[axis]
    width = table.shape[1] // (histograms.high - histograms.low)
    return np.pad(table, ((0, 0), (histograms.low * width, (60 - histograms.high) * width)))


@pytest.mark.parametrize("lengths", [(7,), (3, 1, 11), (2,) * 6, (2, 2000), (2000, 2), (3, 2, 5000), (700, 1, 200)])
@pytest.mark.parametrize("start", [0, 5])
def test_every_feasible_design_is_counted_where_it_belongs(lengths: tuple[int, ...], start: int) -> None:
    random, count = np.random.default_rng(1), int(np.prod(lengths)) - start - 1
    values = np.exp2(random.uniform([[-3.0], [20.0]], [[1.0], [20.5]], (2, count))).astype(np.float32).astype(float)
    signs, feasible = np.array([1.0, -1.0]), random.random(count) < 0.7
    statistics = AxisStatistics(lengths, 2)
    for begin in range(0, count, 20_001):  # in chunks, which widen the scale
        here = slice(begin, begin + 20_001)
        statistics.add(start + begin, feasible[here], values[:, here], signs[:, None] * values[:, here])
    digits = np.unravel_index(np.arange(start, start + count), lengths)
    best = np.full((sum(lengths), 2), np.inf)
    for objective, column in enumerate(values):
        bins = np.searchsorted(EDGES, column, side="right") - 1
        for axis, digit in enumerate(digits):
            counts = counted(statistics, axis, objective)
            coarser = len(EDGES) // counts.shape[1]
            expected = np.zeros_like(counts)
            np.add.at(expected, (digit[feasible], bins[feasible] // coarser), 1)
            np.testing.assert_array_equal(counts, expected)
            rows = sum(lengths[:axis]) + digit[feasible]
            np.minimum.at(best[:, objective], rows, signs[objective] * column[feasible])
    np.testing.assert_array_equal(statistics.best, best)


def test_values_off_the_scale_are_in_its_ends_and_reported() -> None:
    statistics = AxisStatistics((3,), 2)
    values = np.array([[0.0, 1e12, 5.0], [1.0, 2.0, 1e300]])
    with np.errstate(all="raise"):
        statistics.add(0, np.array([True, True, False]), values, values)
    assert statistics.off_scale.tolist() == [True, False]
    for objective, bins in enumerate([[0, 3839], [1920, 1984]]):
        places = np.argwhere(counted(statistics, 0, objective))
        assert places.tolist() == [[0, bins[0]], [1, bins[1]]]


def test_the_median_of_an_even_count_lies_between_the_middle_two() -> None:
    statistics = AxisStatistics((1,), 1)
    values = np.asarray([[1.0, 100.0]])
    statistics.add(0, np.ones(2, bool), values, values)
    assert statistics._figures(0, 0, 0, 1.0)[0] == pytest.approx(50.5, rel=0.016)


def test_medians_of_axes_of_very_many_values_are_coarser() -> None:
    few, many = AxisStatistics((10,), 2), AxisStatistics((20_000,), 2)
    assert sum(histograms.counts.size for histograms in few.histograms) == 0
    for statistics in (few, many):
        values = np.array([[1e-9, 1e9], [1e-9, 1e9]])
        statistics.add(0, np.ones(2, bool), values, values)
    assert sum(histograms.counts.size for histograms in few.histograms) == 10 * 2 * 3840
    assert sum(histograms.counts.size for histograms in many.histograms) <= 2**22


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_median_lies_never_beyond_the_best(sign: float) -> None:
    for equal in np.geomspace(1.0, 2.0, 50):
        statistics = AxisStatistics((1,), 1)
        values = np.full((1, 3), equal)
        statistics.add(0, np.ones(3, bool), values, sign * values)
        median, best = statistics._figures(0, 0, 0, sign)
        assert best == equal
        assert sign * median >= sign * best
        assert median == pytest.approx(best, rel=0.008)

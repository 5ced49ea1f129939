"""What is kept of a sweep: every design, or only the front, the best, statistics and a sample."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.pareto_filter import pareto_mask
from dse.evaluate import space_program as evaluate
from dse.grid.accumulator import TOP, Fold
from dse.grid.designs import Grid
from dse.grid.record import load_result
from dse.grid.result import SweepResult
from dse.grid.statistics import AxisStatistics
from dse.grid.sweep import sweep
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from tests.grid.trivial import CHUNK, trivial

SIZE = 30_000


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepResult, SweepResult]:
    """The same sweep with every design kept, and with the front alone."""
    folder = tmp_path_factory.mktemp("keep")
    chunk, evaluate.CHUNK = evaluate.CHUNK, CHUNK
    space = trivial(SIZE, folder)
    found = tuple(sweep(space, folder / keep, keep=keep) for keep in ("all", "front"))
    evaluate.CHUNK = chunk
    return found  # pyright: ignore[reportReturnType]


def same_rows(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Assert that two tables hold the same designs; the reasons that they know of may differ."""
    pd.testing.assert_frame_equal(
        one.drop(columns="reason").reset_index(drop=True), other.drop(columns="reason").reset_index(drop=True)
    )


def test_the_front_is_that_of_all_designs(both: tuple[SweepResult, SweepResult]) -> None:
    every, front = both
    pd.testing.assert_frame_equal(front.front, every.front)
    points = every.points()
    points = points[points["feasible"]]
    costs = points[[o.name for o in every.space.objectives]].to_numpy()
    same_rows(points[pareto_mask(costs)], every.front)
    assert (front.n, front.n_feasible, front.infeasible) == (every.n, every.n_feasible, every.infeasible)
    assert 0 < front.n_feasible < front.n


def test_statistics_and_best_are_those_of_all_designs(both: tuple[SweepResult, SweepResult]) -> None:
    every, front = both
    pd.testing.assert_frame_equal(front.axis_effects, every.axis_effects)
    points = every.points()
    points = points[points["feasible"]].reset_index(drop=True)
    for row in front.axis_effects[::37].itertuples():
        values = points.loc[points[row.axis] == row.number, row.objective]
        if len(values):
            assert row.best == values.min()
            assert row.median == pytest.approx(values.median(), rel=0.016)
        else:
            assert np.isnan(row.best)
    pd.testing.assert_frame_equal(front.top, every.top)
    for objective in every.space.objectives:
        best = points.sort_values(objective.name, kind="stable").head(TOP).reset_index(drop=True)
        found = front.top[front.top["best_in"] == objective.name].reset_index(drop=True)
        same_rows(found.drop(columns="best_in"), best)


def test_files_of_a_front_read_back(both: tuple[SweepResult, SweepResult]) -> None:
    every, front = both
    assert front.folder is not None
    assert {path.name for path in front.folder.iterdir()} == {"pareto.parquet", "sample.parquet", "run.json"}
    same_rows(front.sample, every.sample)
    read = load_result(front.folder)
    assert read.summary() == front.summary()
    assert len(read.summary()["top"]) == len(front.space.objectives) * TOP
    same_rows(read.sample, front.sample)
    with pytest.raises(InputError, match="only the front was kept"):
        read.points()


def test_a_front_takes_the_place_of_all_designs(tmp_path: Path) -> None:
    space = trivial(1_000, tmp_path)
    sweep(space, tmp_path / "out")
    sweep(space, tmp_path / "out", keep="front")
    assert not (tmp_path / "out" / "points.parquet").exists()
    sweep(space, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"points.parquet", "pareto.parquet", "run.json"}


def test_too_many_designs_are_refused_with_their_size(tmp_path: Path) -> None:
    space = trivial(25_000_000, tmp_path)
    with pytest.raises(InputError, match=r"25,000,000 designs of \d+ columns would take about 1 GB.*give --keep front"):
        sweep(space, tmp_path / "out", keep="all")
    with pytest.raises(InputError, match="--keep some is not accepted; give all or front"):
        sweep(space, tmp_path / "out", keep="some")
    with pytest.raises(InputError, match="give out="):
        sweep(space, resume=True)
    assert not (tmp_path / "out").exists()


def linked(small: dict[str, Any]) -> Space:
    small["links"] |= {"l2_mib": "sm_count / 3 + dram_bandwidth_gbs / 100", "boost_clock_mhz": "base.boost_clock_mhz"}
    return space_from_mapping(small, "here", "linked")


@pytest.mark.parametrize(("start", "stop"), [(0, 45), (7, 8), (3, 31), (44, 45)])
def test_the_grid_is_the_spaces_grid(small: dict[str, Any], start: int, stop: int) -> None:
    space = linked(small)
    expected, grid = designs.with_links(space, space.at(np.arange(start, stop))), Grid(space)
    found = grid.columns(grid.digits(start, stop), stop - start)
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_link_of_many_axes_has_no_table(small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert Grid(linked(small))._tables
    monkeypatch.setattr("dse.grid.designs.TABLE", 4)
    assert not Grid(linked(small))._tables
    test_the_grid_is_the_spaces_grid(small, 3, 31)


@pytest.mark.parametrize("objectives", [1, 3])
def test_folds_do_not_depend_on_order_or_parts(objectives: int) -> None:
    random, signs = np.random.default_rng(0), [1.0, -1.0, 1.0][:objectives]
    values = np.exp(random.normal(size=(objectives, 600))).round(1)
    feasible, lengths = random.random(600) < 0.8, (6, 4, 25)
    whole = Fold(lengths, signs)
    whole.add(0, feasible, values)
    parts = Fold(lengths, signs)
    for start in random.permutation(np.arange(0, 600, 50)):
        part, here = Fold(lengths, signs), slice(start, start + 50)
        part.add(int(start), feasible[here], values[:, here])
        part.reasons["why"] += 1
        again = Fold(lengths, signs)
        again.restore(part.arrays())
        parts.merge(again)
    assert parts.reasons == {"why": 12}
    one, other = whole.arrays(), parts.arrays()
    for name in one.keys() - {"reasons"}:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


EDGES = np.concatenate([2.0**octave * (1 + np.arange(64) / 64) for octave in range(-30, 30)])
"""The lower ends of the finest bins."""


def counted(statistics: AxisStatistics, axis: int, objective: int) -> np.ndarray:
    """Return the counts of an axis over the whole scale, shape (values, bins)."""
    found = statistics.histograms[objective]
    table = found.tables[axis]
    width = table.shape[1] // (found.high - found.low)
    return np.pad(table, ((0, 0), (found.low * width, (60 - found.high) * width)))


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
            found = counted(statistics, axis, objective)
            coarser = len(EDGES) // found.shape[1]
            expected = np.zeros_like(found)
            np.add.at(expected, (digit[feasible], bins[feasible] // coarser), 1)
            np.testing.assert_array_equal(found, expected)
            rows = sum(lengths[:axis]) + digit[feasible]
            np.minimum.at(best[:, objective], rows, signs[objective] * column[feasible])
    np.testing.assert_array_equal(statistics.best, best)


def test_values_off_the_scale_are_in_its_ends_and_told() -> None:
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


def test_a_front_beyond_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dse.grid.accumulator.LARGEST_FRONT", 10)
    equal, total = Fold((20,), (1.0,)), Fold((20,), (1.0,))
    equal.add(0, np.ones(20, bool), np.ones((1, 20)))
    with pytest.raises(InputError, match="more than 10 designs are equally good"):
        total.merge(equal)


MEASURE = (
    "import sys; from pathlib import Path; from tests.grid.trivial import trivial; "
    "from dse.grid.sweep import sweep; folder = Path(sys.argv[1]); "
    "found = sweep(trivial(int(sys.argv[2]), folder), folder / 'out'); assert found.keep == 'front'; "
    "status = dict(line.split(':', 1) for line in Path('/proc/self/status').read_text().splitlines()); "
    "print(found.n, int(status['VmHWM'].split()[0]) * 1024)"
)
"""The kernel's peak of this program alone: ru_maxrss begins with what the process that started it held."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read where Linux tells it")
def test_a_hundred_million_designs_take_bounded_memory(tmp_path: Path) -> None:
    """About a minute and a half on two quiet cores; DSE_TEST_DESIGNS asks for another number of designs."""
    size = int(os.environ.get("DSE_TEST_DESIGNS", "100000000"))
    command = [sys.executable, "-c", MEASURE, str(tmp_path), str(size)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    count, memory = map(int, done.stdout.split())
    assert count >= size
    assert memory < 2 * 2**30

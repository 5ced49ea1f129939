"""What is kept of a sweep: every design, or only the front, the best, statistics and a sample."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.pareto_filter import pareto_mask
from dse.evaluate.platform import CPU, PLATFORMS
from dse.grid.accumulator import TOP
from dse.grid.record import load_result
from dse.grid.result import SweepResult
from dse.grid.sweep import sweep
from tests.grid.fronts import only_ties
from tests.grid.trivial import trivial, with_chunks

SIZE = 30_000


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepResult, SweepResult]:
    """The same sweep with every design kept, and with the front alone."""
    folder = tmp_path_factory.mktemp("keep")
    PLATFORMS["cpu"] = with_chunks()
    space = trivial(SIZE, folder)
    result = tuple(sweep(space, folder / keep, keep=keep) for keep in ("all", "front"))
    PLATFORMS["cpu"] = CPU
    return result  # pyright: ignore[reportReturnType]


def same_rows(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Assert that two tables hold the same designs; the reasons that they know of may differ.

    Two programs round the small parts of a time as its large ones: ``atol`` is some millionth of a design's time [ms].
    """
    one, other = (table.drop(columns="reason").reset_index(drop=True) for table in (one, other))
    pd.testing.assert_frame_equal(one, other, atol=3e-8)


def test_the_front_is_that_of_all_designs(both: tuple[SweepResult, SweepResult]) -> None:
    every, front = both
    names = [o.name for o in every.space.objectives]
    mine, theirs = (one.front[names].to_numpy() for one in (front, every))  # of two programs, which may round apart
    assert only_ties(mine, theirs).all() and only_ties(theirs, mine).all()
    points = every.points()
    points = points[points["feasible"]]
    costs = points[names].to_numpy()
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
        result = front.top[front.top["best_in"] == objective.name].reset_index(drop=True)
        same_rows(result.drop(columns="best_in"), best)


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


MEASURE = (
    "import sys; from pathlib import Path; from tests.grid.trivial import trivial; "
    "from dse.grid.sweep import sweep; folder = Path(sys.argv[1]); "
    "found = sweep(trivial(int(sys.argv[2]), folder), folder / 'out'); assert found.keep == 'front'; "
    "status = dict(line.split(':', 1) for line in Path('/proc/self/status').read_text().splitlines()); "
    "print(found.n, int(status['VmHWM'].split()[0]) * 1024)"
)
"""The kernel's peak of this program alone: ru_maxrss begins with what the process that started it held."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="run on Linux, which tells the peak of memory")
def test_a_hundred_million_designs_take_bounded_memory(tmp_path: Path) -> None:
    """About a minute and a half on two quiet cores; DSE_TEST_DESIGNS asks for another number of designs."""
    size = int(os.environ.get("DSE_TEST_DESIGNS", "100000000"))
    command = [sys.executable, "-c", MEASURE, str(tmp_path), str(size)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    count, memory = map(int, done.stdout.split())
    assert count >= size
    assert memory < 2 * 2**30

"""Shards whose designs never leave the device: the same of everything as shards on the host."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.evaluate.platform import CPU, PLATFORMS
from dse.grid import shard, sweep_program
from dse.grid.accumulator import Accumulator
from dse.grid.device_shard import DeviceShards
from dse.grid.shard import Shard, SpaceEvaluator
from dse.grid.sweep import sweep
from dse.space.space import Space, space_from_mapping
from tests.evaluate.two_programs import assert_alike
from tests.grid.fronts import TIE, only_ties
from tests.grid.trivial import trivial

SIZE, CHUNK, PORTION = 30_000, 512, 4000


def whole(evaluator: SpaceEvaluator, size: int, tick: Callable[[int], None] = lambda count: None) -> Accumulator:
    """The accumulator of all designs, from portions that are no whole chunks."""
    found = evaluator.empty_accumulator()
    for number, start in enumerate(range(0, size, PORTION)):
        part = Shard(number, start, min(start + PORTION, size))
        found.merge(evaluator.shard(part, False, tick).accumulator)
    return found


def alike(one: Accumulator, other: Accumulator) -> None:
    """Assert that accumulators of two programs, which may round apart, hold the same: of the front all but ties."""
    mine, theirs = one.arrays(), other.arrays()
    assert mine.keys() == theirs.keys()
    for name in mine.keys() - {"reasons", "front", "costs"}:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=TIE, err_msg=name)
    (_, my_costs), (_, their_costs) = one.front.members, other.front.members
    assert only_ties(my_costs, their_costs).all() and only_ties(their_costs, my_costs).all()
    assert one.reasons == other.reasons


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    """Maximised and minimised objectives, one of them without a number in some designs, and a constraint."""
    space = trivial(SIZE, tmp_path_factory.mktemp("space"))
    objectives = [
        *space.content["objectives"],
        {"value": "1e3 / (sm_count - 100) ** 2", "goal": "max", "name": "distance"},
    ]
    return space_from_mapping(space.content | {"objectives": objectives}, "here", "three", space.folder)


@pytest.fixture(scope="module")
def evaluators(space: Space) -> tuple[SpaceEvaluator, SpaceEvaluator]:
    """One that reduces on the device, one on the host."""
    return SpaceEvaluator(space, CHUNK, reduced=True), SpaceEvaluator(space, CHUNK)


@pytest.fixture(scope="module")
def expected(evaluators: tuple[SpaceEvaluator, SpaceEvaluator]) -> Accumulator:
    return whole(evaluators[1], SIZE)


def test_they_accumulate_what_the_host_does(evaluators: Any, expected: Accumulator, space: Space) -> None:
    ticks: list[int] = []
    alike(whole(evaluators[0], SIZE, ticks.append), expected)
    assert sum(ticks) == SIZE
    reasons = {text.partition(":")[0] for text in expected.reasons}
    assert reasons == {"constraint", "objective"}


def test_a_program_that_returns_no_results_accumulates_the_same(
    expected: Accumulator, evaluators: Any, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", replace(CPU, apart=True, chunks=1))
    apart = SpaceEvaluator(space, CHUNK, reduced=True)
    apart.compile_all()
    alike(whole(apart, SIZE), expected)
    mine, theirs = (one.designs(np.arange(100)).to_pandas() for one in (apart, evaluators[1]))
    pd.testing.assert_frame_equal(mine, theirs, rtol=TIE)


def test_designs_given_by_columns_have_the_same_results(evaluators: Any, space: Space) -> None:
    numbers = np.arange(7, SIZE, 611)
    mine, theirs = (one.designs(numbers).to_pandas() for one in evaluators)
    pd.testing.assert_frame_equal(mine.select_dtypes(exclude="number"), theirs.select_dtypes(exclude="number"))
    assert_alike(*({k: v.to_numpy() for k, v in one.select_dtypes("number").items()} for one in (mine, theirs)))


def test_little_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a space where a fifth of the designs is on the front, since many tie: less than twice as many."""
    space = trivial(SIZE, tmp_path)
    evaluator, counts = SpaceEvaluator(space, 2048, reduced=True), []
    take = DeviceShards._survivors

    def counted(self: Any, rows: Any, reduced: Any) -> Any:
        counts.append(int(np.asarray(reduced.survivors.survived).sum()))
        return take(self, rows, reduced)

    monkeypatch.setattr(DeviceShards, "_survivors", counted)
    found = evaluator.shard(Shard(0, 0, SIZE // 2), False).accumulator
    found.merge(evaluator.shard(Shard(1, SIZE // 2, SIZE), False).accumulator)
    assert len(found.front) <= sum(counts) < 2 * len(found.front)


@pytest.mark.parametrize("room", [1, 10**6])
def test_more_survivors_than_there_is_room_for_are_fetched(
    space: Space, expected: Accumulator, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_program, "SURVIVING", room)
    monkeypatch.setattr(sweep_program, "WORD", 1)
    alike(whole(SpaceEvaluator(space, CHUNK, reduced=True), SIZE), expected)


def test_objectives_off_the_scale_have_a_best_and_no_median(space: Space, tmp_path: Path) -> None:
    objectives = [
        {"value": "gemm.time_ms", "goal": "min"},
        {"value": "sm_count - 100", "goal": "min", "name": "above"},
        {"value": "1e12 * die_mm2", "goal": "min", "name": "large"},
    ]
    content = space.content | {"objectives": objectives}
    narrow = space_from_mapping(content, "here", "off", space.folder)
    mine, theirs = SpaceEvaluator(narrow, CHUNK, reduced=True), SpaceEvaluator(narrow, CHUNK)
    one, other = whole(mine, SIZE), whole(theirs, SIZE)
    assert one.axes.off_scale.tolist() == other.axes.off_scale.tolist() == [False, True, True]
    for axis, length in enumerate(one.axes.lengths):
        for value in range(length):
            for objective in range(3):
                figures = [np.array(x.axes._figures(axis, value, objective, 1.0), float) for x in (one, other)]
                np.testing.assert_allclose(*figures, rtol=TIE, err_msg=f"{axis}, {value}, {objective}")
    for objective in range(3):
        np.testing.assert_array_equal(one.top(objective), other.top(objective))
    (_, my_costs), (_, their_costs) = one.front.members, other.front.members
    assert only_ties(my_costs, their_costs).all() and only_ties(their_costs, my_costs).all()


def test_a_link_of_many_combinations_keeps_designs_on_the_host(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dse.grid.device_designs.MOST_COMBINATIONS", 10)
    monkeypatch.setattr(shard, "MOST_COMBINATIONS", 10)
    links = {"l2_slices": "sm_count"}
    linked = space_from_mapping(space.content | {"links": links}, "here", "linked", space.folder)
    evaluator = SpaceEvaluator(linked, CHUNK, reduced=True)
    assert evaluator.notes == [
        "designs were made and compared on the host: l2_slices follows more than 10 combinations of axes"
    ]
    monkeypatch.setitem(PLATFORMS, "cpu", replace(CPU, reduced_from=SIZE))
    result = sweep(linked, tmp_path / "out", keep="front")
    assert evaluator.notes[0] in result.notes

"""A run's parts: what it must share to go on, and the evaluator that it asks for."""

from dataclasses import replace
from pathlib import Path

import pytest

from dse.evaluate.platform import CPU, PLATFORMS
from dse.grid.sweep_run import SweepRun, evaluator_of
from tests.grid.trivial import trivial


def test_a_part_is_told_from_the_whole(tmp_path: Path) -> None:
    run = SweepRun(trivial(1_000, tmp_path), None, "front", None, None)
    whole, part = run.identity(), run.identity("3/64")
    assert {key for key in whole if whole[key] != part[key]} == {"part"}
    assert run.shards[-1].stop == run.space.size


def test_only_a_front_of_many_designs_is_reduced_on_the_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = trivial(1_000, tmp_path)
    assert not evaluator_of(space, "front").reduced
    monkeypatch.setitem(PLATFORMS, "cpu", replace(CPU, reduced_from=1_000))
    assert evaluator_of(space, "front").reduced and not evaluator_of(space, "all").reduced

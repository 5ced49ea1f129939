"""Sweeps of spaces with variants: what is kept, going on after an interruption, check, and designs of devices."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dse
from dse.grid.estimate import estimate
from dse.grid.record import load_result
from dse.grid.shard import SpaceEvaluator
from dse.space.space import Space, space_from_mapping


@pytest.fixture
def space(small: dict[str, Any]) -> Space:
    small["axes"] = {"decode.batch": [1, 8, 64], "sm_count": [96, 132], "dram_gb": [2, 80]}
    return space_from_mapping(
        small | {"base": ["h100_sxm", "b200"], "constraints": ["die_mm2 <= 800"]}, "here", "small"
    )


def test_the_front_is_the_same_however_much_is_kept(space: Space):
    whole, front = dse.sweep(space), dse.sweep(space, keep="front")
    pd.testing.assert_frame_equal(whole.front, front.front)
    pd.testing.assert_frame_equal(whole.axis_effects, front.axis_effects)
    assert whole.infeasible == front.infeasible and whole.n_feasible == front.n_feasible


def test_an_interrupted_sweep_goes_on_to_the_same_files(space: Space, tmp_path: Path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    dse.sweep(space, whole)

    def stop(count: int) -> None:
        if count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dse.sweep(space, broken, stop)
    result = dse.sweep(space, broken, resume=True)
    assert (broken / "points.parquet").read_bytes() == (whole / "points.parquet").read_bytes()
    assert (broken / "pareto.parquet").read_bytes() == (whole / "pareto.parquet").read_bytes()
    again = load_result(broken)
    pd.testing.assert_frame_equal(again.front, result.front, check_dtype=False, check_categorical=False)
    assert {"base", "decode.batch"} <= set(again.front) and dse.sweep(space, broken, resume=True).n == space.size


def test_shards_merge_to_the_same_files(space: Space, tmp_path: Path):
    dse.sweep(space, tmp_path / "whole")
    shards = [dse.sweep_shard(space, tmp_path / f"{number}", f"{number}/3").folder for number in (3, 1, 2)]
    dse.merge(shards, tmp_path / "merged")
    for name in ("points.parquet", "pareto.parquet"):
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_processes_of_a_cluster_write_the_same_files(space: Space, tmp_path: Path):
    dse.sweep(space, tmp_path / "whole")
    dse.sweep(space, tmp_path / "cluster", cluster="local:1")
    for name in ("points.parquet", "pareto.parquet"):
        assert (tmp_path / "cluster" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_check_tells_designs_kernels_and_shares(space: Space):
    figures = estimate(space)
    assert figures.n == 24 and figures.constraint_shares["die_mm2 <= 800"] is not None
    assert 0 < figures.constraint_shares["die_mm2 <= 800"] < 1


def test_devices_do_not_make_its_designs(space: Space):
    evaluator = SpaceEvaluator(space, reduced=True)
    (note,) = evaluator.notes
    assert "made and compared on the host: base and decode.batch" in note and evaluator.evaluator.groups is None

"""Designs that break a constraint: a sample in grid order, the same from memory and from a folder."""

import pandas as pd
import pytest

from dse import sweep
from dse.grid.record import load_result
from dse.reports.sweep import data_infeasible
from dse.reports.sweep.data_infeasible import infeasible_designs
from tests.reports.conftest import SMALL, swept


def test_all_of_few_and_some_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    result = swept(constraints=["die_mm2 <= 700"])
    points = result.points()
    refused = points[~points["feasible"]].reset_index(drop=True)
    found = infeasible_designs(result).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, refused[list(found)])
    assert found["reason"].str.contains("die_mm2").all() and len(found) == result.n - result.n_feasible
    monkeypatch.setattr(data_infeasible, "REFUSED", 4)
    few = infeasible_designs(result)
    step = -(-len(refused) // 4)
    pd.testing.assert_frame_equal(few.reset_index(drop=True), found[::step].reset_index(drop=True))


def test_the_same_from_a_folder_and_none_of_a_front_alone(tmp_path, small) -> None:
    from dse.space.space import space_from_mapping

    space = space_from_mapping(small | {"constraints": ["die_mm2 <= 700"]}, "here", "small")
    here, there = sweep(space), sweep(space, tmp_path / "out")
    pd.testing.assert_frame_equal(
        infeasible_designs(here).reset_index(drop=True), infeasible_designs(there).reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(infeasible_designs(load_result(tmp_path / "out")), infeasible_designs(there))
    assert infeasible_designs(sweep(space, tmp_path / "front", keep="front")).empty
    assert infeasible_designs(swept(objectives=SMALL["objectives"])).empty

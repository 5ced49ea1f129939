"""Designs that break a constraint: a sample in grid order, from memory and from a folder; why a sweep found none."""

import numpy as np
import pandas as pd
import pytest

from dse import sweep
from dse.grid.record import load_result
from dse.grid.result import SweepResult
from dse.reports.sweep import data_infeasible
from dse.reports.sweep.data_infeasible import infeasible_designs, unmet
from tests.reports.conftest import QUICK, SMALL, swept

AXES = {"tensor_fma_bf16": [256, 512], "sm_count": [96, 120, 144]}


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


def impossible(*constraints: str, **options: str) -> SweepResult:
    result = swept(axes=AXES, links={}, objectives=SMALL["objectives"][::2], constraints=[*constraints], **QUICK)
    assert result.front.empty
    return result


def test_what_a_workload_decides_is_told_with_what_the_designs_reach() -> None:
    found = swept(axes=AXES, links={}, objectives=SMALL["objectives"][::2], **QUICK)
    assert unmet(found) == [] and found.table is not None
    times, areas = (np.asarray(found.table[name]) for name in ("prefill.ttft_ms", "die_mm2"))
    assert unmet(impossible("die_mm2 <= 100", "prefill.ttft_ms < 0.001 * base.prefill.ttft_ms")) == [
        f"no design is within die_mm2 <= 100: die_mm2 is {areas.min():.5g} to {areas.max():.5g}",
        "no design is within prefill.ttft_ms < 0.001 * base.prefill.ttft_ms: prefill.ttft_ms is "
        f"{times.min():.5g} to {times.max():.5g}",
    ]


def test_a_constraint_on_what_no_table_holds_is_left_to_the_counts() -> None:
    assert unmet(impossible("prefill.power_w <= 0.001 * tdp_w", "prefill.power_w <= 0.001 * tdp_w")) == []


def test_constraints_that_exclude_each_other_say_what_each_leaves() -> None:
    (sentence,) = unmet(impossible("sm_count <= 96", "sm_count >= 144"))
    assert sentence == (
        "no design keeps to all constraints: sm_count <= 96 leaves 33 % and sm_count >= 144 leaves 33 % of the designs"
    )

"""The data of figures and tables: chosen designs, stacks, thinning and the answer's sentences."""

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from dse.grid.result import SweepResult
from dse.reports.sweep import data as findings
from dse.reports.sweep.answer import answer
from dse.reports.sweep.page import page_html


def test_chosen_designs_are_best_under_the_baselines_limits(result: SweepResult) -> None:
    chosen, base = findings.chosen_designs(result), result.baseline.iloc[0]
    assert chosen["position"].iloc[0] == -1
    assert chosen["design"].iloc[0] == "H100 SXM5 80GB"
    assert 2 <= len(chosen) <= findings.MOST_IN_FULL
    points = result.points()
    for objective in result.space.objectives:
        allowed = points[points["feasible"]]
        for other in result.space.objectives:
            if other is not objective:
                allowed = allowed[allowed[other.name] <= base[other.name] * (1 + 1e-6)]
        best = result.front.iloc[findings.best_no_worse(result, objective)][objective.name]
        assert best == pytest.approx(allowed[objective.name].min(), rel=1e-6)


def test_stacks_add_up_to_the_time(result: SweepResult) -> None:
    frame, chosen = findings.stacks(result), findings.chosen_designs(result)
    sums = frame.groupby(["workload", "letter"])["ms"].sum()
    for workload in result.space.workloads:
        for _, design in chosen.iterrows():
            assert sums[workload.name, design["letter"]] == pytest.approx(design[f"{workload.name}.time_ms"], rel=1e-5)
    assert (
        frame.groupby(["workload", "cause"])["share"].max().drop(findings.REST, level=1) >= findings.SMALL_SHARE
    ).all()


def test_thinning_is_reported(result: SweepResult) -> None:
    assert findings.shown_text(20_000, 1_358_280) == "20,000 of 1,358,280 shown"
    assert findings.shown_text(45, 45) == "45"
    assert len(findings.thinned(result.sample, 7)) == 7


def test_front_table_holds_the_chosen_designs(result: SweepResult) -> None:
    rows = len(result.front) - 1
    table = findings.front_table(result, rows)
    assert table["letter"].iloc[0] == "base"
    assert len(table) == rows + 1
    letters = set(findings.chosen_designs(result)["letter"]) - {""}
    assert letters <= set(table["letter"])
    first = result.space.objectives[0]
    assert table[first.name].iloc[1:].is_monotonic_increasing
    assert table["position"].iloc[0] == -1
    placed = result.front[first.name].to_numpy()[table["position"].to_numpy()[1:]]
    assert (placed == table[first.name].to_numpy()[1:]).all()


def test_nothing_feasible(impossible: SweepResult) -> None:
    nothing, explanations = answer(impossible)
    assert nothing == "None of the 2 designs can be had; the reasons are counted below."
    assert explanations.startswith("No design is within die_mm2 <= 5: die_mm2 is ")
    assert findings.infeasible(impossible)[["reason", "designs"]].to_numpy().tolist() == [
        ["constraint: die_mm2 <= 5", 2]
    ]
    assert len(findings.chosen_designs(impossible)) == 1
    assert len(findings.front_table(impossible)) == 1


def test_a_base_without_a_result(result: SweepResult) -> None:
    """The base GPU has no kernel that runs: its row is empty, and nothing is compared with it."""
    empty = dict.fromkeys(result.baseline.select_dtypes("float32").columns, np.nan)
    baseline = result.baseline.assign(**empty, feasible=False, reason="kernel: prefill has no kernel")
    without_result = replace(result, baseline=baseline)
    assert findings.measured_baseline(without_result).empty
    assert (findings.chosen_designs(without_result)["position"] >= 0).all()
    assert not findings.stacks(without_result).empty
    assert answer(without_result)[1] == "The base GPU has no result to compare with: kernel: prefill has no kernel."
    body = page_html(without_result).split("</head>")[1]
    arrays = re.findall(r'"dtype":"(f[48])","bdata":"([^"]*)"', body)
    assert all(np.isfinite(np.frombuffer(b64decode(json.loads(f'"{data}"')), dtype)).all() for dtype, data in arrays)
    assert "NaN" not in re.sub(r'"bdata":"[^"]*"', "", body)  # in base 64 the letters may come by chance


def test_provenance_holds_what_decides_and_no_times(result: SweepResult) -> None:
    rows = dict(findings.provenance(result))
    assert rows["Digest of all inputs"] == result.space.digest
    assert rows["Calibration"] == "uncalibrated"
    assert rows["Axis sm_count"] == "96, 108, 120, 132, 144 SM"
    assert "seconds" not in str(rows)


def test_reasons_of_memory_that_differ_in_numbers_are_one(single: SweepResult) -> None:
    needs = "memory: v3 needs {} GB on each of 8 GPUs, has {} GB"
    reasons = {"constraint: die_mm2 <= 814": 5, needs.format("105.2", 80): 4, needs.format("99", 48): 3}
    reasons |= {"constraint: die_mm2 <= 900": 1}
    frame = findings.infeasible(replace(single, n=26, infeasible=reasons))
    assert frame["reason"].tolist() == [
        "memory: v3 needs 99 to 105.2 GB on each of 8 GPUs, has 48 to 80 GB",
        "constraint: die_mm2 <= 814",
        "constraint: die_mm2 <= 900",
    ]
    assert frame["designs"].tolist() == [7, 5, 1] and frame["share"].tolist() == [7 / 26, 5 / 26, 1 / 26]

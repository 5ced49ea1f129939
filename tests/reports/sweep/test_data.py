"""The data of figures and tables: chosen designs, stacks, thinning and the answer's sentences."""

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from dse.grid.result import SweepResult
from dse.hardware.presets import preset_sheet
from dse.reports.common.words import change, number, signed_percent
from dse.reports.sweep import data as findings
from dse.reports.sweep.answer import answer, caveats, covers_power, question
from dse.reports.sweep.page import page_html
from dse.workload.parse import load_workload
from tests.reports.conftest import HOSTILE


def test_chosen_designs_are_best_within_the_baselines_limits(result: SweepResult) -> None:
    chosen, base = findings.chosen_designs(result), result.baseline.iloc[0]
    assert chosen["position"].iloc[0] == -1
    assert chosen["design"].iloc[0] == "H100 SXM5 80GB"
    assert 2 <= len(chosen) <= findings.MOST_CHOSEN
    points = result.points()
    for objective in result.space.objectives:
        allowed = points[points["feasible"]]
        for other in result.space.objectives:
            if other is not objective:
                allowed = allowed[allowed[other.name] <= base[other.name] * (1 + 1e-6)]
        best = result.front.iloc[findings.best_within(result, objective)][objective.name]
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


def test_thinning_is_told(result: SweepResult) -> None:
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


def test_answer_is_three_sentences_with_the_results_numbers(result: SweepResult) -> None:
    reach, gain, why = answer(result)
    assert reach.startswith(f"Of 45 designs, {len(result.front)} are Pareto-optimal: prefill time to first token from")
    best = result.front.iloc[findings.best_within(result, result.space.objectives[0])]
    assert number(best["prefill.ttft_ms"]) in gain
    assert "no worse than on the H100 SXM5 80GB" in gain
    assert "Prefill on the H100 SXM5 80GB is held back by" in why
    assert question(result) == "Which mix is best?"


def test_rates_of_another_type_and_dies_beyond_a_scanner_s_field_are_told(result: SweepResult) -> None:
    fp8 = load_workload("gpt2_xl:phase=decode,batch=8,context=512,dtype=fp8", name="decode")
    bf16 = [name for name in result.space.links if name[0] != "tensor_fma_fp8"]
    elsewhere = replace(result, space=replace(result.space, workloads=(fp8,), links=tuple(bf16)))
    told = [note for note in caveats(elsewhere) if "moves, but the products" in note]
    assert len(told) == 1 and "the products of decode run in fp8: link tensor_fma_fp8 to it" in told[0]
    assert not [note for note in caveats(result) if "moves, but the products" in note]
    large, small = (replace(result, front=result.front.assign(die_mm2=size)) for size in (859.0, 858.0))
    assert f"{len(result.front)} designs of the front have more than 858 mm2" in " ".join(caveats(large))
    assert "scanner's field" not in " ".join(caveats(small))


def test_an_area_that_no_published_die_stands_behind_is_told(result: SweepResult) -> None:
    assert "is not published" not in " ".join(caveats(result))
    unknown = replace(result, space=replace(result.space, base=preset_sheet("b200")))
    assert "the die of B200 SXM (HGX) is not published, so that its area here was never checked" in " ".join(
        caveats(unknown)
    )


def test_bandwidth_that_no_pin_gives_is_told(result: SweepResult, single: SweepResult) -> None:
    fast = (result.front["dram_bandwidth_gbs"] == 6700).sum()  # 5,120 bits of HBM3
    assert f"{fast} designs of the front ask up to 10.5 Gbit/s of a DRAM pin" in " ".join(caveats(result))
    assert "Gbit/s" not in " ".join(caveats(single))


def test_tokens_beyond_a_network_s_positions_are_told(result: SweepResult) -> None:
    long = load_workload("gpt2_xl:phase=decode,batch=8,context=2048", name="decode")
    asked = " ".join(caveats(replace(result, space=replace(result.space, workloads=(long,)))))
    assert "decode: 2,048 tokens are beyond the 1,024 positions that GPT-2 XL was made for" in asked
    assert "positions" not in " ".join(caveats(result))


def test_caveats_name_calibration_and_power(result: SweepResult, impossible: SweepResult) -> None:
    text = " ".join(caveats(result))
    assert "Uncalibrated" in text
    assert "No objective covers power" in text
    assert not covers_power(result)
    assert "The baseline itself is infeasible" in caveats(impossible)[-1]
    assert findings.chosen_designs(impossible)["design"].iloc[0].endswith(" (infeasible)")
    assert "infeasible" not in findings.chosen_designs(result)["design"].iloc[0]


def test_nothing_feasible(impossible: SweepResult) -> None:
    nothing, why = answer(impossible)
    assert nothing == "None of the 2 designs can be had; the reasons are counted below."
    assert why.startswith("No design is within die_mm2 <= 5: die_mm2 is ")
    assert findings.infeasible(impossible)[["reason", "designs"]].to_numpy().tolist() == [
        ["constraint: die_mm2 <= 5", 2]
    ]
    assert len(findings.chosen_designs(impossible)) == 1
    assert len(findings.front_table(impossible)) == 1


def test_single_objective_and_maximised_ones_have_answers(single: SweepResult, maximised: SweepResult) -> None:
    assert answer(single)[0].startswith("Of 3 designs, 1 is Pareto-optimal")
    assert answer(single)[1].startswith("The best prefill time to first token is")
    assert HOSTILE in answer(maximised)[0]


def test_a_base_without_a_result(result: SweepResult) -> None:
    """The base GPU has no kernel that runs: its row is empty, and nothing is compared with it."""
    empty = dict.fromkeys(result.baseline.select_dtypes("float32").columns, np.nan)
    baseline = result.baseline.assign(**empty, feasible=False, reason="kernel: prefill has no kernel")
    found = replace(result, baseline=baseline)
    assert findings.measured_baseline(found).empty
    assert (findings.chosen_designs(found)["position"] >= 0).all()
    assert not findings.stacks(found).empty
    assert answer(found)[1] == "The base GPU has no result to compare with: kernel: prefill has no kernel."
    body = page_html(found).split("</head>")[1]
    arrays = re.findall(r'"dtype":"(f[48])","bdata":"([^"]*)"', body)
    assert all(np.isfinite(np.frombuffer(b64decode(json.loads(f'"{data}"')), dtype)).all() for dtype, data in arrays)
    assert "NaN" not in re.sub(r'"bdata":"[^"]*"', "", body)  # in base 64 the letters may come by chance


def test_provenance_holds_what_decides_and_no_times(result: SweepResult) -> None:
    rows = dict(findings.provenance(result))
    assert rows["Digest of all inputs"] == result.space.digest
    assert rows["Calibration"] == "uncalibrated"
    assert rows["Axis sm_count"] == "96, 108, 120, 132, 144 SM"
    assert "seconds" not in str(rows)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (36.2037, "36.2"),
        (8.3567, "8.36"),
        (799.378, "799"),
        (1544.7, "1,545"),
        (0.05, "0.0500"),
        (0, "0"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_changes() -> None:
    assert change(28.1, 36.2) == "22 % less"
    assert change(36.3, 36.2) == "0.3 % more"
    assert change(1.0, 0.0) == ""
    assert signed_percent(28.1, 36.2) == "−22 %"
    assert signed_percent(36.2, 36.2) == "0.0 %"

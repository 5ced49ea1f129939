"""The answer of a sweep in three sentences, and what must be said beside it."""

from dataclasses import replace

from dse.grid.result import SweepResult
from dse.hardware.presets import preset_sheet
from dse.reports.common.words import number
from dse.reports.sweep import data as findings
from dse.reports.sweep.answer import answer, caveats, covers_power, question
from dse.workload.parse import load_workload
from tests.reports.conftest import HOSTILE


def test_answer_is_three_sentences_with_the_results_numbers(result: SweepResult) -> None:
    reach, gain, explanations = answer(result)
    assert reach.startswith(f"Of 45 designs, {len(result.front)} are Pareto-optimal: prefill time to first token from")
    best = result.front.iloc[findings.best_no_worse(result, result.space.objectives[0])]
    assert number(best["prefill.ttft_ms"]) in gain
    assert "no worse than on the H100 SXM5 80GB" in gain
    assert "Prefill on the H100 SXM5 80GB is held back by" in explanations
    assert question(result) == "Which mix is best?"


def test_dies_beyond_a_scanner_s_field_are_reported(result: SweepResult) -> None:
    large, small = (replace(result, front=result.front.assign(die_mm2=size)) for size in (859.0, 858.0))
    assert f"{len(result.front)} designs of the front have more than 858 mm2" in " ".join(caveats(large))
    assert "scanner's field" not in " ".join(caveats(small))


def test_an_area_that_no_published_die_stands_behind_is_reported(result: SweepResult) -> None:
    assert "is not published" not in " ".join(caveats(result))
    unknown = replace(result, space=replace(result.space, base=preset_sheet("b200")))
    assert "the die of B200 SXM (HGX) is not published, so that its area here was never checked" in " ".join(
        caveats(unknown)
    )


def test_what_is_known_of_the_area_of_tensor_cores_is_said_where_their_rate_moves(
    result: SweepResult, single: SweepResult
) -> None:
    notes = " ".join(caveats(result))
    assert "Area of tensor cores: 133 of the" in notes and "four times the rate" in notes
    assert "Area of tensor cores" not in " ".join(caveats(single))


def test_bandwidth_that_no_pin_gives_is_reported(result: SweepResult, single: SweepResult) -> None:
    fast = (result.front["dram_bandwidth_gbs"] == 6700).sum()  # 5,120 bits of HBM3
    assert f"{fast} designs of the front ask up to 10.5 Gbit/s of a DRAM pin" in " ".join(caveats(result))
    assert "Gbit/s" not in " ".join(caveats(single))


def test_tokens_beyond_a_network_s_positions_are_reported(result: SweepResult) -> None:
    long = load_workload("gpt2_xl:phase=decode,batch=8,context=2048", name="decode")
    notes = " ".join(caveats(replace(result, space=replace(result.space, workloads=(long,)))))
    assert "decode: 2,048 tokens are beyond the 1,024 positions that GPT-2 XL was made for" in notes
    assert "positions" not in " ".join(caveats(result))


def test_caveats_name_calibration_and_power(result: SweepResult, impossible: SweepResult) -> None:
    text = " ".join(caveats(result))
    assert "Uncalibrated" in text
    assert "No objective covers power" in text
    assert not covers_power(result)
    assert "The baseline itself is infeasible" in caveats(impossible)[-1]
    assert findings.chosen_designs(impossible)["design"].iloc[0].endswith(" (infeasible)")
    assert "infeasible" not in findings.chosen_designs(result)["design"].iloc[0]


def test_single_objective_and_maximised_ones_have_answers(single: SweepResult, maximised: SweepResult) -> None:
    assert answer(single)[0].startswith("Of 3 designs, 1 is Pareto-optimal")
    assert answer(single)[1].startswith("The best prefill time to first token is")
    assert HOSTILE in answer(maximised)[0]

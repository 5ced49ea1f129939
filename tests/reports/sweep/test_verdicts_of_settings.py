"""Bases and settings in the answer: sentences, notes, explanations and GPU files of each design's own base."""

import copy
from dataclasses import replace

import pytest

import dse
from dse.hardware.presets import gpu_from_mapping
from dse.reports.common.words import number
from dse.reports.sweep.answer import caveats, question
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.design_explanations import design_sheet, explain_designs
from dse.reports.sweep.design_toml import design_files
from dse.reports.sweep.verdicts import setting_headline, setting_sentences
from dse.space.space import space_from_mapping
from tests.conftest import SMALL

tomllib = pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def result() -> dse.SweepResult:
    content = copy.deepcopy(SMALL) | {"base": ["h100_sxm", "b200", "a100_sxm_80gb"], "links": {}}
    content["axes"] = {"decode.batch": [1, 8], "l2_mib": [40, 60]}
    content["workloads"] = {"decode": "gpt2_xl:phase=decode,batch=8,context=512,dtype=fp8"}
    values = (("decode.usd_per_mtoken", "min"), ("decode.tbt_ms", "min"))
    content["objectives"] = [{"value": value, "goal": goal} for value, goal in values]
    return dse.sweep(space_from_mapping(content, "here", "small"))


def test_each_value_is_told_by_the_best_design_that_has_it(result: dse.SweepResult):
    base, batch = setting_sentences(result)
    points = result.points()
    best = points.groupby("decode.batch")["decode.tbt_ms"].min()
    assert batch.startswith("decode.batch [request]: best decode dollars")
    assert batch.endswith(f"time between tokens [ms] of 1 {number(best[1])}, 8 {number(best[8])}.")
    assert base.endswith("No design can be had with a100_sxm_80gb.")
    cheapest = points.loc[points["decode.usd_per_mtoken"].idxmin()]
    assert f"base {cheapest['base']} and decode.batch 8" in setting_headline(result)[0]
    for gpu, rows in points[points["feasible"]].groupby("base"):
        row = rows.loc[rows["decode.usd_per_mtoken"].idxmin()]
        value = number(row["decode.usd_per_mtoken"])
        assert f"{gpu} {value} (batch {row['decode.batch']})" in base
    assert "(batch" not in batch  # its own values


def test_a_setting_of_one_value_is_no_answer():
    content = copy.deepcopy(SMALL) | {"links": {}, "timing": "roofline", "objectives": SMALL["objectives"][1:2]}
    content |= {"axes": {"decode.batch": [8], "sm_count": [96, 132]}, "workloads": {"decode": "gpt2_xl:phase=decode"}}
    assert setting_headline(dse.sweep(space_from_mapping(content, "here", "small"))) == []


def test_the_question_over_bases_names_none(result: dse.SweepResult):
    unasked = replace(result, space=replace(result.space, question=""))
    assert question(unasked).startswith("Which base, decode.batch and l2_mib minimize ")


def test_notes_say_prices_and_what_the_baseline_is(result: dse.SweepResult):
    notes = " ".join(caveats(result))
    assert "h100_sxm 2.29 (Verda on demand, 2026); b200 4.89" in notes and "costs what its base does" in notes
    assert "The baseline is H100 SXM5 80GB and decode.batch = 8" in notes


def test_a_plain_space_has_none():
    plain = dse.sweep(space_from_mapping(SMALL | {"axes": {"sm_count": [96, 132]}, "links": {}}, "here", "small"))
    assert setting_sentences(plain) == setting_headline(plain) == []


def test_designs_are_explained_on_their_own_base_and_shape(result: dse.SweepResult):
    explanations, chosen = explain_designs(result), chosen_designs(result)
    assert explanations and set(explanations.watts["letter"]) == set(chosen["letter"])
    for _, row in chosen[chosen["position"] >= 0].iterrows():
        assert design_sheet(result.space, row).numbers()["l2_mib"] == row["l2_mib"]
        assert design_sheet(result.space, row).name == row["base"]
        watts = explanations.watts.loc[explanations.watts["letter"] == row["letter"], "watts"].sum()
        assert watts == pytest.approx(row["decode.power_w"], rel=1e-3)


def test_the_gpu_file_of_a_design_has_its_own_base(result: dse.SweepResult):
    files = design_files(result.space, result.front)
    for place, row in enumerate(result.front.to_dict("records")):
        content = tomllib.loads(files.text(place, place))
        assert content["base"] == row["base"] and content["l2_mib"] == row["l2_mib"]
        assert gpu_from_mapping(content, "here", "design").base == row["base"]

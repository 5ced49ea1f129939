"""Attributes, moves and changes as they are said in a sentence."""

import pytest

from dse.explanation.attribute_words import ATTRIBUTE_WORDS, after_number, percent, step_words, words
from dse.explanation.sensitivity_steps import Step, quantities
from dse.hardware.presets import preset_sheet
from dse.hardware.schema import gpu_schema


def move(name: str, before: float, after: float) -> Step:
    return Step(gpu_schema()[name], before, after)


@pytest.mark.parametrize(
    ("step", "words_of_step"),
    [
        (move("dram_bandwidth_gbs", 3000.0, 3300.0), "10 % more DRAM bandwidth"),
        (move("dram_bandwidth_gbs", 3000.0, 2700.0), "10 % less DRAM bandwidth"),
        (move("dram_latency_ns", 500.0, 550.0), "10 % longer DRAM latency"),
        (move("boost_clock_mhz", 2000.0, 1800.0), "10 % lower boost clock"),
        (move("tdp_w", 700.0, 770.0), "10 % higher power limit"),
    ],
)
def test_a_step_is_stated_as_an_engineer_says_it(step: Step, words_of_step: str) -> None:
    assert step_words(step) == words_of_step


def test_whole_numbers_are_reported_where_the_step_is_another() -> None:
    assert step_words(move("sm_count", 132.0, 145.0)) == "9.85 % more SMs (132 to 145)"
    assert step_words(move("subcores_per_sm", 4.0, 5.0)).startswith("25 % more sub-cores an SM (4 to 5")


def test_every_quantity_of_a_gpu_has_words_and_no_words_are_of_nothing() -> None:
    varied, _ = quantities(preset_sheet("h100_sxm").numbers())
    assert [name for name in varied if name not in ATTRIBUTE_WORDS] == []
    assert set(ATTRIBUTE_WORDS) <= set(gpu_schema())
    assert len(set(ATTRIBUTE_WORDS.values())) == len(ATTRIBUTE_WORDS)
    assert words(gpu_schema()["warpgroup_mma"]) == "warpgroup_mma"


@pytest.mark.parametrize(("unit", "text"), [("MHz", " MHz"), ("1", ""), ("", "")])
def test_a_pure_number_has_no_unit(unit: str, text: str) -> None:
    assert after_number(unit) == text


@pytest.mark.parametrize(("change", "text"), [(-0.0612, "−6.1 %"), (0.1, "+10.0 %"), (0.0, "0.0 %")])
def test_a_change_has_a_sign(change: float, text: str) -> None:
    assert percent(change) == text

"""What a run shows first: the causes of each phase's larger half, and what the power limit takes."""

import pytest

import dse
from dse.evaluate.limit_ends import CLOCK
from dse.hardware.presets import gpu_from_mapping
from dse.reports.run.data import four_digits, held_sentences

PREFILL = "gpt2_xl:phase=prefill,batch=8,prompt=512,dtype=fp16"


def test_a_phase_is_told_with_its_time_and_causes() -> None:
    run = dse.run("h100_sxm", PREFILL, "roofline")
    stack = run.stack("prefill")
    said = held_sentences(run)[0]
    largest = max(stack.values()) / sum(stack.values())
    assert said.startswith(f"Prefill takes {four_digits(run.metrics['time_ms'].value)} ms: {100 * largest:.0f} % for ")


def test_the_power_limit_is_told_where_it_takes_clock() -> None:
    held = dse.run(gpu_from_mapping({"base": "h100_sxm", "tdp_w": 250}, "mine.toml", "mine"), PREFILL, "roofline")
    lost = 100 * (1 - held.metrics[CLOCK].value)
    assert lost > 5
    assert held_sentences(held)[-1] == f"The power limit takes {lost:.0f} % of the clock."


@pytest.mark.parametrize(("value", "text"), [(9.48912, "9.489"), (43524.6, "43,525"), (0.188612, "0.1886"), (1, "1")])
def test_four_digits_and_the_whole_number_where_it_has_more(value: float, text: str) -> None:
    assert four_digits(value) == text

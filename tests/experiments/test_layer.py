"""A layer of GPT-3 as LLMCompass measured it, from the project's own copy."""

import pytest

from experiments import data
from experiments.common.modules import experiment


def test_the_prefill_of_a_layer_adds_up() -> None:
    rows, overhead, ours, measured = experiment("012_timing_calibration", "others.py").layer(
        data.path("llmcompass__layer_a100")
    )
    assert len(rows) > 10 and overhead > 0
    assert ours == pytest.approx(measured, rel=0.08)  # what the scoreboard asks

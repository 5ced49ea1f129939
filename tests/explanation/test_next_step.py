"""The step that helps most is that of the largest saving for its size, found again by hand."""

import numpy as np
import pandas as pd
import pytest

from dse.explanation.next_step import gains, next_sentence, next_steps, sides


def table(*rows: tuple[str, float, float, str, float]) -> pd.DataFrame:
    """Steps of a study: attribute, before, after, metric, change."""
    frame = pd.DataFrame(rows, columns=["attribute", "before", "after", "metric", "change"])
    return frame.assign(text="more " + frame["attribute"])


STEPS = table(
    ("subcores_per_sm", 4, 8, "tbt_ms", -0.10),
    ("subcores_per_sm", 4, 8, "energy_j", 0.12),
    ("dram_bandwidth_gbs", 3000, 3300, "tbt_ms", -0.07),
    ("dram_bandwidth_gbs", 3000, 3300, "energy_j", -0.03),
    ("l2_latency_ns", 200, 220, "tbt_ms", 0.004),
    ("l2_latency_ns", 200, 220, "energy_j", 0.0),
    ("tdp_w", 700, 770, "tbt_ms", 0.0),
    ("tdp_w", 700, 770, "energy_j", 0.01),
    ("l1_banks", 32, 64, "tbt_ms", 0.0),
    ("l1_banks", 32, 64, "energy_j", 0.0),
)


def test_a_doubling_that_saves_little_more_comes_after_a_tenth() -> None:
    found = gains(STEPS)
    assert list(found["attribute"]) == ["dram_bandwidth_gbs", "subcores_per_sm"]
    by_hand = [-np.log(0.93) / np.log(1.1), -np.log(0.9) / np.log(2)]
    np.testing.assert_allclose(found["gain"], by_hand)
    (best,) = next_steps(STEPS)
    assert best["metric"] == "tbt_ms" and best["attribute"] == "dram_bandwidth_gbs"
    assert best["changes"] == {"tbt_ms": -0.07, "energy_j": -0.03}


def test_the_sentence_names_the_step_with_all_that_it_changes() -> None:
    said = "What helps most, moved alone: more dram_bandwidth_gbs (−7.0 % TBT, −3.0 % energy)."
    assert next_sentence(STEPS) == said


def test_every_step_that_changes_something_stands_in_one_of_the_lists() -> None:
    faster, others = sides(STEPS)
    assert [text.split(":")[0] for text in faster] == ["more dram_bandwidth_gbs", "more subcores_per_sm"]
    assert others == ["more l2_latency_ns: +0.4 % TBT", "more tdp_w: +1.0 % energy"]


def test_a_step_that_costs_another_time_more_is_no_help() -> None:
    steps = table(("tensor_clock_mhz", 1000, 1100, "ttft_ms", -0.02), ("tensor_clock_mhz", 1000, 1100, "tbt_ms", 0.05))
    faster, others = sides(steps)
    assert faster == [] and others == ["more tensor_clock_mhz: −2.0 % TTFT, +5.0 % TBT"]


def test_each_time_has_its_own_best_step() -> None:
    steps = table(
        ("tensor_fma_bf16", 512, 563.2, "ttft_ms", -0.05),
        ("tensor_fma_bf16", 512, 563.2, "tbt_ms", 0.0),
        ("dram_bandwidth_gbs", 3000, 3300, "ttft_ms", -0.01),
        ("dram_bandwidth_gbs", 3000, 3300, "tbt_ms", -0.07),
    )
    assert [(s["metric"], s["attribute"]) for s in next_steps(steps)] == [
        ("ttft_ms", "tensor_fma_bf16"),
        ("tbt_ms", "dram_bandwidth_gbs"),
    ]


@pytest.mark.parametrize("change", [0.0, 0.02, -0.0004])
def test_where_nothing_helps_it_says_so(change: float) -> None:
    steps = table(("tdp_w", 700, 770, "tbt_ms", change))
    assert next_steps(steps) == [] and next_sentence(steps) == "No attribute moved alone makes it faster."

"""Why a step departs from its elasticity: the launch that decides, of the phase that the metric is about."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dse.explanation.nonlinearities import LIMIT_BINDS, why
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.workload import Phase, Workload

PROMPT, TOKEN, OTHER = (
    gemm_operator(name, Gemm(64, 256, 256)).times(1, phase=phase)
    for name, phase in (("prompt", "prefill"), ("token", "decode"), ("other", "decode"))
)
SERVED = Workload("served", "", (PROMPT, TOKEN, OTHER), (Phase("prefill"), Phase("decode", 100.0)))
"""A prompt is read once, then 100 tokens are generated."""


def evaluated(microseconds: list[float], joules: list[float], clock: tuple[float, float] = (1.0, 1.0)) -> Any:
    """The workload before a step, a microsecond and a joule a launch, and after it."""
    return SimpleNamespace(
        workload=SERVED,
        chosen=np.stack([SERVED.starts] * 2),
        clock=np.array(clock),
        microseconds=np.array([[1.0] * 3, microseconds]),
        joules=np.array([[1.0] * 3, joules]),
        waves=lambda design, operator: SimpleNamespace(full=1.0, resident=1.0, rest=0.0),
        bound_by=lambda design, operator: "selected",
    )


@pytest.mark.parametrize(
    ("metric", "culprit"),
    [("ttft_ms", "prompt"), ("tbt_ms", "token"), ("time_ms", "token"), ("energy_j", "other")],
)
def test_the_launch_that_is_farthest_from_its_promise_in_the_metrics_phase_is_named(metric, culprit):
    """A token's launch counts a hundred times in the whole, and nothing in the time to the first token."""
    after = evaluated([1.5, 0.9, 1.01], [1.0, 1.0, 1.2])
    assert why(after, 1, metric, np.ones(3)) == f"the result bends within the step, most in {culprit}"


def test_a_prompts_launch_that_is_much_farther_off_is_the_whole_times_culprit():
    after = evaluated([20.0, 0.9, 1.0], [1.0] * 3)  # 19 us once against a tenth a hundred times
    assert "most in prompt" in why(after, 1, "time_ms", np.ones(3))
    assert "most in token" in why(after, 1, "time_ms", np.array([20.0, 1.0, 1.0]))  # as promised


def test_a_power_limit_that_sets_in_is_reported_and_one_that_binds_on_both_sides_is_not():
    clocks = [(1.0, LIMIT_BINDS - 0.01), (0.8, 0.7), (0.8, 1.0)]
    sets_in, binds, ends = (why(evaluated([1.0] * 3, [1.0] * 3, c), 1, "time_ms", np.ones(3)) for c in clocks)
    assert "the power limit sets in" in sets_in and "power limit" not in binds and "lets go" in ends

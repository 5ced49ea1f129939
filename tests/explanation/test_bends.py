"""What a result bends by within a step: the launch that decides, of the phase that the metric is about."""

import jax.numpy as jnp
import numpy as np
import pytest

from dse.explanation.bends import HELD, why
from dse.explanation.neighbourhood import Judged
from dse.timing.timing import CAUSES
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.workload import Phase, Workload

PROMPT, TOKEN, OTHER = (
    gemm_operator(name, Gemm(64, 256, 256)).times(1, phase=phase)
    for name, phase in (("prompt", "prefill"), ("token", "decode"), ("other", "decode"))
)
SERVED = Workload("served", "", (PROMPT, TOKEN, OTHER), (Phase("prefill"), Phase("decode", 100.0)))
"""A prompt is read once, then 100 tokens are generated."""


def judged(microseconds: list[float], joules: list[float], clock: float = 1.0) -> Judged:
    """The workload before a step, a microsecond and a joule a launch, and after it."""
    first = np.array([part.start for part in SERVED.slices])
    both = {"microseconds": microseconds, "joules": joules}
    filled = {name: jnp.asarray([[1.0] * 3, values]) for name, values in both.items()}
    same = {name: np.ones((2, 3)) for name in ("dram_bytes", "ctas", "waves", "runs")}
    stack = {cause: jnp.zeros((2, 3)) for cause in CAUSES}
    return Judged(
        metrics={},
        clock=np.array([1.0, clock]),
        chosen=np.stack([first, first]),
        stack=stack,
        waits={},
        watts={},
        **filled,
        **same,
    )


@pytest.mark.parametrize(
    ("metric", "culprit"),
    [("ttft_ms", "prompt"), ("tbt_ms", "token"), ("time_ms", "token"), ("energy_j", "other")],
)
def test_the_launch_that_is_farthest_from_its_promise_in_the_metrics_phase_is_named(metric, culprit):
    """A token's launch counts a hundred times in the whole, and nothing in the time to the first token."""
    after = judged([1.5, 0.9, 1.01], [1.0, 1.0, 1.2])
    assert why(SERVED, after, 1, metric, np.ones(3)) == f"the result bends within the step, most in {culprit}"


def test_a_prompts_launch_that_is_much_farther_off_is_the_whole_times_culprit():
    after = judged([20.0, 0.9, 1.0], [1.0] * 3)  # 19 us once against a tenth a hundred times
    assert "most in prompt" in why(SERVED, after, 1, "time_ms", np.ones(3))
    assert "most in token" in why(SERVED, after, 1, "time_ms", np.array([20.0, 1.0, 1.0]))  # as promised


def test_a_power_limit_that_sets_in_is_told_and_one_that_binds_on_both_sides_is_not():
    assert "the power limit sets in" in why(SERVED, judged([1.0] * 3, [1.0] * 3, HELD - 0.01), 1, "time_ms", np.ones(3))
    held = judged([1.0] * 3, [1.0] * 3)._replace(clock=np.array([0.8, 0.7]))
    assert "power limit" not in why(SERVED, held, 1, "time_ms", np.ones(3))
    assert "lets go" in why(SERVED, held._replace(clock=np.array([0.8, 1.0])), 1, "time_ms", np.ones(3))

"""What the error of the watts makes of the power limit: both ends of a run's time and clock, and its intervals."""

from dataclasses import replace

import pytest

from dse.evaluate.run import RunResult, run
from dse.power.board import BoardPower, left_out_errors
from dse.power.models import PowerChoice
from dse.workload.parse import load_workload

PREFILL = load_workload("gpt2_xl:phase=prefill,batch=1,prompt=1024,dtype=fp16")


@pytest.fixture(scope="module")
def a40() -> RunResult:
    """A board that its arithmetic brings near its limit."""
    return run("a40", PREFILL)


def test_a_board_near_its_limit_may_throttle_and_its_times_hold_both(a40: RunResult) -> None:
    ends, value = a40.limit_ends, a40.metrics["time_ms"][0]
    assert ends is not None and a40.throttles == "open"
    faster, slower = ends.factors("time_ms")
    assert faster <= 1.0 and slower > 1.05
    low, high = a40.metric_error("time_ms").interval(value) or (0.0, 0.0)
    assert low <= value * faster and high >= value * slower
    alone = replace(a40, limit_ends=None).metric_error("time_ms").interval(value)
    assert alone is not None and high > alone[1]
    assert a40.metric_error("ttft_ms") == a40.metric_error("time_ms")  # of the one phase


def test_the_clock_has_an_interval_by_the_watts(a40: RunResult) -> None:
    low, high = a40.metric_error("clock_share").interval(a40.metrics["clock_share"][0]) or (1.0, 0.0)
    assert low < 0.95 and high == pytest.approx(1.0, abs=1e-3)


def test_the_ends_are_the_clocks_at_which_boards_settle_that_draw_so_much(a40: RunResult) -> None:
    assert a40.limit_ends is not None
    board, off = BoardPower.from_table(), left_out_errors()
    times = [
        run("a40", PREFILL, power=PowerChoice(board.drawing(off[end]))).metrics["time_ms"][0] for end in ("low", "high")
    ]
    expected = [end["time_ms"][0] for end in (a40.limit_ends.low, a40.limit_ends.high)]
    assert times == pytest.approx(expected, rel=1e-5)


def test_without_a_limit_nothing_is_open() -> None:
    free = run("a40", PREFILL, power=PowerChoice(BoardPower.from_table(), limit=False))
    assert free.limit_ends is None and free.throttles is None

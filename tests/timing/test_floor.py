"""The roofline under an interval's cycles, by hand: what stays visible, and where the waiting is booked."""

import jax.numpy as jnp
import pytest

from dse.timing.floor import floored
from dse.timing.interval import IntervalCycles

CYCLES = IntervalCycles(*map(jnp.asarray, (10.0, 1.0, 2.0, 30.0, 4.0, 5.0, 6.0)))  # 58 in all


def found(dram: float, l2: float, beside: float = 0.0) -> tuple[list[float], float, float]:
    """Cycles by cause, and those waiting for DRAM and for the L2."""
    result = floored(CYCLES, jnp.asarray(dram), jnp.asarray(l2), jnp.asarray(beside))
    assert float(result.beside) == beside
    return [float(x) for x in result.visible], float(result.dram), float(result.l2)


def test_bytes_that_bind_leave_the_issue_cycles_alone():
    assert found(100.0, 20.0) == ([10, 0, 0, 0, 0, 0, 0], 90, 0)
    assert found(20.0, 100.0) == ([10, 0, 0, 0, 0, 0, 0], 0, 90)


def test_bytes_that_do_not_bind_hide_nothing():
    assert found(50.0, 20.0) == ([float(x) for x in CYCLES], 0, 0)


@pytest.mark.parametrize("dram", [50.0, 100.0])
def test_imperfect_overlap_is_waiting_for_the_longer_bytes(dram):
    visible, waiting, _ = found(dram, 20.0, beside=7.0)
    assert sum(visible) + waiting == max(dram, 58) + 7

"""The roofline under an interval's cycles, by hand: what stays visible, and where the waiting is booked."""

import jax.numpy as jnp
import pytest

from dse.timing.floor import floored
from dse.timing.interval import Causes, IntervalCycles

CAUSES = Causes(*map(jnp.asarray, (1.0, 2.0, 30.0, 4.0, 5.0, 6.0)))
CYCLES = IntervalCycles.of(jnp.asarray(10.0), CAUSES)  # 58 in all


def found(dram: float, l2: float, loss: float = 0.0, link: float = 0.0) -> tuple[list[float], float, float, float]:
    """Stalls by cause, and the waiting for DRAM, for the L2 and for the link between dies."""
    result = floored(CYCLES, *map(jnp.asarray, (dram, l2, link, loss)))
    assert float(result.exposed) == (loss if result.dram > 0 else 0)
    stack = [float(x) for x in result.causes], float(result.dram), float(result.l2), float(result.link)
    assert float(result.executed) == 10 + sum(stack[0]) + sum(stack[1:])
    return stack


def test_bytes_that_bind_leave_the_issue_cycles_alone():
    assert found(100.0, 20.0) == ([0] * 6, 90, 0, 0)
    assert found(20.0, 100.0) == ([0] * 6, 0, 90, 0)
    assert found(20.0, 50.0, link=100.0) == ([0] * 6, 0, 0, 90)
    assert found(100.0, 20.0, link=70.0) == ([0] * 6, 90, 0, 0)


def test_bytes_that_do_not_bind_hide_nothing():
    assert found(50.0, 20.0, link=57.0) == ([float(x) for x in CAUSES], 0, 0, 0)


@pytest.mark.parametrize("dram", [50.0, 100.0])
def test_imperfect_overlap_is_waiting_for_the_longer_bytes(dram):
    causes, waiting, *_ = found(dram, 20.0, loss=7.0)
    assert 10 + sum(causes) + waiting == max(dram, 58) + 7

"""Queueing of memory requests by hand: docs/model/timing_amali.md 6."""

import jax.numpy as jnp
import pytest

from dse.timing.contention import queueing
from dse.timing.memory import MemoryPath

MEMORY = MemoryPath(*map(jnp.asarray, (500.0, 40.0, 200.0, 300.0, 0.5, 1e6, 0.001, 0.002, 1e6)))
UNLIMITED = jnp.asarray(1e9)


def queue(load, store, sms=100.0, mshr=UNLIMITED, memory=MEMORY):
    """Cycles as a float."""
    return float(queueing(jnp.asarray(load), jnp.asarray(store), jnp.asarray(sms), jnp.asarray(mshr), memory))


def test_requests_wait_for_half_of_those_of_all_sms():
    network = 0.5 * 100 * (1000 + 400) * 0.001
    dram = 0.5 * 100 * 1000 * 0.5 * 0.002  # half of the loads miss the L2; stores are written back later
    assert queue(1000.0, 400.0) == pytest.approx(network + dram)


def test_an_idle_memory_has_no_queue():
    assert queue(0.0, 0.0) == 0.0


def test_full_mshrs_let_later_batches_wait_for_earlier_ones():
    free, full = queue(4096.0, 0.0), queue(4096.0, 0.0, mshr=1024.0)
    assert full - free == pytest.approx(3 * (200 + 0.5 * 300), rel=1e-5)
    assert queue(1024.0, 0.0, mshr=1024.0) == queue(1024.0, 0.0)


def test_fewer_misses_on_more_sms_queue_no_longer():
    # 1.5 batches' worth on 100 SMs against 1.2 on 125: the same bytes in as many batches.
    assert queue(1.2e3, 0.0, sms=125.0, mshr=1e3) <= queue(1.5e3, 0.0, sms=100.0, mshr=1e3) * (1 + 1e-6)


@pytest.mark.parametrize("change", [{"l2_byte": 0.0005}, {"dram_byte": 0.001}, {"dram_share": 0.25}])
def test_faster_memory_and_fewer_misses_shorten_the_queue(change):
    better = MEMORY._replace(**{name: jnp.asarray(value) for name, value in change.items()})
    assert queue(1000.0, 100.0, memory=better) < queue(1000.0, 100.0)

"""Memory terms by hand: the far half of a split L2, and latencies along the path."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_gpu
from dse.timing.memory import memory_terms

A100 = load_gpu("a100_sxm_80gb")
GHZ, ONE_PART = jnp.asarray(1.0), replace(A100, l2_partitions=jnp.asarray(1.0))


def l2_ns(gpu: Gpu, footprint: float) -> float:
    """Latency of the L2 beyond the L1's [ns], at 1 GHz."""
    return float(memory_terms(gpu, GHZ, jnp.asarray(footprint), jnp.asarray(0.0), jnp.asarray(0.0), False).l2)


def test_half_of_what_the_near_half_of_the_l2_cannot_hold_comes_from_the_far_one():
    near, far = float(A100.l2_latency_ns), float(A100.l2_far_latency_ns)
    half = float(A100.l2_bytes) / 2
    assert far > 0
    assert l2_ns(A100, half) == pytest.approx(near)  # each half keeps a copy
    assert l2_ns(A100, 2 * half) == pytest.approx(near + far / 4)  # half of it has no room near: a half of that is far
    assert l2_ns(A100, 1e6 * half) == pytest.approx(near + far / 2, rel=1e-5)
    assert l2_ns(ONE_PART, 1e6 * half) == pytest.approx(near)


def test_a_load_takes_the_latencies_on_its_way_and_those_of_dram_where_it_misses():
    l1, l2, dram = float(A100.l1_latency_cycles), float(A100.l2_latency_ns), float(A100.dram_latency_ns)
    for clock in (1.0, 2.0):  # latencies beyond the SM are times: twice the cycles at twice the clock
        terms = memory_terms(A100, jnp.asarray(clock), jnp.asarray(1.0), jnp.asarray(0.25), jnp.asarray(0.0), False)
        assert float(terms.amat) == pytest.approx(l1 + clock * (l2 + 0.25 * dram))

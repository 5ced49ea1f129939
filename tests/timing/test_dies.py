"""A package of several dies: what crosses by hand, what it costs, and what must hold of any link."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_gpu
from dse.timing.amali import Amali
from dse.timing.dies import crossing
from dse.timing.mdm import Mdm
from dse.timing.memory import memory_terms
from dse.timing.roofline import Roofline
from dse.timing.timing import TimingModel
from dse.workload.kernel import Kernel
from dse.workload.operators.gemm import Gemm, gemm_operator

H100 = load_gpu("h100_sxm")
GHZ, NOTHING = jnp.asarray(1.0), jnp.asarray(0.0)
ALONE: list[TimingModel] = [Amali(), Roofline()]
"""Models that bound a kernel by its bytes."""


def package(dies: float = 2, gbs: float = 500.0, latency: float = 100.0, **changes: float) -> Gpu:
    """An H100 of so many dies, whose links take so long."""
    values = {"dies": dies, "die_link_gbs": gbs, "die_link_latency_ns": latency} | changes
    return H100.with_attributes({name: jnp.asarray(float(value)) for name, value in values.items()})


def product(m: int, n: int, k: int, cold: bool = True) -> Kernel:
    """The first kernel of a product; its operands come from DRAM, or were just used."""
    distance = 1e12 if cold else 0.0
    operands = Gemm(m, n, k, a_distance=distance, b_distance=distance, out_distance=distance)
    kernel = gemm_operator("g", operands, (9.0, 9.0)).candidates[0].kernel
    assert isinstance(kernel, Kernel)
    return kernel


@pytest.mark.parametrize("dies", [2, 4])
def test_dram_is_another_dies_for_all_but_one_and_a_hit_where_no_copy_fits(dies):
    gpu = package(dies, gbs=500.0)
    share = float(gpu.l2_bytes) / dies
    small, twice = (crossing(gpu, jnp.asarray(x), jnp.asarray(2.0)) for x in (share, 2 * share))
    others = 1 - 1 / dies
    assert (float(small.hits), float(small.misses)) == (0, pytest.approx(others))  # a die keeps copies of all of it
    assert float(twice.hits) == pytest.approx(others / 2)  # half has no room on a die
    # 1e6 B pass the L2, of which 2e5 come from DRAM; each of the links takes its share at 500 B/ns, 2 cycles a ns.
    bytes_ = others * 2e5 + others / 2 * 8e5
    missed = twice._replace(missed=jnp.asarray(2e5))
    assert float(missed.cycles(jnp.asarray(1e6))) == pytest.approx(bytes_ / (dies * 500.0) * 2)
    shared = missed._replace(fetched=jnp.asarray(3e5))  # CTAs of a wave share the rest on their die
    assert float(shared.cycles(jnp.asarray(1e6))) == pytest.approx(others * (2e5 + 5e4) / (dies * 500.0) * 2)


def test_one_die_has_no_traffic_whatever_its_link():
    one = crossing(package(1, gbs=0.0), jnp.asarray(1e9), GHZ)
    assert float(one._replace(missed=jnp.asarray(1e9)).cycles(jnp.asarray(2e9))) == 0


@pytest.mark.parametrize("model", [Amali(), Mdm(), Roofline()])
def test_a_gpu_of_one_die_takes_as_long_whatever_its_link(model):
    kernel, odd = product(4096, 4096, 4096), package(1, gbs=7.0, latency=5000.0)
    assert float(model(kernel, odd).nanoseconds) == float(model(kernel, H100).nanoseconds)


def test_a_load_crosses_once_on_its_way():
    gpu = package(2, latency=100.0, l2_partitions=2, l2_far_latency_ns=0.0)
    l2, dram = float(gpu.l2_latency_ns), float(gpu.dram_latency_ns)
    for footprint, crossed in ((1.0, 0.0), (1e15, 0.5)):
        terms = memory_terms(gpu, GHZ, jnp.asarray(footprint), jnp.asarray(1.0), NOTHING, False)
        assert float(terms.l2) == pytest.approx(l2 + 100 * crossed)
        assert float(terms.l2 + terms.dram) == pytest.approx(l2 + dram + 50)  # a half of the misses


def test_another_die_is_no_nearer_than_a_far_partition():
    gpu = package(2, latency=30.0, l2_partitions=2, l2_far_latency_ns=80.0)
    terms = memory_terms(gpu, GHZ, jnp.asarray(1e15), NOTHING, NOTHING, False)
    assert float(terms.l2) == pytest.approx(float(gpu.l2_latency_ns) + 0.5 * 80)


def test_far_partitions_of_a_die_keep_their_own_latency():
    gpu = package(2, latency=100.0, l2_partitions=4, l2_far_latency_ns=10.0)
    terms = memory_terms(gpu, GHZ, jnp.asarray(1e15), NOTHING, NOTHING, False)
    assert float(terms.l2) == pytest.approx(float(gpu.l2_latency_ns) + 0.5 * 100 + 0.25 * 10)  # 3 of 4, 2 over the link


@pytest.mark.parametrize("model", ALONE)
def test_a_slow_link_binds_and_is_named(model):
    kernel = product(4096, 4096, 512)
    fast, slow = (model(kernel, package(2, gbs=gbs)) for gbs in (1e6, 20.0))
    assert float(fast.die_link) == 0
    assert max(slow.stack(), key=lambda cause: float(slow.stack()[cause])) == "die_link"
    assert float(slow.l2_bandwidth) == float(slow.dram_bandwidth) == 0
    assert float(slow.nanoseconds) > 2 * float(fast.nanoseconds)


@pytest.mark.parametrize("model", ALONE)
def test_where_the_link_binds_twice_the_bandwidth_takes_half_the_bytes_time(model):
    kernel = product(4096, 4096, 512)
    once, twice = (model(kernel, package(2, gbs=gbs)) for gbs in (2.0, 4.0))
    fixed = float(once.launch)
    assert float(once.cycles) - fixed == pytest.approx(2 * (float(twice.cycles) - fixed), rel=0.01)


@pytest.mark.parametrize("model", [Amali(), Mdm(), Roofline()])
@pytest.mark.parametrize(("m", "cold"), [(4096, True), (4096, False), (1, True)])
def test_more_bandwidth_and_less_latency_never_cost_time(model, m, cold):
    kernel = product(m, 4096, 4096, cold)
    times = [float(model(kernel, package(2, gbs=gbs)).nanoseconds) for gbs in (50, 200, 1000, 5000, 1e5)]
    assert times == sorted(times, reverse=True)
    times = [float(model(kernel, package(2, gbs=5000, latency=ns)).nanoseconds) for ns in (0, 50, 200, 1000)]
    assert times == sorted(times)


def test_a_split_costs_time_and_a_fast_link_little():
    kernel = product(4096, 4096, 4096)
    whole = float(Amali()(kernel, replace(H100, l2_partitions=jnp.asarray(2.0))).nanoseconds)
    fast, slow = (float(Amali()(kernel, package(2, *link)).nanoseconds) for link in ((1e6, 0.0), (300.0, 300.0)))
    assert whole <= 1.02 * fast and fast < slow

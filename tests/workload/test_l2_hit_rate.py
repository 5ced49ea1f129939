"""Where bytes come from: reuse distance against the last-level cache, and what later waves read again."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from dse.workload.l2_hit_rate import (
    CLIFF,
    KEPT,
    RETAINED,
    between_launches,
    dram_bytes,
    fetched_apart,
    miss_fraction,
    operand_miss,
    own_rereads,
    wave_rereads,
)
from dse.workload.operator import FOREVER
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator

MB = 1e6


def gemm_kernel(gemm):
    """The first candidate's kernel."""
    return gemm_operator("gemm", gemm, (8.0, 8.0), False).candidates[0].kernel.as_arrays()


@pytest.mark.parametrize(("ctas", "along_m", "along_n"), [(1, 1, 1), (8, 2, 4), (32, 4, 8), (10**6, 16, 32)])
def test_ctas_that_share_a_cache_fetch_the_operands_of_their_tiles_once(ctas, along_m, along_n):
    kernel = gemm_kernel(Gemm(4096, 4096, 1024))
    tiles = replace(kernel, m_tiles=jnp.asarray(16.0), n_tiles=jnp.asarray(32.0), tile_aspect=jnp.asarray(0.5))
    operands = 8 * 1024**2 * (32 / along_n + 16 / along_m)  # 8 MiB each: A once for all columns of tiles at once
    whole = replace(tiles, l2_bytes=jnp.asarray(1e12))
    assert float(fetched_apart(whole, jnp.asarray(float(ctas)))) == pytest.approx(operands + 32 * 1024**2)
    few = replace(tiles, l2_bytes=jnp.asarray(1e7))
    assert float(fetched_apart(few, jnp.asarray(float(ctas)))) == 1e7  # never more than passes at all


def test_kernels_without_tiles_share_nothing():
    kernel = vector_operator("add", "add", 64, 4096).candidates[0].kernel.as_arrays()
    assert float(fetched_apart(kernel, jnp.asarray(132.0))) == float(kernel.l2_bytes) > 0


def test_bytes_hit_while_the_cache_retains_them_and_miss_beyond():
    l2 = jnp.asarray(50 * MB)
    assert float(miss_fraction(jnp.asarray(RETAINED * 50 * MB), l2)) == pytest.approx(0.0, abs=1e-6)
    assert float(miss_fraction(jnp.asarray(2 * RETAINED * 50 * MB), l2)) == pytest.approx(0.5)
    assert float(miss_fraction(jnp.asarray(FOREVER), l2)) == pytest.approx(1.0)
    assert float(miss_fraction(jnp.asarray(0.0), l2)) >= 0.0


def test_operands_survive_up_to_a_cliff_where_what_was_touched_fills_the_cache():
    l2 = jnp.asarray(50 * MB)
    shares = (1e-9, 0.5, 1.0, 2.0, 1e8)
    missed = [float(operand_miss(jnp.asarray(share * KEPT * 50 * MB), l2, 1.0)) for share in shares]
    assert missed == pytest.approx([0.0, 1 / (1 + 2**CLIFF), 0.5, 1 / (1 + 2**-CLIFF), 1.0], abs=1e-6)


def test_partitions_that_hold_copies_divide_what_the_cache_holds():
    distance, l2 = jnp.asarray([1e6, 1e7, 2e7, 4e7, 1e9]), jnp.asarray(50 * MB)
    halves = [operand_miss(distance, size, count) for size, count in ((l2, 2.0), (l2 / 2, 1.0))]
    assert halves[0].tolist() == halves[1].tolist()
    assert (operand_miss(distance, l2, 1.0) <= halves[0]).all()


def test_the_law_stands_where_no_share_was_fitted():
    distance, l2 = jnp.asarray([1e6, 1e7, 2e7, 4e7, 1e9]), jnp.asarray(50 * MB)
    law = between_launches(distance, l2, jnp.asarray(0.0), 0.0, 2.0)
    assert law.tolist() == operand_miss(distance, l2, 2.0).tolist()
    fitted = between_launches(distance, l2, jnp.asarray(0.5), 0.0, 2.0)
    assert fitted.tolist() == pytest.approx(jnp.minimum(1.0, distance / 25e6).__pow__(2).tolist())
    within = between_launches(distance, l2, None)
    assert within.tolist() == miss_fraction(distance, l2).tolist()


def test_cold_operands_are_read_once_when_one_wave_covers_the_grid():
    gemm = Gemm(4096, 4096, 4096)
    kernel = gemm_kernel(gemm)
    reads, writes = dram_bytes(kernel, kernel.ctas, jnp.asarray(1 * MB))
    assert float(reads) == pytest.approx(gemm.a_bytes + gemm.b_bytes, rel=1e-5)
    assert float(writes) == pytest.approx(gemm.out_bytes, rel=1e-5)


def test_small_waves_read_operands_again_only_where_the_cache_is_small():
    kernel = gemm_kernel(Gemm(8192, 8192, 8192))
    small, large = (float(wave_rereads(kernel, jnp.asarray(108.0), jnp.asarray(size * MB))) for size in (5, 5000))
    assert small > 8192 * 8192 * 2
    assert large == 0.0


def test_more_resident_tiles_never_read_more():
    kernel = gemm_kernel(Gemm(8192, 2048, 4096))
    rereads = [float(wave_rereads(kernel, jnp.asarray(float(n)), jnp.asarray(10 * MB))) for n in range(1, 600, 7)]
    assert rereads == sorted(rereads, reverse=True)
    assert rereads[-1] == 0.0


def test_an_attention_head_stays_in_the_cache_between_waves():
    attention = Attention(16, 32, 8, 128, 8192, 8192)
    kernel = attention_operator("a", attention, (8.0, 8.0), False).candidates[0].kernel.as_arrays()
    # One head's keys and values are 4 MB; all are 537 MB. 40 MB of cache keep the head, not the lot.
    assert float(wave_rereads(kernel, jnp.asarray(108.0), jnp.asarray(40 * MB))) == 0.0
    assert float(wave_rereads(kernel, jnp.asarray(108.0), jnp.asarray(1 * MB))) > 0.0


def test_a_batch_of_products_reads_what_each_reads():
    h100 = (9.0, 9.0)
    one, two = (gemm_operator("g", Gemm(8192, 8192, 8192, batch), h100, True).candidates[0].kernel for batch in (1, 2))
    read = [float(dram_bytes(kernel, jnp.asarray(132.0), jnp.asarray(50 * 2.0**20))[0]) for kernel in (one, two)]
    assert read[1] == pytest.approx(2 * read[0])


def test_further_passes_read_from_dram_what_the_cache_cannot_hold():
    kernel = vector_operator("s", "softmax", 4096, 32768, "fp32", "pytorch_vector").candidates[0].kernel.as_arrays()

    def read(held, cache, kept=0.5):
        return float(own_rereads(kernel, jnp.asarray(held * MB), jnp.asarray(cache * MB), kept) / kernel.again_bytes)

    assert read(5, 40) == pytest.approx(0.25)
    assert read(50, 40) == 1.0
    assert read(5, 80) == pytest.approx(0.125)
    assert read(0, 40) == 0.0
    whole = 4096 * 32768 * 8 / MB  # no more than is touched at all ages
    assert read(1e9, 2e4) == pytest.approx(whole / 1e4, rel=1e-5)

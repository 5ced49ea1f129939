"""Attention: masks, shared key-value heads, splits over the keys, and counts by hand."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.operators.visited_keys import Lengths

A100, H100 = (8.0, 8.0), (9.0, 9.0)


def kernels(attention, capabilities=A100, warpgroup=False):
    """Candidates' kernels by label."""
    return {c.label: c.kernel for c in attention_operator("attention", attention, capabilities, warpgroup).candidates}


def test_bytes_and_multiply_adds_by_hand():
    attention = Attention(2, 32, 8, 128, 1024, 1024)
    assert attention.q_bytes == 2 * 32 * 1024 * 128 * 2
    assert attention.kv_bytes == 2 * 2 * 8 * 1024 * 128 * 2
    pairs = 1024 * 1025 / 2  # a causal mask keeps the diagonal and what is below
    assert attention.fma == 2 * 2 * 32 * pairs * 128


def test_a_causal_mask_halves_long_prefills_and_leaves_decode_alone():
    causal, full = (
        kernels(Attention(1, 8, 8, 128, 8192, 8192, causal=c))["fa2 hmma_16816 64x64"].loop.repeats
        for c in (True, False)
    )
    assert full == 128
    assert causal == (1 + 128) / 2  # CTA i visits i + 1 blocks
    step = [kernels(Attention(1, 8, 8, 128, 1, 4096, causal=c))["fa2 hmma_16816 64x128"] for c in (True, False)]
    assert step[0].loop.repeats == step[1].loop.repeats


def test_a_prefix_is_attended_by_every_query():
    kernel = kernels(Attention(1, 8, 8, 128, 64, 64 + 1024))["fa2 hmma_16816 64x64"]
    assert kernel.loop.repeats == (64 + 1024) / 64


def test_grouped_queries_share_their_keys():
    grouped, separate = (kernels(Attention(4, 32, h, 128, 1, 4096))["fa2 hmma_16816 64x128"] for h in (8, 32))
    assert separate.cold_bytes == 4 * grouped.cold_bytes
    assert (grouped.ctas, separate.ctas) == (4 * 8, 4 * 32)  # the heads of a group fill rows of one tile
    prefill = kernels(Attention(1, 32, 8, 128, 2048, 2048))["fa2 hmma_16816 64x64"]
    assert prefill.ctas == 32 * 2048 / 64


def test_decode_splits_the_keys_and_combines():
    found = kernels(Attention(1, 32, 8, 128, 1, 8192))
    plain, split = found["fa2 hmma_16816 64x128"], found["fa2 hmma_16816 64x128 split-kv 16"]
    assert (plain.launches, split.launches) == (1, 2)
    assert (plain.loop.repeats, split.loop.repeats) == (64, 4)
    assert split.ctas == 16 * plain.ctas
    assert split.write_bytes == plain.write_bytes + 16 * 32 * 128 * 4  # partial results in 32 bits


def test_short_contexts_are_not_split_into_nothing():
    assert set(kernels(Attention(1, 8, 8, 128, 1, 64))) == {"fa2 hmma_16816 64x128", "fa2 hmma_16816 16x64"}


def test_an_iteration_of_the_keys_by_hand():
    loop = kernels(Attention(1, 8, 8, 128, 2048, 2048))["fa2 hmma_16816 64x64"].loop
    assert loop.tensor_fma == 2 * 64 * 64 * 128 / 4
    assert loop.load_bytes == 2 * 64 * 128 * 2 / 4
    assert loop.sfu == 64 * 64 / (32 * 4)  # one exponential a score
    assert loop.shared_bytes == 2 * 64 * 128 * 2 + loop.load_bytes  # each warp reads all keys and values


def test_warps_of_a_flat_tile_share_the_keys_out():
    loop = kernels(Attention(1, 8, 8, 128, 1, 2048))["fa2 hmma_16816 16x64"].loop
    assert loop.shared_bytes == 2 * 64 * 128 * 2 / 4 + loop.load_bytes


def test_a_head_is_reread_after_its_own_keys_not_after_all():
    attention = Attention(16, 32, 8, 128, 8192, 8192)
    kernel = kernels(attention)["fa2 hmma_16816 64x64"]
    assert kernel.b_bytes == attention.kv_bytes
    assert kernel.reread_distance == 2 * 8192 * 128 * 2


def test_a_narrow_cache_is_read_narrow_and_widened():
    wide, narrow = (kernels(Attention(1, 8, 8, 128, 1, 4096, kv=kv))["fa2 hmma_16816 64x128"] for kv in ("bf16", "fp8"))
    assert narrow.cold_bytes == wide.cold_bytes / 2
    assert narrow.loop.fp32 > wide.loop.fp32
    assert narrow.loop.tensor_fma == wide.loop.tensor_fma
    same, cached = (kernels(Attention(1, 8, 8, 128, 1, 4096, dtype="tf32", kv=kv)) for kv in ("tf32", "fp32"))
    assert [k.loop.fp32 for k in cached.values()] == [k.loop.fp32 for k in same.values()]  # as wide: nothing to widen


def test_hopper_adds_warpgroup_candidates():
    found = kernels(Attention(1, 8, 8, 128, 2048, 2048), H100, True)
    assert {tuple(label.split()[:2]) for label in found} == {("fa2", "hmma_16816"), ("fa3", "wgmma")}
    assert all(kernel.warpgroup == label.startswith("fa3") for label, kernel in found.items())


def test_every_head_size_of_the_networks_has_a_candidate_that_fits_an_a100():
    for head_dim in (64, 80, 96, 128, 256):
        fits = [k.shared_kib <= 163 for k in kernels(Attention(1, 8, 8, head_dim, 512, 512)).values()]
        assert any(fits), head_dim


def test_a_type_without_instruction_is_refused():
    with pytest.raises(InputError, match="no matrix instruction of these GPUs computes in bf16"):
        attention_operator("attention", Attention(1, 8, 8, 128, 64, 64), (7.0, 7.0), False)


@pytest.mark.parametrize("window", [0, 1024])
def test_visible_keys_equal_a_count_by_hand(window):
    found = Attention(1, 8, 8, 64, 1500, 2000, window=window)
    seen = [min(500 + query + 1, window or 2000) for query in range(1500)]
    assert found.visible == pytest.approx(sum(seen) / 1500)
    kernels = [c.kernel for c in attention_operator("a", found).candidates]
    assert all(float(k.loop.repeats) > 0 and float(k.fma) > 0 for k in kernels)


def test_the_longest_cta_counts_start_and_end_as_a_block():
    assert Lengths(3.0, 7.0).ratio == 2.0
    assert Lengths(5.0, 5.0).ratio == 1.0
    triangle = kernels(Attention(1, 8, 8, 128, 8192, 8192))["fa2 hmma_16816 64x64"]  # 1 to 128 blocks, 64.5 in the mean
    assert triangle.longest == pytest.approx(129 / 65.5)


def test_keys_are_split_up_to_a_number_of_ctas():
    def most(batch):
        found = [label for label in kernels(Attention(batch, 32, 8, 128, 1, 8192)) if "split-kv" in label]
        return max(int(label.rsplit(" ", 1)[1]) for label in found)

    assert most(32) == 16  # 256 tiles of 16 splits are 4,096 CTAs
    assert most(33) == 8


def test_a_window_never_makes_a_longer_prompt_cheaper():
    work = [Attention(1, 8, 8, 64, n, n, window=4096).fma for n in (2048, 4096, 8192, 32768)]
    assert work == sorted(work)
    with pytest.raises(ValueError, match="only 50 keys"):
        Attention(1, 8, 8, 64, 100, 50)


def of_library(name, attention, warpgroup=False):
    """Kernels of a library's attention by label, on an A100 or an H100."""
    library, capabilities = attention_libraries()[name], H100 if warpgroup else A100
    found = attention_operator("attention", attention, capabilities, warpgroup, library=library).candidates
    return {c.label: c.kernel for c in found}


def test_a_window_keeps_flashattention_2_from_packing_heads_and_splitting_keys():
    decode = Attention(16, 32, 4, 128, 1, 1024)
    packed, alone = (of_library("fa2", replace(decode, window=w)) for w in (0, 1024))
    assert len(packed) > 1
    assert packed["fa2 hmma_16816 64x128"].ctas == 16 * 4
    assert packed["fa2 hmma_16816 64x128"].copies == 2  # into groups of heads and back
    (kernel,) = alone.values()
    assert kernel.ctas == 16 * 32
    assert (kernel.launches, kernel.copies) == (1, 0)
    assert kernel.loop.tensor_fma == packed["fa2 hmma_16816 64x128"].loop.tensor_fma  # a tile for one head's row


def test_a_window_leaves_other_libraries_as_they_are():
    decode = Attention(16, 32, 4, 128, 1, 1024)
    packed, windowed = (of_library("fa3", replace(decode, window=w), True) for w in (0, 1024))
    assert packed.keys() == windowed.keys()
    assert all(packed[label].ctas == windowed[label].ctas for label in packed)


def test_a_library_splits_as_often_as_it_may():
    long = Attention(1, 8, 1, 256, 1, 131072)
    assert max(k.ctas for k in of_library("triton_gddr", long).values()) == 8
    assert max(k.ctas for k in of_library("fa2", long).values()) == 128


def test_a_prompt_multiplies_the_head_that_its_kernel_is_built_for():
    of = {d: attention_operator("a", Attention(1, 16, 16, d, 4096, 4096, causal=False), (8.0, 8.0)) for d in (80, 96)}
    small, large = (operator.candidates[0].kernel for operator in of.values())
    assert small.loop.tensor_fma == large.loop.tensor_fma
    assert small.fma == pytest.approx(large.fma * 80 / 96)
    assert small.cold_bytes == pytest.approx(large.cold_bytes * 80 / 96)

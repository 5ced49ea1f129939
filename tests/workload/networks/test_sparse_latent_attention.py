"""Latent attention over chosen tokens: the indexer's kernels and bytes by hand, as DeepSeek-V3.2 has it."""

from dataclasses import replace

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.sparse_latent_attention import SparseLatentAttention
from dse.workload.parse import load_workload
from tests.workload.networks.test_step import STEP

SIZES = (128, 1536, 512, 128, 64, 128)
SPARSE = SparseLatentAttention(*SIZES, index_heads=64, index_dim=128, index_topk=2048)
CHOSEN_BEFORE = replace(SPARSE, index_heads=0)
LONG = replace(STEP, phase="decode", batch=8, queries=1, keys=32768.0, hidden=7168)


def made(attention, step):
    return {operator.name: operator.candidates[0].kernel for operator in attention.operators(step)}


def test_the_indexer_is_on_every_gpu():
    index = 1536 * 64 * 128 + 7168 * (128 + 64)
    plain = LatentAttention(*SIZES)
    assert SPARSE.parameters(7168, 8) == plain.parameters(7168, 8) + 8 * index
    assert CHOSEN_BEFORE.parameters(7168) == plain.parameters(7168)


def test_keys_of_the_indexer_are_kept_in_eight_bits_with_a_scale():
    assert SPARSE.cache_bytes(1000, precision("x"), 8) == 1000 * (576 * 2 + 128 + 4)
    assert CHOSEN_BEFORE.cache_bytes(1000, precision("x"), 8) == 1000 * 576 * 2


def test_one_token_scores_all_and_attends_the_chosen():
    kernels = made(SPARSE, LONG)
    scores = kernels["index_scores"]
    assert scores.fma == 8 * 32768 * 64 * 128
    assert (scores.cold_bytes, scores.write_bytes) == (8 * 32768 * 132, 8 * 32768 * 4)
    assert kernels["index_choice"].warm_bytes == 8 * 32768 * 4
    attention = kernels["latent_attention"]
    assert (attention.fma, attention.cold_bytes) == (8 * 2048 * 128 * (576 + 512), 8 * 2048 * 576 * 2)
    assert not any(name.startswith("index") for name in made(CHOSEN_BEFORE, LONG))


@pytest.mark.parametrize(("tokens", "seen"), [(1000, 1000 * 1001 / 2), (4096, 2048 * 2049 / 2 + 2048 * 2048)])
def test_a_prompt_attends_what_each_token_chose(tokens, seen):
    kernels = made(SPARSE, replace(LONG, phase="prefill", batch=1, queries=tokens, keys=tokens))
    assert kernels["latent_attention"].fma == seen * 128 * (576 + 512)
    assert kernels["index_scores"].fma == pytest.approx(tokens * (tokens + 1) / 2 * 64 * 128)
    assert "key_value_projection" not in kernels


def test_scores_leave_the_registers_as_one_number_of_all_heads():
    """A tile of 64 lanes' results would be 32 or 64 times as much."""
    found = {o.name: o for o in load_workload("deepseek_v3_2:phase=prefill,batch=1,prompt=4096,tp=8").operators}
    pairs = 4096 * 4097 / 2
    for candidate in found["index_scores_experts"].candidates:
        kernel = candidate.kernel
        stored = kernel.ctas * kernel.warps * kernel.end.store_bytes
        assert pairs * 4 <= stored < 2.5 * pairs * 4
        assert kernel.write_bytes == pairs * 4


@pytest.mark.parametrize(
    ("batch", "tokens", "before"), [(1, 4096, 0), (2, 64, 10_000), (1024, 1, 16)], ids=["prompt", "after", "short"]
)
def test_every_token_gathers_a_whole_list(batch, tokens, before):
    """Tokens share no reads, and the rest of a list is masked where fewer tokens are before them."""
    step = replace(LONG, phase="prefill", batch=batch, queries=tokens, keys=float(before + tokens))
    kernel = made(SPARSE, step)["latent_attention"]
    tiles = batch * tokens * 128 / 64  # 64 heads a tile
    queries, results = (batch * tokens * 128 * elements * 2 for elements in (576, 512))
    assert kernel.launches == 1 and kernel.ctas == tiles
    assert kernel.l2_bytes == tiles * 2048 * 576 * 2 + queries + results
    distinct = min(before + tokens, tokens - 1 + 2048)
    assert kernel.cold_bytes == batch * distinct * 576 * 2

"""Attention to chosen blocks, as MiniMax-M3 has it: what is kept, scored, chosen and attended."""

from dataclasses import replace

import pytest

from dse.workload.dtypes import precision
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.block_sparse_attention import BlockSparseAttention
from tests.workload.networks.test_step import STEP

PLAIN = GroupedQueryAttention(64, 4, 128, qk_norm="head")
SPARSE = BlockSparseAttention(64, 4, 128, qk_norm="head", index_heads=4, index_dim=128, index_block=128, index_topk=16)
LONG = replace(STEP, phase="decode", batch=8, queries=1, keys=32768.0, hidden=6144)


def made(attention, step):
    return {operator.name: operator.candidates[0].kernel for operator in attention.operators(step)}


def test_heads_of_the_indexer_are_shared_out_and_its_key_is_on_every_gpu():
    head = 6144 * 128
    assert SPARSE.parameters(6144) == PLAIN.parameters(6144) + 5 * head
    assert SPARSE.parameters(6144, 8) == PLAIN.parameters(6144, 8) + 8 * 2 * head
    assert SPARSE.cache_bytes(1000, precision("x"), 8) == 1000 * (2 * 128 * 2 + 128 * 2)


def test_one_token_scores_all_and_attends_the_chosen_blocks():
    kernels = made(SPARSE, LONG)
    scores, attention = kernels["index_scores"], kernels["attention"]
    assert scores.fma == 8 * 32768 * 4 * 128
    assert (scores.cold_bytes, scores.write_bytes) == (8 * 32768 * 128 * 2, 8 * 4 * 32768 / 128 * 4)
    assert kernels["index_choice"].warm_bytes == 8 * 4 * 32768 / 128 * 4
    assert kernels["index_choice"].write_bytes == 8 * 4 * 16 * 4
    assert (attention.fma, attention.cold_bytes) == (8 * 2048 * 64 * 256, 8 * 2048 * 4 * 256 * 2)
    assert [name for name in kernels if not name.startswith("index")] == list(made(PLAIN, LONG))


def test_a_request_of_no_more_tokens_than_the_blocks_hold_attends_all():
    short = replace(LONG, keys=2048.0)
    assert made(SPARSE, short)["attention"] == made(PLAIN, short)["attention"]


@pytest.mark.parametrize("tokens", [4096, 16384])
def test_a_prompt_attends_what_each_token_chose(tokens):
    kernels = made(SPARSE, replace(LONG, phase="prefill", batch=1, queries=tokens, keys=float(tokens)))
    pairs = 2048 * 2049 / 2 + (tokens - 2048) * 2048
    assert kernels["attention"].fma == pairs * 64 * 256
    assert kernels["index_scores"].fma == pytest.approx(tokens * (tokens + 1) / 2 * 4 * 128)

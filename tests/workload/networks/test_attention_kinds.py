"""Kinds of attention: parameters, heads that several GPUs hold, and the cache, by hand."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from tests.workload.networks.test_step import STEP

LLAMA = GroupedQueryAttention(heads=32, kv_heads=8, head_dim=128)


def test_projections_of_queries_keys_values_and_results():
    assert LLAMA.parameters(4096) == 4096 * 128 * (32 + 8 + 8 + 32)
    assert LLAMA.parameters(4096, gpus=4) == LLAMA.parameters(4096)  # two key-value heads a GPU
    assert LLAMA.parameters(4096, gpus=16) == 4096 * 128 * (32 + 16 + 16 + 32)  # one a GPU: each is held twice


@pytest.mark.parametrize(("kv", "element"), [("bf16", 2), ("fp8", 1)])
def test_the_cache_holds_keys_and_values_of_the_gpus_heads(kv, element):
    types = precision("x", kv=kv)
    assert LLAMA.cache_bytes(1000, types, 1) == 2 * 8 * 128 * 1000 * element
    assert LLAMA.cache_bytes(1000, types, 16) == 2 * 128 * 1000 * element
    window = GroupedQueryAttention(32, 8, 128, window=512)
    assert window.cache_bytes(1000, types, 1) == 2 * 8 * 128 * 512 * element
    assert window.cache_bytes(100, types, 1) == 2 * 8 * 128 * 100 * element


def test_heads_are_shared_out_evenly_or_copied():
    LLAMA.check(16, "w", "Llama")
    with pytest.raises(InputError, match="w: tp=3 does not divide the 32 attention heads of Llama; give a"):
        LLAMA.check(3, "w", "Llama")
    with pytest.raises(InputError, match="w: tp=6 neither divides the 8 key-value heads of Llama nor is a multiple"):
        GroupedQueryAttention(48, 8, 128).check(6, "w", "Llama")


def test_tokens_before_a_prompt_are_read_no_farther_than_is_in_reach():
    step = replace(STEP, phase="prefill", batch=1, queries=100, keys=10_100.0, hidden=4096)
    pairs = {"": 100 * 10_000 + 5050, "window": 100 * 512, "chunk": 100 * (10_000 % 4096) + 5050}
    keys = {"": 10_100, "window": 612, "chunk": 100 + 10_000 % 4096}
    for name, reach in (("", {}), ("window", {"window": 512}), ("chunk", {"chunk": 4096})):
        made = GroupedQueryAttention(32, 8, 128, **reach).operators(step)
        kernel = next(o for o in made if o.name == "attention").candidates[0].kernel
        assert kernel.fma == pairs[name] * 32 * 2 * 128, name
        assert kernel.cold_bytes + kernel.warm_bytes == 2 * (2 * keys[name] * 8 * 128 + 100 * 32 * 128), name

"""Rows of a module of sparse latent attention: its kernels by name and count, and rows that say too little."""

from types import SimpleNamespace

import numpy as np
import pytest

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.measured.compound.sparse_latent import sparse_operators
from dse.workload.kernel import Kernel
from dse.workload.target import Target

ROW = {"op": "dsa_decode_module", "dtype": "bf16", "batch": 16.0, "heads": 64.0, "seq_q": 1.0, "seq_kv": 8193.0,
       "hidden": 6144.0, "kv_lora_rank": 512.0, "rope_dim": 64.0, "kv_dtype": "fp8", "sparse_topk": 2048.0,
       "block_format": "proj=fp8_block", "notes": "impl=trtllm-1.3.0rc20/default; GlmMoeDsa"}  # fmt: skip


def generated(operator):
    """Its kernels, none of them recorded."""
    return [c.kernel for c in operator.candidates if isinstance(c.kernel, Kernel)]


def kernels(**changes):
    return {o.name: o.candidates[0].kernel for o in sparse_operators(SimpleNamespace(**ROW | changes), Target((9, 9)))}


def test_one_token_s_kernels_by_hand():
    found = kernels()
    assert found["index_scores"].fma == 16 * 8193 * 32 * 128
    assert found["latent_attention"].fma == 16 * 2048 * 64 * (576 + 512)
    assert found["latent_attention"].cold_bytes == 16 * 2048 * 576
    assert found["query_projection"].fma == 16 * 64 * 256 * 2048
    assert kernels(notes="DeepseekV32", hidden=7168.0)["index_scores"].fma == 16 * 8193 * 64 * 128


def test_a_prompt_after_a_prefix():
    found = kernels(op="dsa_prefill_module", seq_q=32.0, seq_kv=6176.0)
    assert found["latent_attention"].fma == 16 * 32 * 2048 * 64 * (576 + 512)
    assert found["index_scores"].fma == pytest.approx(16 * (32 * 6144 + 32 * 33 / 2) * 32 * 128)


def test_notes_say_that_no_token_is_scored():
    assert "index_scores" not in kernels(notes="impl=sglang-0.5.14/sglang_dsa_skip_indexer_trtllm; GlmMoeDsa")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"notes": "impl=vllm"}, "notes name none of DeepseekV32, GlmMoeDsa"),
        ({"sparse_topk": np.nan}, "no sparse_topk"),
        ({"seq_kv": 0.0}, "fewer keys"),
        ({"notes": "sglang_dsa_dense_mha_fa3; GlmMoeDsa"}, "attention to all tokens with keys and values made"),
    ],
)
def test_rows_that_say_too_little_are_refused(changes, why):
    with pytest.raises(InputError, match=why):
        kernels(**changes)


@pytest.mark.parametrize(
    ("queries", "keys", "pairs", "scored"),
    [(1.0, 4097.0, 2048, 4097), (64.0, 3136.0, 64 * 2048, 64 * 3072 + 64 * 65 / 2)],
)
def test_kernels_of_the_module_alone(queries, keys, pairs, scored):
    """Their rows state no width of the stream, which their network has."""
    said = {"seq_q": queries, "seq_kv": keys, "hidden": np.nan}
    (attention,) = kernels(op="dsa_attn", **said).values()
    assert attention.fma == 16 * pairs * 64 * (576 + 512)
    (scores,) = kernels(op="dsa_mqa_logits", dtype="fp8", **said).values()
    assert scores.fma == pytest.approx(16 * scored * 32 * 128)


@pytest.mark.parametrize(("capability", "computed"), [(9.0, 64), (10.0, 128)])
def test_the_kernel_without_splits_reads_sixteen_bits_and_fills_its_tile(capability, computed):
    row = ROW | {"op": "dsa_attn", "hidden": np.nan, "notes": "impl=sglang-0.5.14/flash_mla_sparse_fwd; GlmMoeDsa"}
    (attention,) = sparse_operators(SimpleNamespace(**row), Target((capability, capability)))
    for candidate in attention.candidates:
        assert candidate.kernel.launches == 1
        assert candidate.kernel.fma == 16 * 2048 * computed * (576 + 512)
        assert candidate.kernel.cold_bytes == 16 * 2048 * 576 * 2


@pytest.mark.parametrize(
    ("notes", "capability", "kv", "stretch"),
    [
        ("impl=trtllm-1.3.0rc20/default; GlmMoeDsa", 9.0, "bf16", constant("separate_sparse_loop")),
        ("impl=trtllm-1.3.0rc20/default; GlmMoeDsa", 10.0, "bf16", None),
        ("impl=vllm-0.24.0/FLASHMLA_SPARSE; GlmMoeDsa", 9.0, "bf16", 1.0),
        ("impl=vllm-0.24.0/FLASHMLA_SPARSE; GlmMoeDsa", 9.0, "fp8", None),
        ("impl=sglang-0.5.14/sglang_dsa_indexer_fa3; GlmMoeDsa", 9.0, "bf16", None),
    ],
)
def test_frameworks_that_call_the_kernel_without_splits_in_a_module(notes, capability, kv, stretch):
    """The other kernels of the module keep their candidates, splits among them."""
    row = ROW | {"batch": 1.0, "notes": notes, "kv_dtype": kv}
    made = {o.name: o for o in sparse_operators(SimpleNamespace(**row), Target((capability, capability)))}
    kernels = generated(made["latent_attention"])
    assert {kernel.launches for kernel in kernels} == ({1, 2} if stretch is None else {1})
    assert {kernel.stretch for kernel in kernels} == {stretch or 1.0}
    assert {kernel.launches for kernel in generated(made["absorbed_values"])} == {1, 2}

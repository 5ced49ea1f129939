"""Rows of a module of latent attention: its kernels by name and count, and rows that say too little."""

from types import SimpleNamespace

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.measured.compound.latent import module_operators
from dse.workload.target import Target

ROW = {"op": "mla_decode_module", "dtype": "bf16", "batch": 16.0, "heads": 128.0, "kv_heads": 1.0, "head_dim": 576.0,
       "seq_q": 1.0, "seq_kv": 1024.0, "hidden": 7168.0, "q_lora_rank": 1536.0, "kv_lora_rank": 512.0, "rope_dim": 64.0,
       "v_head_dim": 512.0, "kv_dtype": "bf16", "block_format": "proj=bfloat16"}  # fmt: skip


def kernels(**changes):
    return {o.name: o.candidates[0].kernel for o in module_operators(SimpleNamespace(**ROW | changes), Target((9, 9)))}


def test_one_token_s_kernels_by_hand():
    found = kernels()
    assert found["latent_projection"].fma == 16 * 7168 * (1536 + 576)
    assert found["latent_attention"].fma == 16 * 128 * 1024 * (576 + 512)
    assert found["output_projection"].fma == 16 * 128 * 128 * 7168
    assert kernels(kv_dtype="fp8")["latent_attention"].cold_bytes == found["latent_attention"].cold_bytes / 2


def test_a_prompt_s_keys_and_values_are_made():
    found = kernels(op="mla_prefill_module", seq_q=1024.0)
    assert found["key_value_projection"].fma == 16 * 1024 * 128 * 256 * 512
    assert "absorbed_queries" not in found


def test_projections_have_the_type_that_their_row_states():
    wide, narrow = (kernels(block_format=f"proj={name}")["output_projection"] for name in ("bfloat16", "fp8_block"))
    assert narrow.cold_bytes == wide.cold_bytes / 2


def test_a_row_without_ranks_is_refused():
    with pytest.raises(InputError, match="no kv_lora_rank"):
        kernels(kv_lora_rank=np.nan)


def test_a_row_without_the_width_of_its_stream_has_that_of_its_ranks():
    assert kernels(hidden=np.nan)["output_projection"].fma == kernels()["output_projection"].fma
    with pytest.raises(InputError, match="no hidden"):
        kernels(hidden=np.nan, q_lora_rank=768.0)


def test_a_module_runs_the_attention_of_the_library_that_its_notes_name():
    row, older = SimpleNamespace(**ROW, notes="impl=trtllm-1.3.0rc20/default"), Target((12, 12), warpgroup=False)
    ran = {o.name: {c.label.partition(" ")[0] for c in o.candidates} for o in module_operators(row, older)}
    assert ran["latent_attention"] == {"trtllm_warp_mla"}
    found = {o.name: {c.label.partition(" ")[0] for c in o.candidates} for o in module_operators(row, Target((9, 9)))}
    assert "trtllm_mla" in found["latent_attention"]

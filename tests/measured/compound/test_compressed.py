"""Rows of modules of DeepSeek-V4's attention: which layer of which network they are, and rows that name none."""

from types import SimpleNamespace

import pytest

from dse.base.errors import InputError
from dse.measured.compound.compressed import compressed_operators
from dse.workload.target import Target

ROW = {"op": "dsv4_csa_decode_module", "dtype": "bf16", "batch": 8.0, "heads": 8.0, "tp": 8.0, "seq_q": 1.0,
       "seq_kv": 12801.0, "kv_dtype": "fp8", "block_format": "proj=fp8_block",
       "notes": "impl=sglang-0.5.14/compressed_flashmla; compress=4; DeepseekV4"}  # fmt: skip


def kernels(**changes):
    row = SimpleNamespace(**ROW | changes)
    return {o.name: o.candidates[0].kernel for o in compressed_operators(row, Target((9, 9)))}


def test_the_heads_of_all_gpus_tell_the_network():
    flash = kernels()
    assert flash["output_projection"].fma == 8 * 4096 * 1024
    assert flash["group_projection"].fma == 8 * 1024 * 8 * 512
    assert flash["latent_attention"].fma == 8 * (128 + 512) * 8 * 1024
    assert flash["index_scores"].fma == pytest.approx(8 * 12801 / 4 * 64 * 128)
    pro = kernels(heads=16.0)
    assert pro["output_projection"].fma == 8 * 7168 * 2 * 1024
    assert pro["latent_attention"].fma == 8 * (128 + 1024) * 16 * 1024


def test_a_layer_of_much_compression_has_no_indexer():
    found = kernels(op="dsv4_hca_prefill_module", notes="compress=128", seq_q=64.0, seq_kv=12864.0)
    assert "index_scores" not in found
    assert found["compressor_projection"].fma == 8 * 64 * 4096 * 1024


def test_a_kernel_alone():
    assert list(kernels(op="dsv4_mqa_logits", heads=64.0, tp=1.0)) == ["index_scores"]
    assert list(kernels(op="dsv4_hca_attn", heads=64.0, tp=1.0, notes="compress=128")) == ["latent_attention"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"notes": "DeepseekV4"}, "notes do not say how many tokens a key stands for"),
        ({"heads": 12.0}, "has 96 heads and a key for 4 tokens"),
        ({"notes": "compress=16"}, "has 64 heads and a key for 16 tokens"),
    ],
)
def test_rows_of_no_known_layer_are_refused(changes, why):
    with pytest.raises(InputError, match=why):
        kernels(**changes)

"""Multi-head latent attention: bytes and multiply-adds by hand, and where one token's attention meets the ridge."""

from dataclasses import replace

import pytest

from dse import Workload, run
from dse.workload.implementation import IMPLEMENTATIONS
from dse.workload.operators.attention import CACHE_SMALL, CACHE_THREADS, Attention, attention_operator
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.workload import Phase

HEADS, ROPE, LATENT, HEAD = 128, 64, 512, 128
"""DeepSeek-V3's: query heads, elements that carry the position, rank of the latent, elements of a value's head."""


def decode(batch=32, keys=4096, heads=HEADS, kv="bf16"):
    return Attention(batch, heads, 1, LATENT + ROPE, 1, keys, v_dim=LATENT, latent=True, kv=kv)


def prefill(tokens=4096, heads=HEADS):
    return Attention(1, heads, heads, HEAD + ROPE, tokens, tokens, v_dim=HEAD)


def timed(attention, gpu="h200", library=None):
    operator = attention_operator("attention", attention, library=library)
    return run(gpu, Workload("one", "one attention", (operator,), (Phase("kernel"),))).kernels.iloc[0]


@pytest.mark.parametrize(("kv", "size"), [("bf16", 2), ("fp8", 1)])
def test_one_token_reads_the_latent_once_for_keys_and_values(kv, size):
    attention = decode(kv=kv)
    assert attention.kv_bytes == 32 * 4096 * 576 * size
    assert attention.fma == 32 * 4096 * 128 * (576 + 512)
    assert attention.out_bytes / attention.q_bytes == 512 / 576


def test_a_prompt_has_keys_of_192_and_values_of_128():
    attention = prefill()
    assert attention.kv_bytes == 4096 * 128 * (192 + 128) * 2
    assert attention.fma == 128 * 4096 * 4097 / 2 * (192 + 128)


def test_all_heads_on_a_gpu_have_242_operations_a_byte_and_16_have_30():
    assert 2 * decode().fma / decode().kv_bytes == pytest.approx(242, abs=0.5)
    assert 2 * decode(heads=16).fma / decode(heads=16).kv_bytes == pytest.approx(30, abs=0.5)


def test_with_all_heads_time_is_that_of_tensor_cores_and_with_16_that_of_dram():
    few, many = timed(decode(heads=16, keys=32768)), timed(decode(keys=32768))
    sheet_us = 32 * 32768 * 576 * 2 / 4.8e12 * 1e6
    assert sheet_us < few["time_us"] < 1.5 * sheet_us
    assert many["time_us"] > 1.3 * few["time_us"]


def test_values_that_are_no_slice_of_the_keys_are_refused():
    with pytest.raises(ValueError, match="no slice of keys of 128"):
        Attention(1, 8, 1, 128, 1, 64, v_dim=256, latent=True)


@pytest.mark.parametrize("gpu", ["a100_sxm_80gb", "l40s", "h100_sxm", "b200", "rtx_pro_6000"])
def test_it_runs_on_every_generation(gpu):
    assert 0 < timed(decode(), gpu)["time_us"] < 1e5
    assert 0 < timed(prefill(), gpu)["time_us"] < 1e5


def test_more_keys_never_take_less():
    times = [timed(decode(keys=keys))["time_us"] for keys in (256, 1024, 4096, 16384)]
    assert times == sorted(times)


def test_attention_in_eight_bits_writes_sixteen():
    attention = Attention(1, 8, 8, 128, 1024, 1024, dtype="fp8", kv="fp8")
    assert attention.out_bytes == 2 * attention.q_bytes == 8 * 1024 * 128 * 2


@pytest.mark.parametrize(("target", "library"), [((9.0, 9.0), "trtllm_mla"), ((10.0, 10.0), "trtllm_gen_mla")])
@pytest.mark.parametrize(("kv", "narrow"), [("bf16", ""), ("fp8", "narrow_")])
def test_a_narrow_cache_has_kernels_of_its_own(target, library, kv, narrow):
    runs = [o.kernel for o in attention_operator("attention", decode(kv=kv), target).candidates if o.kernel.warpgroup]
    assert {IMPLEMENTATIONS[int(k.implementation)] for k in runs} == {f"{library}_{narrow}decode"}


def test_a_prompt_s_operands_are_narrowed_in_a_pass_and_what_the_cache_takes_is_the_latent():
    narrow = replace(prefill(), kv="fp8")
    first = attention_operator("attention", narrow, (9.0, 9.0)).candidates[0].kernel
    assert first.copies == 1
    assert first.copied_bytes == 1.5 * narrow.q_bytes + 3.0 * narrow.kv_bytes
    written = replace(prefill(), written_dim=LATENT + ROPE, writes_cache=True)
    assert written.written_bytes == 2 * 4096 * 576 * 2
    kernel = attention_operator("attention", written, (9.0, 9.0)).candidates[0].kernel
    assert kernel.copied_bytes == written.written_bytes + 2 * written.q_bytes
    assert kernel.copied_rows == pytest.approx(4096 * min(1.0, 576 / CACHE_THREADS) ** CACHE_SMALL)


@pytest.mark.parametrize("heads", [1, 8, 64, 128])
def test_without_warpgroup_instructions_tensorrt_llm_gives_a_tile_of_a_request_s_heads_to_one_cta(heads):
    library = attention_libraries()["trtllm_warp_mla"]
    runs = attention_operator("attention", decode(4, 32768, heads), (8.9, 8.9), False, library=library).candidates
    assert {run.kernel.ctas for run in runs if "64x64" in run.label} == {4 * max(1, heads // 64)}
    assert all(run.kernel.shared_kib < 99 for run in runs)


def test_one_request_takes_its_cta_as_long_as_was_measured():
    measured_us = 6108.6  # experiments/data/measured: mla_decode_module of TensorRT-LLM, 4 x 65,537 on an RTX PRO 6000
    us = timed(decode(4, 65537, 1), "rtx_pro_6000", attention_libraries()["trtllm_warp_mla"])["time_us"]
    assert us == pytest.approx(measured_us, rel=0.3)
    half = timed(decode(4, 32768, 1), "rtx_pro_6000", attention_libraries()["trtllm_warp_mla"])["time_us"]
    assert us == pytest.approx(2 * half, rel=0.05)


@pytest.mark.parametrize(("gpu", "ran"), [("a100_sxm_80gb", "bf16"), ("l40s", "fp8")])
def test_a_narrow_cache_is_multiplied_as_it_is_where_tensor_cores_can(gpu, ran):
    library = attention_libraries()["trtllm_warp_mla"]
    wide, narrow = (timed(decode(4, 65536, 1, kv=kv), gpu, library)["time_us"] for kv in ("bf16", "fp8"))
    assert narrow < 0.8 * wide if ran == "fp8" else narrow > 0.95 * wide

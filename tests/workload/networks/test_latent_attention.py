"""Multi-head latent attention in a network: DeepSeek-V3's parameters and cache, one layer's kernels by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dse import load_workload, run
from dse.base.errors import InputError
from dse.evaluate.shared_programs import fastest_kernels
from dse.hardware.data_types import element_bytes
from dse.hardware.presets import load_sheet
from dse.timing.amali import Amali
from dse.workload.dtypes import precision
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.network import networks
from dse.workload.operators.forms import usual_form

V3 = "deepseek_v3:phase={phase},batch={batch},context=4096,{more}"


def operators(phase="decode", batch=32, more="dtype=bf16"):
    workload = load_workload(V3.format(phase=phase, batch=batch, more=more))
    return {o.name: o for o in workload.operators}, workload


def first(operators, name):
    return operators[f"{name}_experts"].candidates[0].kernel


def test_parameters_and_cache_are_the_published_ones():
    network = networks()["deepseek_v3"]
    assert network.parameters == pytest.approx(671.0e9, rel=1e-3)
    bf16 = precision("x")
    kept = sum(n * layer.attention.cache_bytes(1, bf16, 8) for layer, n in network.layers)
    assert kept == 61 * 576 * 2 == 70_272


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize(("batch", "context"), [(32, 4096), (128, 4096)])
def test_a_decode_layer_by_hand(tp, batch, context):
    found, _ = operators(batch=batch, more=f"dtype=bf16,tp={tp}")
    heads, h = 128 // tp, 7168
    fma = {
        "latent_projection": batch * h * (1536 + 512 + 64),
        "query_projection": batch * 1536 * heads * 192,
        "absorbed_queries": batch * heads * 128 * 512,
        "latent_attention": batch * heads * context * (576 + 512),
        "absorbed_values": batch * heads * 512 * 128,
        "output_projection": batch * heads * 128 * h,
        "router": batch * h * 256,
        "expert_gate_up_projection": batch * 8 * h * 2 * 2048 / tp,
        "expert_down_projection": batch * 8 * h * 2048 / tp,
        "shared_gate_up_projection": batch * h * 2 * 2048 / tp,
        "shared_down_projection": batch * h * 2048 / tp,
    }
    for name, count in fma.items():
        assert first(found, name).fma == pytest.approx(count), name
    assert first(found, "latent_attention").cold_bytes == batch * context * 576 * 2
    distinct = 256 * (1 - (1 - 8 / 256) ** batch)
    assert first(found, "expert_down_projection").cold_bytes == pytest.approx(distinct * h * 2048 / tp * 2)


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_prefill_layer_by_hand(tp, batch):
    found, _ = operators("prefill", batch, f"dtype=bf16,tp={tp}")
    heads, tokens = 128 // tp, batch * 4096
    assert first(found, "key_value_projection").fma == tokens * heads * 256 * 512
    assert first(found, "latent_attention").fma == batch * heads * 4096 * 4097 / 2 * (192 + 128)
    assert "absorbed_queries_experts" not in found


def test_replicas_share_requests_and_experts_and_exchange_tokens():
    found, workload = operators(batch=256, more="dtype=fp8_block,kv=fp8,dp=8")
    assert workload.gpus == 8
    assert first(found, "latent_attention").fma == 256 / 8 * 128 * 4096 * (576 + 512)
    assert first(found, "expert_gate_up_projection").fma == pytest.approx(256 * 8 / 8 * 7168 * 4096)
    sent = 32 * 8 * 7 / 8 * 7168
    assert first(found, "expert_dispatch").link_bytes == sent * element_bytes("fp8_block")
    assert first(found, "expert_combine").link_bytes == sent * 2
    assert not any("all_reduce" in name for name in found)


def test_experts_are_shared_out_in_memory_too():
    whole, shared = (operators(batch=256, more=f"dtype=fp8,{more}")[1].memory for more in ("tp=8", "dp=8"))
    assert whole.weights == pytest.approx(671e9 / 8, rel=0.05)
    assert 671e9 / 8 < shared.weights < 1.4 * 671e9 / 8  # attention and dense layers on every GPU
    assert shared.kv == pytest.approx(whole.kv / 8)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("dp=3", "dp=3 does not divide the 32 requests"),
        ("dp=8,ep=4", "ep=4 with dp=8: .* give ep=8"),
        ("tp=4,ep=3", "ep=3 does not divide tp=4"),
        ("tp=8,ep=8,routing=random", "routing=random is not accepted"),
        ("tp=3", "tp=3 does not divide the 128 attention heads"),
    ],
)
def test_degrees_that_do_not_divide_are_refused(more, why):
    with pytest.raises(InputError, match=why):
        operators(more=f"dtype=bf16,{more}")


def test_experts_are_no_keys_of_a_dense_network():
    for more in ("ep=2", "routing=balanced"):
        with pytest.raises(InputError, match="Llama-3-8B has none"):
            load_workload(f"llama3_8b:tp=2,{more}")


def test_long_contexts_wait_for_tensor_cores_when_all_heads_are_on_a_gpu():
    long = "deepseek_v3:phase=decode,batch=128,context=32768,dtype=fp8_block,kv=fp8,dp=8"
    kernels = run("h200", long).kernels
    attention = kernels[kernels["kernel"] == "latent_attention_experts"].iloc[0]
    sheet_us = 16 * 32768 * 576 / 4.8e12 * 1e6  # of the latents' bytes
    assert attention["time_us"] > 2 * sheet_us


@pytest.mark.slow
def test_a_skewed_routing_takes_longer_than_a_balanced_one():
    text = "mixtral_8x7b:phase=decode,batch=64,context=512,tp=2,ep=2,routing={}"
    times = [run("h100_sxm", text.format(r)).metrics["tbt_ms"][0] for r in ("balanced", "power_law_1.2")]
    assert times[0] < times[1]


def test_replicas_beyond_the_links_are_refused_with_the_links():
    with pytest.raises(InputError, match="it sends between 16 GPUs, and NVLink joins 8 of them"):
        run("h200", V3.format(phase="decode", batch=256, more="dtype=fp8,dp=16"))


@pytest.mark.parametrize("attribute", ["dram_bandwidth_gbs", "nvlink_gbs", "l2_slice_bytes_per_cycle"])
def test_more_of_a_rate_is_never_slower(attribute):
    gpu = load_sheet("h200").record()
    faster = replace(gpu, **{attribute: getattr(gpu, attribute) * 1.3})
    text = V3.format(phase="decode", batch=128, more="dtype=fp8,dp=8,routing=power_law_1.2")
    made = load_workload(text).operators
    before, after = (np.asarray(fastest_kernels(Amali(), made, one)[1].nanoseconds) for one in (gpu, faster))
    assert (after <= before * (1 + 1e-5)).all()


def test_slices_of_experts_that_end_within_a_block_are_refused():
    mixtral = networks()["mixtral_8x7b"]
    layer = mixtral.layers[0][0]
    narrow = replace(mixtral, layers=((replace(layer, mlp=replace(layer.mlp, ffn=768)), 32),))
    serving = Serving("decode", 1, 128, 128, 0, precision("x", "fp8_block"), 4)
    with pytest.raises(InputError, match=r"slices of 192, no multiple of the 128 .* give ep=4, or dtype=fp8"):
        llm_workload(narrow, serving, "x")
    assert llm_workload(narrow, replace(serving, ranks=4), "x").gpus == 4


def on(gpu, text):
    """Operators of attention with forms, the labels that run, and the times of a workload's phases [ms]."""
    result = run(gpu, text)
    rows = result.kernels[result.kernels["kernel"].str.contains("key_value_projection_experts|latent_attention_exp")]
    return list(rows["implementation"]), result.metrics["time_ms"][0]


def test_a_short_prompt_after_a_long_prefix_is_absorbed_and_a_long_one_is_not():
    text = "deepseek_v2_lite:phase=prefill,batch=1,prompt={},prefix=32768"
    short, long = on("h200", text.format(16)), on("h200", text.format(4096))
    assert all(label.startswith("absorbed: ") for label in short[0]) and len(short[0]) == 2
    assert all(label.startswith("made: ") for label in long[0]) and len(long[0]) == 2
    assert short[1] < long[1]


def test_a_prefix_is_attended_and_kept_and_made_of_its_latents():
    found, workload = operators("prefill", 1, "dtype=bf16,prefix=1000")
    alone = operators("prefill", 1, "dtype=bf16")[1]
    assert first(found, "key_value_projection").fma == 5096 * 128 * 256 * 512
    pairs = 4096 * 1000 + 4096 * 4097 / 2
    assert first(found, "latent_attention").fma == 128 * pairs * (192 + 128)
    assert workload.memory.kv - alone.memory.kv == 1000 * 70_272


def test_a_decode_step_tries_no_form_that_no_design_runs_faster():
    for context, forms in ((8, 2), (4096, 1)):
        found = load_workload(f"deepseek_v3:phase=decode,batch=32,context={context}").operators
        attention = next(o for o in found if o.name == "latent_attention_experts")
        assert len(attention.forms) == forms


def test_a_host_launches_what_its_engine_runs():
    """The place of a kernel that a form has not is no launch."""
    found, workload = operators("prefill", 1, "dtype=bf16")
    assert "absorbed_values_experts" in found
    launched = sum(o.repeats for o in usual_form(workload.operators))
    assert launched == sum(o.repeats for o in workload.operators) - 61

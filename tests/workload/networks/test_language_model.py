"""Serving a network: work, bytes and memory of a step against sums by hand."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.timing.amali import Amali
from dse.workload.dtypes import precision
from dse.workload.kernel import Kernel
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import distinct_experts
from dse.workload.networks.names import load_network
from dse.workload.target import Target
from tests.programs import quick_jit

H100 = Target((9.0, 9.0), True)


def workload(network, phase, batch=1, prompt=2048, context=2048, output=0, gpus=1, **types):
    """A workload on Hopper."""
    serving = Serving(phase, batch, prompt, context, output, precision("x", **types), gpus)
    return llm_workload(load_network(network), serving, "x", H100)


def with_layer(network, **changes):
    """A shipped network whose one kind of layer has other numbers."""
    network = load_network(network)
    ((layer, count),) = network.layers
    attention, mlp = (
        replace(block, **{key: value for key, value in changes.items() if hasattr(block, key)})
        for block in (layer.attention, layer.mlp)
    )
    return replace(network, layers=((Layer(attention, mlp), count),))


def total(found, attribute, kinds=None):
    """Sum of an attribute of each operator's first candidate, times how often it runs."""
    operators = [o for o in found.operators if kinds is None or o.kind in kinds]
    return sum(o.repeats * getattr(o.candidates[0].kernel, attribute) for o in operators)


def names(found):
    """Operators' names in order."""
    return [o.name for o in found.operators]


def test_prefill_does_two_flops_a_parameter_and_token():
    network = load_network("llama3_8b")
    expected = 2048 * network.layer_parameters() + network.embedding_parameters  # logits of the last token alone
    assert total(workload("llama3_8b", "prefill"), "fma", {"gemm"}) == pytest.approx(expected)


def test_decode_reads_all_weights_and_the_cache():
    network = load_network("llama3_8b")
    found = workload("llama3_8b", "decode", batch=32)
    weights = (network.parameters - network.embedding_parameters) * 2
    cache = 32 * 2048 * 2 * 8 * 128 * 32 * 2
    assert total(found, "cold_bytes") == pytest.approx(weights + cache)
    assert found.memory.weights == pytest.approx(network.parameters * 2)
    assert found.memory.kv == cache


def test_memory_holds_the_cache_at_its_longest():
    token = 2 * 8 * 128 * 32 * 2
    assert workload("llama3_8b", "decode", prompt=2048, context=128).memory.kv == 128 * token
    assert workload("llama3_8b", "prefill", prompt=512, context=512).memory.kv == 512 * token
    assert workload("llama3_8b", "generate", prompt=512, context=640, output=256).memory.kv == 768 * token
    assert workload("llama3_8b", "decode", prompt=512, context=640, output=256).memory.kv == 768 * token
    windowed = workload("mistral_7b", "decode", context=32768)
    assert windowed.memory.kv == 4096 * token


def test_tokens_are_those_of_all_requests():
    assert workload("llama3_8b", "prefill", batch=4, prompt=512, context=512).tokens == 4 * 512
    assert workload("llama3_8b", "decode", batch=4).tokens == 4
    assert workload("llama3_8b", "generate", batch=4, prompt=512, context=640, output=256).tokens == 4 * 256


def test_activations_are_those_of_all_experts_of_a_token():
    """Three times the residual stream, and gate and up of two experts; then the logits in fp32."""
    found = workload("mixtral_8x7b", "decode", batch=8).memory.activations
    assert found == 8 * (3 * 4096 + 2 * 14336 * 2) * 2 + 8 * 32000 * 4


def test_generate_is_prefill_then_decode_steps():
    found = workload("llama3_8b", "generate", prompt=512, context=640, output=256)
    assert [(p.name, p.runs) for p in found.phases] == [("prefill", 1), ("decode", 255)]
    assert {o.phase for o in found.operators} == {"prefill", "decode"}
    prefill, decode = workload("llama3_8b", "prefill", prompt=512), workload("llama3_8b", "decode", context=640)
    assert names(found) == names(prefill) + names(decode)


def test_the_operators_of_a_layer_run_once_a_layer():
    found = workload("llama3_8b", "decode")
    repeats = {o.name: o.repeats for o in found.operators}
    assert repeats["qkv_projection"] == repeats["silu"] == repeats["attention"] == 32
    assert repeats["embedding"] == repeats["logits"] == repeats["sampling"] == 1
    assert "rope" in repeats and "rope" not in names(workload("opt_6_7b", "decode"))


def test_weight_only_quantisation_narrows_the_weights_alone():
    wide, narrow = workload("llama3_8b", "decode"), workload("llama3_8b", "decode", dtype="int4")
    assert narrow.memory.kv == wide.memory.kv
    assert narrow.memory.weights < 0.4 * wide.memory.weights
    assert not [name for name in names(narrow) if "quantise" in name]


def test_narrow_activations_are_quantised_before_each_product():
    found = workload("llama3_8b", "prefill", dtype="fp8")
    quantised = [name for name in names(found) if name.endswith("_quantise")]
    assert len(quantised) == 4  # qkv, output, gate and up, down
    gemms = {o.name: o.candidates[0].kernel for o in found.operators if o.kind == "gemm"}
    assert gemms["qkv_projection"].tensor_dtype == 4 and gemms["logits"].tensor_dtype == 2


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_tensor_parallel_shares_the_work_out_and_reduces_twice_a_layer(gpus):
    alone, shared = workload("llama3_70b", "prefill"), workload("llama3_70b", "prefill", gpus=gpus)
    assert total(shared, "fma") == pytest.approx(total(alone, "fma") / gpus, rel=1e-3)
    assert shared.memory.kv == alone.memory.kv / gpus
    reduces = [o for o in shared.operators if o.kind == "all_reduce"]
    assert [o.repeats for o in reduces] == [80, 80]
    assert reduces[0].candidates[0].kernel.warm_bytes == 2048 * 8192 * 2
    assert not [o for o in alone.operators if o.kind == "all_reduce"]


def test_heads_that_are_fewer_than_gpus_are_copied():
    found = workload("qwen2_5_7b", "decode", gpus=4)
    assert found.memory.kv == workload("qwen2_5_7b", "decode").memory.kv / 4
    network = with_layer("llama3_8b", kv_heads=2)
    alone, shared = (llm_workload(network, Serving("decode", 1, 1, 1, 0, precision("x"), n), "x", H100) for n in (1, 8))
    copies = 2 * 32 * 4096 * (8 - 2) * 128 * 2
    assert 8 * shared.memory.weights == alone.memory.weights + copies
    with pytest.raises(InputError, match=r"tp=8 does not divide the 28 attention heads of Qwen2.5-7B"):
        workload("qwen2_5_7b", "decode", gpus=8)
    network = with_layer("llama3_8b", heads=48, ffn=14400)
    with pytest.raises(InputError, match="tp=6 neither divides the 8 key-value heads"):
        llm_workload(network, Serving("decode", 1, 1, 1, 0, precision("x"), 6), "x", H100)


def test_a_mixture_reads_the_experts_its_tokens_use():
    layers = 32 * 3 * 4096 * 14336
    for batch in (1, 4, 64):
        found = workload("mixtral_8x7b", "decode", batch=batch)
        experts = [o for o in found.operators if o.kind == "gemm" and o.name.startswith("expert_")]
        read = sum(o.repeats * o.candidates[0].kernel.cold_bytes for o in experts)
        expected = distinct_experts(8, 2, batch) * layers * 2
        assert read == pytest.approx(expected)
        done = sum(o.repeats * o.candidates[0].kernel.fma for o in experts)
        assert done == pytest.approx(batch * 2 * layers)
    assert "router" in names(found) and "combine_experts" in names(found)


def test_experts_have_no_rows_that_no_token_asked_for():
    """64 tokens of two experts each are 16 rows an expert, though 7.99999993 of 8 experts are expected to be read."""
    made = {o.name: o for o in workload("mixtral_8x7b", "decode", batch=64).operators}
    assert made["expert_gate_up_projection"].shape.startswith("8 x 16 x")
    assert made["expert_silu"].shape.startswith("128 x")
    long = {o.name: o for o in workload("mixtral_8x7b", "prefill", prompt=2048).operators}
    assert long["expert_gate_up_projection"].shape.startswith("8 x 512 x")
    three = {o.name: o for o in workload("mixtral_8x7b", "decode", batch=3).operators}
    assert three["expert_silu"].shape.startswith("6 x")


@pytest.mark.parametrize(("experts", "per_token"), [(8, 2), (40, 8), (60, 4), (60, 8), (160, 6), (10, 2)])
def test_one_token_is_one_row_of_each_of_its_experts(experts, per_token):
    network = with_layer("mixtral_8x7b", experts=experts, experts_per_token=per_token)
    serving = Serving("decode", 1, 2048, 2048, 0, precision("x"))
    found = llm_workload(network, serving, "x", H100)
    done = sum(
        o.repeats * o.candidates[0].kernel.fma
        for o in found.operators
        if o.kind == "gemm" and o.name.startswith("expert_")
    )
    assert done == pytest.approx(per_token * 32 * 3 * 4096 * 14336)


def test_a_step_streams_its_weights_and_its_cache_from_dram():
    """What a step reads was last read a whole step ago: no L2 of today holds it; one larger than the step would."""
    found = workload("llama3_8b", "decode", batch=32)
    kernels = Kernel.stack([operator.candidates[0].kernel for operator in found.operators])
    repeats = np.array([operator.repeats for operator in found.operators])

    @quick_jit
    def dram_bytes(l2_mib):
        gpu = replace(preset_sheet("h100_sxm").record(), l2_mib=l2_mib)
        return jax.vmap(lambda kernel: Amali()(kernel, gpu).dram_bytes)(kernels)

    streamed = found.memory.weights - 128256 * 4096 * 2 + found.memory.kv  # of the embeddings a row a token
    assert repeats @ dram_bytes(50.0) == pytest.approx(streamed, rel=0.01)
    assert repeats @ dram_bytes(1e6) < 0.01 * streamed


def test_a_sliding_window_bounds_what_is_attended():
    attention = next(o for o in workload("mistral_7b", "decode", context=32768).operators if o.name == "attention")
    assert attention.candidates[0].kernel.cold_bytes == 2 * 8 * 4096 * 128 * 2


def test_every_operator_belongs_to_a_phase_and_has_candidates():
    found = workload("mixtral_8x7b", "generate", output=8, gpus=2, dtype="fp8")
    phases = {phase.name for phase in found.phases}
    assert all(o.phase in phases and o.candidates and o.repeats > 0 for o in found.operators)
    assert found.candidate_count == found.kernels.ctas.size
    assert [s.stop - s.start for s in found.slices] == [len(o.candidates) for o in found.operators]


@pytest.mark.parametrize(
    ("phase", "asked", "tokens"),
    [
        ("prefill", {"prompt": 4097}, "4,097"),
        ("decode", {"context": 5000}, "5,000"),
        ("generate", {"prompt": 4000, "output": 97}, "4,097"),
        ("generate", {"prompt": 4000, "output": 96}, ""),
        ("prefill", {"prompt": 4096}, ""),
        ("decode", {"context": 4096}, ""),
    ],
)
def test_tokens_beyond_what_a_network_was_made_for_are_said(phase, asked, tokens):
    caution = workload("llama2_7b", phase, **asked).caution
    said = f"{tokens} tokens are beyond the 4,096 positions that Llama-2-7B was made for" if tokens else ""
    assert caution.partition(";")[0] == said


def test_one_token_is_generated_by_the_prefill_alone():
    found = workload("llama3_8b", "generate", batch=2, prompt=100, output=1)
    assert [(phase.name, phase.runs) for phase in found.phases] == [("prefill", 1.0)]
    assert found.tokens == 2

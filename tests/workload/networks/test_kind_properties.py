"""What holds of every kind of layer that a shipped network has, whatever its sizes."""

from dataclasses import replace

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.evaluate.shared_programs import fastest_kernels
from dse.hardware.presets import load_sheet
from dse.timing.amali import Amali
from dse.workload.dtypes import precision
from dse.workload.networks.network import networks
from dse.workload.parse import load_workload
from tests.workload.networks.test_step import STEP

BF16 = precision("x")
FIRST = {}
for network in networks().values():
    for layer, _ in network.layers:
        FIRST.setdefault(
            (type(layer.attention).__name__, type(layer.mlp).__name__, layer.kind), (layer, network.hidden)
        )
LAYERS = list(FIRST.values())
NAMES = [f"{attention} {mlp} {kind}" for attention, mlp, kind in FIRST]


def at(phase, batch, tokens, hidden, gpus=1):
    queries = 1 if phase == "decode" else tokens
    step = replace(STEP, phase=phase, batch=batch, queries=queries, keys=tokens, hidden=hidden)
    return replace(step, gpus=gpus)


def work(layer, step):
    """Multiply-adds and bytes of a layer in all."""
    kernels = [operator.candidates[0].kernel for operator in layer.operators(step)]
    counts = [(k.fma, k.cold_bytes + k.warm_bytes + k.write_bytes) for k in kernels]
    assert np.isfinite(counts).all() and (np.array(counts) >= 0).all()
    return np.sum(counts, axis=0)


@pytest.mark.parametrize(("layer", "hidden"), LAYERS, ids=NAMES)
def test_more_tokens_are_never_less_work(layer, hidden):
    for phase in ("prefill", "decode"):
        works = [work(layer, at(phase, batch, tokens, hidden)) for batch, tokens in ((1, 64), (2, 64), (2, 9000))]
        assert (np.diff(works, axis=0) >= 0).all(), phase


@pytest.mark.parametrize(("layer", "hidden"), LAYERS, ids=NAMES)
def test_what_is_kept_grows_with_tokens_and_never_with_gpus(layer, hidden):
    kept = [layer.attention.cache_bytes(tokens, BF16, 1) for tokens in (0, 1, 100, 10_000, 1_000_000)]
    assert np.all(np.diff(kept) >= 0)
    shared = [layer.attention.cache_bytes(10_000, BF16, gpus) for gpus in (1, 2, 4, 8)]
    assert np.all(np.diff(shared) <= 0)


@pytest.mark.parametrize(("layer", "hidden"), LAYERS, ids=NAMES)
def test_gpus_that_share_a_layer_do_its_work_together(layer, hidden):
    for _, block in layer.blocks:
        try:
            block.check(8, "w", "a network")
        except InputError:
            pytest.skip("its heads or columns are no multiple of 8")
    alone, shared = (work(layer, at("decode", 4, 4096, hidden, gpus))[0] for gpus in (1, 8))
    assert alone / 8 <= shared <= alone
    parameters = [layer.parameters(hidden, gpus) for gpus in (1, 8)]
    assert parameters[0] <= parameters[1]
    assert layer.active_parameters(hidden) <= parameters[0]


WORKLOADS = [
    "gpt_oss_120b:phase=decode,batch=32,context=8192,dtype=w4a16_mxfp4",
    "qwen3_next_80b_a3b:phase=decode,batch=32,context=8192,dtype=fp8,tp=2",
    "nemotron_h_56b:phase=prefill,batch=1,prompt=2048,tp=2",
    "deepseek_v3_2:phase=decode,batch=128,context=8192,dtype=fp8_block,dp=8",
    "llama4_scout:phase=prefill,batch=1,prompt=9000,tp=8",
]


@pytest.mark.parametrize("text", WORKLOADS, ids=lambda text: text.partition(":")[0])
def test_more_of_a_rate_is_never_slower(text):
    gpu, made = load_sheet("h200").record(), load_workload(text).operators
    before = np.asarray(fastest_kernels(Amali(), made, gpu)[1].nanoseconds)
    for attribute in ("dram_bandwidth_gbs", "l2_slice_bytes_per_cycle", "nvlink_gbs"):
        faster = replace(gpu, **{attribute: getattr(gpu, attribute) * 1.3})
        after = np.asarray(fastest_kernels(Amali(), made, faster)[1].nanoseconds)
        assert (after <= before * (1 + 1e-5)).all(), attribute

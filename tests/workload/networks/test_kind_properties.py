"""What holds of every kind of layer that a shipped network has, whatever its sizes."""

from dataclasses import replace

import numpy as np
import pytest

from dse.evaluate.shared_programs import fastest_kernels
from dse.hardware.presets import load_sheet
from dse.timing.amali import Amali
from dse.workload.networks.network import networks
from dse.workload.parse import load_workload
from tests.workload.networks.layer_properties import PROPERTIES

FIRST = {}
for network in networks().values():
    for layer, _ in network.layers:
        FIRST.setdefault(
            (type(layer.attention).__name__, type(layer.mlp).__name__, layer.kind), (layer, network.hidden)
        )
LAYERS = list(FIRST.values())
NAMES = [f"{attention} {mlp} {kind}" for attention, mlp, kind in FIRST]


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize(("layer", "hidden"), LAYERS, ids=NAMES)
def test_what_holds_of_every_kind(layer, hidden, holds):
    """Each of PROPERTIES is an assertion."""
    holds(layer, hidden)


WORKLOADS = [
    "gpt_oss_120b:phase=decode,batch=32,context=8192,dtype=w4a16_mxfp4",
    "qwen3_next_80b_a3b:phase=decode,batch=32,context=8192,dtype=fp8,tp=2",
    "nemotron_h_56b:phase=prefill,batch=1,prompt=2048,tp=2",
    "deepseek_v3_2:phase=decode,batch=128,context=8192,dtype=fp8_block,dp=8",
    "deepseek_v4_flash:phase=decode,batch=64,context=8192,dtype=fp8_block,dp=8,ep=8",
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

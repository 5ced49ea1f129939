"""What a measured run of a whole network may be, its types and its shape."""

import re

from dse.hardware.data_types import with_role
from dse.workload.counts import LARGEST
from dse.workload.dtypes import precisions
from dse.workload.networks.degrees import MOST_GPUS

FORWARD = "model_inf"
"""A forward pass over all tokens at once, as PyTorch runs it eagerly in fp32."""

RUNS = ("llm_prefill", "llm_decode_step_avg", "llm_e2e", "serving_tpot", FORWARD)
"""Operators of a table's column ``op`` that are runs of whole networks."""

RUN_SHAPE = ("batch", "seq_q", "seq_kv", "tp")
"""Requests, tokens of a prompt, tokens generated, GPUs that share each layer."""

MOST = dict.fromkeys(RUN_SHAPE, LARGEST) | {"tp": MOST_GPUS}
"""Largest number of a run's shape: those of a workload."""

SHARED_OUT = re.compile(r"(?<![a-z0-9])(dp|ep)=?([0-9]+)(?![a-z0-9])")
"""Words of a run's notes that state replicas of attention or ranks of experts: ``dp=8``, ``ep=8``, ``_tp4_ep8_2``."""

WHY_NOT = {
    "serving_ttft": "the time to a first token is mostly spent in a queue, and queues are not modelled",
    "model_train": "the backward pass of a training step is not modelled",
}
"""Runs that are not predicted, and why."""

DTYPES = {name: {"dtype": name} for name in (*with_role("weights"), *precisions())} | {
    "nvfp4": {"dtype": "nvfp4", "kv": "fp8"}
}
"""Column ``dtype`` -> the types of a network's weights, activations and cache, in a workload's words. The KV cache has
16 bits but with NVFP4, whose checkpoints keep it in fp8 (nvidia/Qwen3-32B-NVFP4, hf_quant_config.json)."""

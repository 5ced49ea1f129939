"""What a measured run of a whole network may be, its types and its shape."""

FORWARD = "model_inf"
"""A forward pass over all tokens at once, as PyTorch runs it eagerly in fp32."""

RUNS = ("llm_prefill", "llm_decode_step_avg", "llm_e2e", "serving_tpot", FORWARD)
"""Operators of a table's column ``op`` that are runs of whole networks."""

RUN_SHAPE = ("batch", "seq_q", "seq_kv", "tp")
"""Requests, tokens of a prompt, tokens generated, GPUs that share each layer."""

MOST = dict.fromkeys(RUN_SHAPE, 10_000_000) | {"tp": 8}
"""Largest number of a run's shape: those of a workload (:data:`dse.workload.parse.KEYS`)."""

WHY_NOT = {
    "serving_ttft": "the time to a first token is mostly spent in a queue, and queues are not modelled",
    "model_train": "the backward pass of a training step is not modelled",
}
"""Runs that are not predicted, and why."""

DTYPES = {
    "bf16": {"dtype": "bf16"},
    "fp16": {"dtype": "fp16"},
    "fp8": {"dtype": "fp8"},
    "fp8_block": {"dtype": "fp8"},
    "nvfp4": {"dtype": "fp4", "kv": "fp8"},
}
"""Column ``dtype`` -> the types of a network's weights and activations. Its KV cache has 16 bits but with NVFP4, whose
checkpoints keep it in fp8 (nvidia/Qwen3-32B-NVFP4, hf_quant_config.json)."""

"""The golden cases: commands on small inputs, and on small variants of the shipped spaces."""

from dataclasses import dataclass

from tests.golden.inputs import FEW, MANY

SAME = 2e-6
"""Relative difference of two numbers that are the same."""

FITTED = 1e-4
"""The same of what an optimiser found: programs that fuse differently move an interval's end by up to 1.8e-5 there."""


@dataclass(frozen=True)
class Case:
    """A command without ``--json``, its paths relative to a folder that holds every input.

    ``folder`` is what a sweep or a search writes. ``fast`` cases are part of the normal tests. ``tolerance`` [1] is
    relative.
    """

    name: str
    command: str
    folder: str | None = None
    fast: bool = False
    tolerance: float = SAME


DECODE = "llama3_8b:phase=decode,batch=32,context=2048"

SHOWN = ("gpus", "gpu h100_sxm", "schema", "networks", "metrics", "engines", "spaces")

RUNS = {
    "bf16_decode": f"h100_sxm {DECODE}",
    "bf16_prefill": "a100_sxm_80gb llama3_8b:phase=prefill,batch=1,prompt=2048",
    "fp16_mixture_tp2": "h100_sxm mixtral_8x7b:phase=generate,batch=8,prompt=1024,output=256,dtype=fp16,tp=2",
    "fp8_tp4": "h200 llama3_70b:phase=decode,batch=64,context=4096,dtype=fp8,tp=4",
    "int4_weights": "l4 llama3_8b:phase=decode,batch=1,context=2048,weights=int4,activations=bf16",
    "fp8_weights": "h200 llama3_8b:phase=decode,batch=64,context=8192,weights=fp8,activations=bf16",
    "fp4": "b200 llama3_8b:phase=prefill,batch=2,prompt=1024,dtype=fp4",
    "int8": "a100_sxm_80gb llama3_8b:phase=decode,batch=16,context=1024,dtype=int8",
    "fp32": "t4 gpt2_xl:phase=prefill,batch=4,prompt=256,dtype=fp32",
    "tf32": "a100_sxm_80gb gpt2_xl:phase=prefill,batch=1,prompt=512,dtype=tf32",
    "fp16_old": "v100_sxm2_32gb gpt2_xl:phase=generate,batch=8,prompt=256,output=32,dtype=fp16",
    "engine_tp4": f"h100_sxm {DECODE},tp=4,engine=vllm_2024",
    "engine_fp8_tp2": "h200 llama3_70b:phase=generate,batch=16,prompt=2048,output=128,dtype=fp8,tp=2,engine=trtllm_1_0",
    "engine_eager": "a100_sxm_80gb gpt2_xl:phase=decode,batch=4,context=512,dtype=fp32,engine=pytorch_eager",
    "held_to_350w": "h100_sxm_350w llama3_8b:phase=prefill,batch=8,prompt=4096",
    "uncalibrated": f"h100_sxm {DECODE} --calibration none",
    "roofline": f"h100_sxm {DECODE} --timing roofline",
    "mdm": f"a100_sxm_80gb {DECODE} --timing mdm",
    "products": "h100_sxm gemms.csv",
    "own_gpu": "gpu.toml llama3_8b:phase=decode,batch=8,context=4096,dtype=fp8",
    "trace": "rtx_2060 trace",
}
"""Case of ``dse run`` -> its GPU, workload and options."""

EXPLAINED = {
    "decode": f"h100_sxm {DECODE} --top 6",
    "prefill_fp8_tp4": "h200 llama3_70b:phase=prefill,batch=1,prompt=2048,dtype=fp8,tp=4 --top 6",
    "int4_weights": "l4 llama3_8b:phase=decode,batch=1,context=1024,weights=int4,activations=bf16 --top 4",
    "against": f"h100_sxm {DECODE} --against a100_sxm_80gb --top 4",
    "against_engine": f"h100_sxm {DECODE},tp=2,engine=vllm_2024 --against h200 --top 3",
    "trace": "rtx_2060 trace --top 5",
}

TRACED = {
    "amali": "--gpu rtx_2060",
    "roofline": "--gpu rtx_2060 --timing roofline",
    "mdm": "--gpu rtx_2060 --timing mdm",
    "gcom": "--gpu rtx_2060_small.config",
    "representative": "--gpu h100_sxm --representative 3",
}

MEASURED = {
    "validate_time": "validate kernels.csv --quantity time",
    "validate_roofline": "validate predict.csv --quantity time --timing roofline",
    "validate_power": "validate power.csv",
    "validate_power_modelled": "validate power.csv --time model",
    "validate_networks": "validate networks.csv --quantity time",
    "validate_networks_power": "validate networks.csv --quantity power",
    "calibrate_power": "calibrate power power.csv",
    "calibrate_timing": "calibrate timing h100_sxm fit.csv",
    "calibrate_engine": "calibrate engine mine runs.csv --like vllm_2024",
    "predict": "predict predict.csv --target H100 --predictors nnls,lasso",
    "scale": "scale scale.csv",
    "scale_given": "scale scale.csv --small 8 --large 32",
}


def _cases() -> list[Case]:
    cases = [Case("show_" + words.split()[0], f"show {words}", fast=True) for words in SHOWN]
    cases += [Case("check", "check few_h100_successor.toml", fast=True)]
    cases += [Case(f"run_{n}", f"run {words}", fast=n != "trace") for n, words in RUNS.items()]
    cases += [Case(f"explain_{name}", f"explain {words}") for name, words in EXPLAINED.items()]
    cases += [Case(f"trace_{name}", f"trace trace {words}", fast=True) for name, words in TRACED.items()]
    for name, words in MEASURED.items():
        tolerance = FITTED if name in ("calibrate_timing", "calibrate_engine") else SAME
        cases.append(Case(name, words, fast=name.startswith("scale"), tolerance=tolerance))
    spaces = [*(f"few_{name}" for name in FEW), *(f"many_{name}" for name in MANY), "traced"]
    for space in spaces:
        cases += [_sweep(space, "all"), *([_sweep(space, "front")] if space not in KEPT_WHOLE else [])]
    for sampler, evaluations in {"local": 600, "nsga2": 200}.items():
        name = f"search_{sampler}"
        words = f"search many_h100_tensor_core.toml --sampler {sampler} --evaluations {evaluations} --seed 3"
        cases.append(Case(name, f"{words} --no-page -o {name}", folder=name))
    return cases


KEPT_WHOLE = ("few_long_context_cache", "few_perf_per_watt", "few_prefill_chip", "many_decode_chip")
"""Variants that are swept with ``--keep all`` alone."""


def _sweep(space: str, keep: str) -> Case:
    name = f"sweep_{space}_{keep}"
    return Case(name, f"sweep {space}.toml --keep {keep} --no-page -o {name}", folder=name)


CASES = _cases()

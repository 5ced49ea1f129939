"""Watts of other GPUs, seen by no fit: serving, and published points."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.power.activity import Activity, activity
from dse.power.board import BoardPower
from dse.timing.amali import Amali
from dse.workload.parse import load_workload
from dse.workload.target import Target
from experiments import data

NETWORKS = {"anl_Llama-2-7b-hf": "llama2_7b", "anl_Meta-Llama-3-8B": "llama3_8b"}
DEVICES = {"A100-SXM4-40GB": "a100_sxm_40gb", "A100-SXM4-80GB": "a100_sxm_80gb", "H100-SXM5-80GB": "h100_sxm"}


@cache
def serving_activity(preset: str, text: str) -> tuple[Gpu, Activity]:
    """The activities of all launches of a workload together, as AMALI chooses its kernels."""
    gpu = load_sheet(preset).record()
    capability = float(gpu.compute_capability)
    workload = load_workload(text, Target((capability, capability), bool(gpu.warpgroup_mma > 0)))
    kernels = jax.tree.map(jnp.asarray, workload.kernels)
    timing = jax.jit(jax.vmap(lambda kernel: Amali()(kernel, gpu)))(kernels)
    counts = jax.vmap(lambda kernel, timing: activity(kernel, timing, gpu))(kernels, timing)
    time = np.where(np.asarray(timing.feasible) > 0, np.asarray(timing.microseconds), np.inf)
    best = jnp.asarray([part.start + int(np.argmin(time[part])) for part in workload.slices])
    runs = {phase.name: phase.runs for phase in workload.phases}
    repeats = jnp.asarray([o.repeats * runs.get(o.phase, 1.0) for o in workload.operators])
    return gpu, jax.tree.map(lambda x: jnp.sum(x[best] * repeats), counts)


def serving_watts(model: BoardPower, preset: str, text: str, microseconds: float) -> float:
    """Average watts of a workload that takes ``microseconds``: the activities of all its launches, over that time."""
    gpu, total = serving_activity(preset, text)
    dtype = jnp.asarray(TENSOR_DTYPES.index("fp16"))
    rest = {"nanoseconds": jnp.asarray(microseconds * 1e3), "clock_ghz": gpu.tensor_clock_ghz, "busy": jnp.ones(())}
    return min(float(model.uncapped(total._replace(tensor_dtype=dtype, **rest), gpu).watts), float(model.limit(gpu)))


def serving_rows() -> pd.DataFrame:
    """Measured serving power of A100 and H100: generation of 1024 tokens (LLM-Inference-Bench), prefill (splitwise)."""
    bench = data.frame("llm_inference_bench__e2e")
    bench = bench[bench.power_w.notna() & bench.group.isin(NETWORKS)]
    bench = bench.assign(
        text=[
            f"{NETWORKS[r.group]}:phase=generate,batch={r.batch:.0f},prompt={r.seq_q:.0f},output={r.seq_kv:.0f},dtype=fp16"
            for r in bench.itertuples()
        ]
    )
    split = data.frame("splitwise__llm_e2e")
    split = split[(split.device == "A100-SXM4-80GB") & (split.op == "llm_prefill") & (split.power_w > 100)]
    split = split[split.batch * split.seq_q >= 1024]
    split = split.assign(
        text=[
            f"llama2_70b:phase=prefill,batch={r.batch:.0f},prompt={r.seq_q:.0f},dtype=fp16,tp={r.tp:.0f}"
            for r in split.itertuples()
        ]
    )
    return pd.concat([bench, split])[["source", "device", "text", "latency_us", "power_w"]].reset_index(drop=True)


PUBLISHED = (
    # preset, GB/s, FP32 TFLOP/s, tensor TFLOP/s, watts; streams with FMAs: RRZE-HPC gpu-benches gpu-roofline
    ("h200", 3759.0, 0.5, 0.0, 572.0),
    ("h200", 3300.0, 20.6, 0.0, 675.0),
    ("h200", 426.0, 42.6, 0.0, 398.0),
    ("a100_sxm_40gb", 1372.0, 0.5, 0.0, 227.0),
    ("a100_sxm_40gb", 1267.0, 15.2, 0.0, 309.0),
    ("a100_sxm_40gb", 165.0, 19.2, 0.0, 181.0),
    ("v100_pcie_16gb", 869.0, 0.5, 0.0, 131.0),
    ("a40", 679.0, 0.5, 0.0, 206.0),
    ("l40", 845.0, 0.5, 0.0, 199.0),
    # best sustained matrix products, at the power limit (stas00/ml-engineering)
    ("a100_sxm_80gb", 100.0, 0.0, 271.2, 400.0),
    ("h100_sxm", 100.0, 0.0, 794.5, 700.0),
    ("b200", 200.0, 0.0, 1745.0, 1000.0),
)


def streaming_watts(model: BoardPower, preset: str, gbs: float, fp32: float, tensor: float) -> float:
    """Uncapped watts of a kernel given by its rates."""
    gpu = load_sheet(preset).record()
    return float(model.uncapped(stream_activity(gpu, gbs, fp32, tensor), gpu).watts)


def stream_activity(gpu: Gpu, gbs: float, fp32: float, tensor: float) -> Activity:
    """A kernel given by its rates: bytes streamed through registers [GB/s], FP32 and BF16 products [TFLOP/s]."""
    us = 1e3
    streamed, fma, products = gbs * us * 1e3, fp32 * us * 1e6 / 2, tensor * us * 1e6 / 2
    operands = products / 64  # bytes from the L2 of a tile of 128 x 128
    counts = dict.fromkeys(Activity._fields, 0.0) | {
        "nanoseconds": us * 1e3,
        "busy": 1.0,
        "clock_ghz": float(gpu.tensor_clock_ghz if tensor else gpu.boost_clock_ghz),
        "tensor_dtype": TENSOR_DTYPES.index("bf16"),
        "tensor_fma": products,
        "fp32": fma,
        "instructions": fma / 32 + streamed / 512,
        "register_bytes": 16 * fma + streamed,
        "shared_bytes": 2 * operands,
        "l1_bytes": streamed + operands,
        "l2_bytes": 2 * streamed + operands,
        "dram_bytes": streamed,
    }
    return Activity(**{k: jnp.asarray(v) for k, v in counts.items()})

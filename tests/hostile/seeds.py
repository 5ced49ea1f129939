"""What people give to readers, as they may be: the texts that are changed at random, and the readers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dse.hardware.presets import load_sheet
from dse.measured.nsight_export import read_export
from dse.measured.table import read_operators, read_times
from dse.prediction.table import read_measured
from dse.scaling.table import read_scale_table
from dse.space.space import load_space
from dse.timing.traced.gcom_config import read_gcom_config
from dse.workload.parse import load_workload


class Seed(NamedTuple):
    """A file's name, its text, and what reads it."""

    file: str
    text: str
    read: Callable[[Path], Any]


SPACE = """base = "h100_sxm"
question = "Which?"
constraints = ["die_mm2 <= 814", "gemm.time_ms < 2 * base.gemm.time_ms"]
yield_model = "murphy"
timing = { model = "amali", calibration = "shared" }
power = "board"
[gpu]
tdp_w = 650
[axes]
sm_count = [96, 132]
l2_mib = { from = 25, to = 50, step = 5 }
dram_type = ["hbm3", "hbm2e"]
[links]
l2_slices = "max(8, floor(l2_mib * 1.6)) + (sm_count > 100)"
[workloads]
gemm = { use = "g.csv", weight = 2 }
[[objectives]]
value = "gemm.time_ms"
goal = "min"
[[objectives]]
name = "area"
value = "die_mm2 / 2"
unit = "mm2"
goal = "minimize"
"""

GPU = """base = "h100_sxm"
name = "Mine"
sm_count = 160
process = "tsmc_n3e"
dram_type = "hbm3"
dram_bandwidth_gbs = 4000.5
[peaks]
bf16 = 1200
"""

WORKLOAD = """network = "llama3_8b"
phase = "decode"
batch = 16
context = 2048
dtype = "fp8"
tp = 2
"""

GEMMS = "m,n,k,batch,dtype,count,name\n128,256,512,1,bf16,2,first\n8.0,576.0,7168.0,,fp8,,\n"

MEASURED = (
    "device,op,dtype,m,n,k,power_w,latency_us,source\n"
    "NVIDIA H100 80GB HBM3,gemm,bf16,1024,4096,4096,500,59.07,mine\n"
    "NVIDIA H100 80GB HBM3,gemm,bf16,2048,4096,4096,600,111.3,mine\n"
)

NSIGHT = (
    '==PROF== hello\n"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit",'
    '"Metric Value"\n"0","77","k","(128, 1, 1)","(64, 32, 1)","9.0","gpu__time_duration.sum","us","59.07"\n'
    '"1","77","k","(128, 1, 1)","(64, 32, 1)","9.0","gpu__time_duration.sum","us","1,111.30"\n'
)

SCALES = "benchmark,size,ipc,mpki,f_mem\nbfs,8,10,2,0.5\nbfs,16,19,2,\nbfs,32,36,1,\n"

GCOM = "unsigned numSMs = 30\nunsigned maxThreadsPerSM = 1024\ndouble coreFreq = 1.365 // GHz\n"

LLAMA = json.dumps(
    {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 4,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    indent=1,
)  # fmt: skip
GEMMA = json.dumps(
    {
        "model_type": "gemma3", "text_config": {
            "model_type": "gemma3_text", "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 6,
            "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144,
            "sliding_window": 512, "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        },
        "vision_config": {"hidden_size": 8},
    },
    indent=1,
)  # fmt: skip
DEEPSEEK = json.dumps(
    {
        "model_type": "deepseek_v3", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 3,
        "num_attention_heads": 16, "kv_lora_rank": 512, "q_lora_rank": 768, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 16, "num_experts_per_tok": 4,
        "moe_intermediate_size": 512, "n_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 1024,
    },
    indent=1,
)  # fmt: skip


def _of_config(path: Path) -> Any:
    return load_workload(f"{path}:phase=decode,batch=2,context=64,dtype=bf16")


def _settings(path: Path) -> Any:
    return load_workload(path.read_bytes().decode("utf-8", "replace"))


SEEDS = (
    Seed("s.toml", SPACE, load_space),
    Seed("g.toml", GPU, load_sheet),
    Seed("w.toml", WORKLOAD, load_workload),
    Seed("settings.txt", "llama3_8b:phase=decode,batch=2,context=64,dtype=bf16,tp=2,engine=shared", _settings),
    Seed("gemms.csv", GEMMS, load_workload),
    Seed("llama.json", LLAMA, _of_config),
    Seed("gemma.json", GEMMA, _of_config),
    Seed("deepseek.json", DEEPSEEK, _of_config),
    Seed("times.csv", MEASURED, read_times),
    Seed("power.csv", MEASURED, read_operators),
    Seed("learnt.csv", MEASURED, read_measured),
    Seed("nsight.csv", NSIGHT, read_export),
    Seed("scale.csv", SCALES, read_scale_table),
    Seed("gpu.config", GCOM, read_gcom_config),
)
"""Readers of the files that a user gives."""

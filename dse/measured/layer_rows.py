"""Measured rows that are operators of a transformer's layer by name, as LLMCompass has them: what kernels they time."""

import re
from typing import Any

import pandas as pd

from dse.base.constants import constant
from dse.hardware.presets import GpuSheet
from dse.measured.row_shape import ALL_REDUCE
from dse.timing.links import link_gbs
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator
from dse.workload.operators.collective import scattered_bytes

LAYER = re.compile(r"layer_(?:prefill|decode):(\w+)")
"""An operator of a layer in a table's column ``op``."""

LAYER_COLUMN = "layer_operator"

NVLINK = "nvlink"
"""What stands for the implementation of an all-reduce: latency and bandwidth of the links, nothing fitted."""

FFN = int(constant("gpt3_ffn_ratio"))
"""Width of the feed-forward network over the hidden one (GPT-3, Brown et al., 2020, section 2.1)."""

SUM = "SUM"

LAYER_SHAPE = ("batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv", "tp")
"""Requests, heads of one GPU, tokens of a request and those attended, GPUs that share the layer."""


def as_operators(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a layer's rows as the operators that they time, and their own name in LAYER_COLUMN
    ("" in other rows); those of another name or without LAYER_SHAPE stay as they are (:func:`why_no_operator`)."""
    frame = frame.assign(**{LAYER_COLUMN: ""})
    named = frame["op"].astype(str).str.fullmatch(LAYER)
    if not named.any():
        return frame
    frame = frame.astype({"op": object})
    for i, row in zip(frame.index[named], frame[named].itertuples(), strict=True):
        made = {} if why_no_operator(row) else _operators(row)[_name(row)]
        for column, value in ({LAYER_COLUMN: row.op} | made if made else {}).items():
            frame.loc[i, column] = value
    return frame


def why_no_operator(row: Any) -> str:
    """Return why a layer's row is no operator, "" where it is one."""
    name = _name(row)
    if name == SUM:
        return f"{row.op} is the sum of the layer's operators, which are rows of their own"
    if not all(float(getattr(row, column)) > 0 for column in LAYER_SHAPE):
        return f"{row.op} without its {', '.join(LAYER_SHAPE)}"
    if name not in _operators(row):
        return f"no operator of a layer is called {name!r}; accepted are: {', '.join(_operators(row))}"
    return ""


def _name(row: Any) -> str:
    return str(row.op).partition(":")[2]


def _operators(row: Any) -> dict[str, dict[str, Any]]:
    """Columns of each operator of a row's layer, attention unfused: scores, softmax and values are kernels."""
    tokens, pairs = row.batch * row.seq_q, row.batch * row.heads
    own, hidden = row.heads * row.head_dim, row.heads * row.head_dim * row.tp
    heads = row.heads + 2 * row.kv_heads

    def product(n: float, k: float) -> dict[str, Any]:
        return {"op": "gemm", "batch": 1, "m": tokens, "n": n, "k": k}

    def each_head(n: float, k: float) -> dict[str, Any]:
        return {"op": "bmm", "batch": pairs, "m": row.seq_q, "n": n, "k": k}

    def vector(op: str, rows: float, cols: float) -> dict[str, Any]:
        return {"op": op, "rows": rows, "cols": cols}

    return {
        "LayerNorm_MHA": vector("layernorm", tokens, hidden),
        "Q_K_V": product(heads * row.head_dim, hidden),
        "Q_mul_K": each_head(row.seq_kv, row.head_dim),
        "Softmax": vector("softmax", pairs * row.seq_q, row.seq_kv),
        "A_mul_V": each_head(row.head_dim, row.seq_kv),
        "Wo_proj": product(hidden, own),
        "AllReduce_MHA": vector(ALL_REDUCE, tokens, hidden),
        "LayerNorm_FFN": vector("layernorm", tokens, hidden),
        "W1_proj": product(FFN * own, hidden),
        "GeLU": vector("gelu", tokens, FFN * own),
        "W2_proj": product(hidden, FFN * own),
        "AllReduce_FFN": vector(ALL_REDUCE, tokens, hidden),
    }


def link_us(reduction: Operator, sheet: GpuSheet) -> float:
    """Return the least that an all-reduce sends at the data sheet's bandwidth of the links [us], for the roofline."""
    kernels = [candidate.kernel for candidate in reduction.candidates if isinstance(candidate.kernel, Kernel)]
    gpus, size = float(kernels[0].link_gpus), float(kernels[0].warm_bytes)
    return scattered_bytes(size, gpus) / float(link_gbs(kernels[0], sheet.record())) * 1e-3

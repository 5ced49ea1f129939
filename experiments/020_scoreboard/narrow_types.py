"""Lines of the scoreboard of products in narrow types, with the pass over their activations: families never fitted."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from experiments.common.modules import experiment

Mask = Callable[[pd.DataFrame], pd.Series]
Asked = tuple[float, float]

NOTHING = (np.nan, np.nan)
H100, H200, B200 = "h100_sxm", "h200", "b200"


def _narrow(gpu: str, dtypes: tuple[str, ...], frameworks: tuple[str, ...] = ()) -> Mask:
    def chosen(r: pd.DataFrame) -> pd.Series:
        ran = r["framework"].str.startswith(frameworks) if frameworks else True
        return (r["gpu"] == gpu) & r["dtype"].isin(dtypes) & ran

    return chosen


OTHERS = ("vllm", "sglang")
NARROW: tuple[tuple[str, Mask, Asked], ...] = (
    ("fp8 and fp8_block, H100", _narrow(H100, ("fp8", "fp8_block")), (10, 7)),
    ("fp8 and fp8_block, H200", _narrow(H200, ("fp8", "fp8_block")), (10, 7)),
    ("fp8 and fp8_block, B200", _narrow(B200, ("fp8", "fp8_block", "fp8_static")), (11, 9)),
    ("fp8 per tensor (TensorRT-LLM), H100", _narrow(H100, ("fp8",), ("trtllm",)), (9, 7)),
    ("fp8 per tensor (TensorRT-LLM), H200", _narrow(H200, ("fp8",), ("trtllm",)), (9, 7)),
    ("fp8 per token (vLLM, SGLang), H100", _narrow(H100, ("fp8",), OTHERS), NOTHING),
    ("fp8 per token (vLLM, SGLang), H200", _narrow(H200, ("fp8",), OTHERS), NOTHING),
    ("fp8_block, H100", _narrow(H100, ("fp8_block",)), NOTHING),
    ("fp8_block, H200", _narrow(H200, ("fp8_block",)), NOTHING),
    ("nvfp4, B200", _narrow(B200, ("nvfp4",)), (11, 9)),
    ("8- and 4-bit weights, W8A8, H200", _narrow(H200, ("int4_wo", "int8_wo", "int8_sq")), NOTHING),
    ("fp8, fp8_block, nvfp4, RTX PRO 6000", _narrow("rtx_pro_6000", ("fp8", "fp8_block", "nvfp4")), NOTHING),
    (
        "fp8, fp8_block, weights, L40S",
        _narrow("l40s", ("fp8", "fp8_block", "fp8_static", "int4_wo", "int8_wo")),
        NOTHING,
    ),
)
"""Name, rows and what is asked of left-out families of products in narrow types, with their passes."""

RESIDUAL = 4.0
"""Points by which a line may be worse without the residual by size."""


def parts() -> Iterator[tuple[str, pd.DataFrame, Asked]]:
    """Yield the name of a line, its rows with what is predicted and both rooflines [us], and what is asked; then the
    same rows without the residual by size."""
    rows = experiment("024_narrow_products", "judged.py").judged()
    rows = rows.assign(sheet_us=rows[["compute_us", "memory_us"]].max(axis=1))
    for name, mask, asked in NARROW:
        mine = rows[mask(rows)]
        yield f"products {name}", mine, asked
        error = 100 * float((mine["predicted_us"] / mine["latency_us"] - 1).abs().mean())
        bare = mine.assign(predicted_us=mine["bare_us"])
        yield "... without the residual by size", bare, (error + RESIDUAL, np.nan)

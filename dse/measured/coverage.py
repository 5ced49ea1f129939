"""Which rows of a measured table have a time that can be predicted, and why others have none."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache

import pandas as pd

from dse.base.errors import accepted
from dse.base.package_tables import read_table
from dse.hardware.data_types import COMPUTED, data_types, with_role
from dse.measured.columns import not_modelled
from dse.measured.compound.compressed import COMPRESSED_MODULES
from dse.measured.compound.experts import MIXTURE
from dse.measured.compound.latent import MODULES
from dse.measured.compound.sparse_latent import SPARSE_MODULES, SPARSE_SHAPE
from dse.measured.layer_rows import LAYER, why_no_operator
from dse.measured.network_runs.kinds import DTYPES as RUN_DTYPES
from dse.measured.network_runs.kinds import FORWARD, MOST, RUN_SHAPE, RUNS, WHY_NOT
from dse.measured.nsight_export import NO_SHAPE
from dse.measured.row_shape import (
    ALL_REDUCE,
    ATTENTION,
    ATTENTION_SHAPE,
    ENCODER,
    LATENT,
    MIXTURE_SHAPE,
    PRODUCT_SHAPE,
    PRODUCTS,
    VECTOR_SHAPE,
    why_no_shape,
)
from dse.measured.row_vector import VECTOR, VECTOR_DTYPES
from dse.workload.dtypes import precisions


def _spelled(types: Iterable[str]) -> tuple[str, ...]:
    """The data types, then their other spellings."""
    types = tuple(types)
    return (*types, *(name for kind in types for name in data_types()[kind].spellings))


_PLAIN = (name for name in with_role("activations") if name in COMPUTED)
NAMES_OF_PRODUCTS = (*_spelled(_PLAIN), *precisions())
"""Names of the types that products are made in: a data type, another spelling of it, or a pair's own name."""

DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, NAMES_OF_PRODUCTS),
    **dict.fromkeys((*ATTENTION, ENCODER, *LATENT), _spelled(("bf16", "fp16", "fp8"))),
    **dict.fromkeys((*MODULES, *SPARSE_MODULES, *COMPRESSED_MODULES), _spelled(("bf16", "fp16", "fp8"))),
    **dict.fromkeys((*VECTOR, ALL_REDUCE), _spelled(VECTOR_DTYPES)),
    **dict.fromkeys(RUNS, tuple(RUN_DTYPES)),
    MIXTURE: (*_spelled(name for name in with_role("weights") if name != "tf32"), *precisions()),
    FORWARD: ("fp32",),
}
"""Operator -> the data types that kernels are made in."""

SHAPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, PRODUCT_SHAPE),
    **dict.fromkeys((*ATTENTION, ENCODER, *LATENT, *MODULES), ATTENTION_SHAPE),
    **dict.fromkeys((*SPARSE_MODULES, *COMPRESSED_MODULES), SPARSE_SHAPE),
    **dict.fromkeys(VECTOR, VECTOR_SHAPE),
    ALL_REDUCE: (*VECTOR_SHAPE, "tp"),
    MIXTURE: MIXTURE_SHAPE,
    **dict.fromkeys(RUNS, RUN_SHAPE),
}
"""Operator -> the numbers that its shape needs, all above 0."""


GPUS = tuple(range(2, MOST["tp"] + 1))
"""GPUs that an all-reduce may join: those of a layer."""


OTHER_NAMES = {
    **dict.fromkeys(("matmul", "mm", "linear", "addmm", "gemm_nt", "dense", "matrix_multiply", "torch.matmul"), "gemm"),
    **dict.fromkeys(("batched_gemm", "batch_matmul", "batched_matmul", "baddbmm"), "bmm"),
}
"""What frameworks call operators -> what they are called here."""


@cache
def listed_types(op: str) -> tuple[str, ...]:
    """Return the types of an operator that a refusal names: other spellings of them left out."""
    spelled = {name for kind in data_types().values() for name in kind.spellings}
    return tuple(name for name in dict.fromkeys(DTYPES[op]) if name not in spelled)


@cache
def _no_operator(op: str) -> str:
    if op == NO_SHAPE:
        return f"no kernel is made yet for operator {op!r}"
    meant = OTHER_NAMES.get(op.lower())
    near = accepted(meant, [meant]) if meant else accepted(op.lower(), SHAPES)
    return f"no kernel is made yet for operator {op!r}; {near}"


def uncovered(
    frame: pd.DataFrame, unknown: Mapping[str, str], limits: Mapping[str, float], fits: bool = False
) -> pd.Series:
    """Return why each row cannot be predicted, "" where it can; ``unknown``: device -> why none of its rows can;
    ``limits``: device -> power limit of the GPU that predicts its rows [W]. With ``fits``: why no fit takes it.

    ``frame``: with ``tp``, and a layer's rows as operators (:func:`dse.measured.layer_rows.as_operators`).
    """
    reason = pd.Series([unknown.get(str(device), "") for device in frame["device"]], index=frame.index, dtype=object)
    op, dtype = (frame[column].astype(object).fillna("nothing").astype(str) for column in ("op", "dtype"))

    def mark(rows: pd.Series, words: pd.Series | str) -> None:
        reason[rows & (reason == "")] = words

    for known, why in WHY_NOT.items():
        mark(op == known, why)
    words = (
        frame["notes"].map(lambda cell: cell if isinstance(cell, str) else "")
        if "notes" in frame
        else pd.Series("", frame.index)
    )
    for row in read_table("schema/left_alone.csv"):
        alone = op.map(lambda o, like=row["op"]: fnmatchcase(o, like)) & words.str.contains(row["words"], regex=False)
        for column, values in (("dtype", dtype), ("device", frame["device"].astype(str))):
            alone &= values.map(lambda value, like=row[column]: fnmatchcase(value, like))
        mark(alone, op + ": " + row["why_not"])
    for i in frame.index[op.str.fullmatch(LAYER)]:
        reason[i] = reason[i] or why_no_operator(frame.loc[i])
    mark(~op.isin(SHAPES), op.map(_no_operator))
    chosen = op.isin(SPARSE_MODULES)
    mark(chosen, not_modelled(frame.drop(columns="sparse_topk", errors="ignore"), limits, fits))
    mark(op.isin(SHAPES) & ~chosen, not_modelled(frame, limits, fits))
    shaped = frame.reindex(columns=[*frame.columns, *(c for c in MIXTURE_SHAPE if c not in frame)])
    for known in (kind for kind in SHAPES if kind not in RUNS):  # network_rows says what a run lacks
        types = f" (accepted are {', '.join(listed_types(known))})"
        mark((op == known) & ~dtype.isin(DTYPES[known]), "no kernel is made for " + op + " in " + dtype + types)
        mark(op == known, why_no_shape(shaped, known, SHAPES[known]))
    shared = frame["heads"] % frame["kv_heads"].where(frame["kv_heads"] > 0, 1) != 0
    mark(op.isin((*ATTENTION, ENCODER, *LATENT)) & shared, "attention whose heads are no multiple of its kv_heads")
    mark(
        (op == ALL_REDUCE) & ~frame["tp"].isin(GPUS),
        f"{ALL_REDUCE} over other than {GPUS[0]} to {GPUS[-1]:,} GPUs (tp)",
    )
    return reason

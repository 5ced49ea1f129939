"""A row of a measured table as a product, an attention or an all-reduce: its shape, and where the protocol leaves its
operands."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd

from dse.base.errors import InputError
from dse.base.text_file import printable
from dse.hardware.data_types import canonical, data_types, element_bytes
from dse.workload.dtypes import precisions
from dse.workload.networks.names import network_of
from dse.workload.networks.network import Network
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention
from dse.workload.operators.attention_library import AttentionLibrary, library_of
from dse.workload.operators.collective import all_reduce_operator
from dse.workload.operators.gemm import Gemm, blas_result

PRODUCTS = ("gemm", "gemm_bias", "bmm")
"""Operators that are matrix products; a bias is taken as free."""

ATTENTION = ("attn_prefill", "attn_decode")
"""Operators that are attention over a prompt, and over one token a request."""

ENCODER = "attn_encoder"
"""Operator that is the attention of an encoder of images or sounds: every token attends all, and no cache is kept."""

LATENT = ("mla_prefill", "mla_decode")
"""The same of multi-head latent attention: a prompt's heads have keys and values of their own, with heads of two sizes;
one token's heads share a latent as their key, a slice of which is their value."""

ALL_REDUCE = "all_reduce"
"""Operator of ``rows`` x ``cols`` activations that are summed over ``tp`` GPUs."""

FRAMEWORK = re.compile(r"\bimpl=((?:vllm|sglang|trtllm)-\d+(?:\.\d+)*)")
"""How the notes of a row begin that name a framework and its version."""

KERNEL_NAMES = ("kernel", "benchmark_group")
NAMES = ("source", "group", "device", "op", "dtype", "kv_dtype", "block_format", "act_quant", *KERNEL_NAMES)
"""Columns of measured tables that hold names."""

DTYPES = ("dtype", "kv_dtype")
"""Those of them that hold data types."""

NVFP4 = "nvfp4"
"""What rows call fp4, as those who measured it do."""

PRODUCT_SHAPE = ("m", "n", "k")
ATTENTION_SHAPE = ("batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv")
VECTOR_SHAPE = ("rows", "cols")
MIXTURE_SHAPE = ("tokens", "hidden", "inter", "experts", "topk")
"""Columns of the shape of a product (``batch`` is 1 where none is given, but for a bmm), an attention, a vector kernel,
and the experts of a mixture."""

CAUSAL = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
"""What the column ``causal`` may say, in lower case -> whether later keys are masked."""

Distances = Callable[[float, float, float], tuple[float, float, float]]
"""Bytes of A, of the weights B and of C -> bytes touched between two uses of each."""


def bare_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose NAMES have no blanks around them, so that one name makes one group; a blank one is empty."""

    def bare(cell: Any) -> Any:
        return (printable(cell.strip()) or None) if isinstance(cell, str) else cell

    names = [name for name in NAMES if name in frame and not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.assign(**{name: frame[name].map(bare) for name in names})
    return frame.assign(**{name: frame[name].map(_known_type) for name in DTYPES if name in names})


def _known_type(cell: Any) -> Any:
    """A type as rows have it, which its errors are looked up by: in small letters, and by no framework's name
    (torch.bfloat16); any other cell as it is."""
    if not isinstance(cell, str):
        return cell
    return cell.lower() if cell.lower() in (*precisions(), NVFP4) else canonical(cell)


def why_no_shape(frame: pd.DataFrame, op: str, shape: Sequence[str]) -> pd.Series:
    """Return why rows of an operator have no shape, "" where they have: the numbers of ``shape``, all positive and
    whole, and so is the ``batch`` of a product, where one is given."""
    numbers, batch = frame[list(shape)], frame["batch"]
    why = pd.Series("", frame.index, dtype=object)
    if op in PRODUCTS:
        why[batch.notna() & ~((batch > 0) & (batch % 1 == 0))] = f"{op} whose batch is no positive whole number"
    if op == "bmm":
        why[batch.isna()] = "bmm without its batch"
    names = ", ".join(shape)
    why[(numbers % 1 != 0).any(axis=1)] = f"{op} whose {names} are not whole"
    why[(numbers <= 0).any(axis=1)] = f"{op} whose {names} are not positive"
    why[numbers.isna().any(axis=1)] = f"{op} without its {names}"
    return why


def product_of(row: Any, distances: Distances) -> Gemm:
    """The matrix product of a row of PRODUCTS, its operands where the protocol leaves them."""
    types = types_of(str(row.dtype))
    said = float(getattr(row, "batch", 1.0))
    batch = 1.0 if pd.isna(said) else said
    notes = notes_of(row).split(";")  # BLAS's transpositions, where a source states them
    layout: dict[str, Any] = {"a_along_k": "A=T" in notes, "b_along_k": "B=N" in notes}
    bare = Gemm(row.m, row.n, row.k, batch, *types, **layout)
    a, b, c = distances(bare.a_bytes, bare.b_bytes, bare.out_bytes)
    return replace(bare, a_distance=a, b_distance=b, out_distance=c)


@cache
def types_of(dtype: str) -> tuple[str, str, str, str]:
    """The types of A, B, the instructions and C that a product's ``dtype`` means; C has 16 bits where A and B have
    types of their own."""
    kind = canonical(dtype)
    if dtype not in precisions():
        return kind, kind, kind, blas_result(kind)
    named = precisions()[dtype]
    return named.activations, named.weights, data_types()[named.activations].multiplied_as, "bf16"


def attention_of(row: Any, **kernel: Any) -> Attention:
    """The attention of a row, its operands as warm as the L2 allows; ``kernel``: what else is known of its kernel.

    A row that does not say whether it is ``causal`` is, but for an encoder's. One token with a ``window`` attends
    that many keys; those stored in another type are widened. Raises InputError where the numbers make no attention.
    """
    if row.seq_kv < row.seq_q:
        raise InputError("fewer keys (seq_kv) than queries (seq_q); keys count the queries' own")
    heads = int(row.heads), int(row.kv_heads), int(row.head_dim)
    window, kv = int(given(row, "window", 0)), canonical(str(given(row, "kv_dtype", row.dtype)))
    keys = min(row.seq_kv, window) if window and row.seq_q == 1 else row.seq_kv
    values = {"v_dim": int(given(row, "v_head_dim", 0)), "latent": row.op == "mla_decode"}
    if row.op == "mla_prefill":
        values["written_dim"] = int(given(row, "kv_lora_rank", 0) + given(row, "rope_dim", 0))
    types = {"dtype": canonical(str(row.dtype)), "kv": kv}
    kernel |= {"causal": _causal(row)}
    bare = Attention(row.batch, *heads, row.seq_q, keys, window=window, **types, **values, **kernel)
    touched = bare.q_bytes + bare.out_bytes + bare.kv_bytes
    return replace(bare, q_distance=touched, kv_distance=touched, out_distance=touched)


def given(row: Any, column: str, otherwise: Any) -> Any:
    """What a row's cell says, ``otherwise`` where it is empty."""
    cell = getattr(row, column, otherwise)
    return otherwise if pd.isna(cell) else cell  # pyright: ignore[reportGeneralTypeIssues]


def _causal(row: Any) -> bool:
    said = masks_later(getattr(row, "causal", None))
    return row.op != ENCODER if said is None else said


def masks_later(causal: object) -> bool | None:
    """Return what a cell of the column ``causal`` says, None where it is empty; raises InputError where it is neither
    1, 0, true nor false."""
    if pd.isna(causal):  # pyright: ignore[reportGeneralTypeIssues]
        return None
    # As words: one wrong cell makes words of the whole column's numbers.
    said = str(causal).strip().lower()
    if said not in CAUSAL:
        raise InputError(f"causal is {causal!r}; 1 masks later keys, 0 masks none")
    return CAUSAL[said]


def notes_of_masks(rows: pd.DataFrame) -> list[str]:
    """Return how many prompts' attentions were taken as causal, since their rows do not say."""
    prompts = rows[rows["op"] == "attn_prefill"]
    unsaid = int(prompts["causal"].isna().sum()) if "causal" in prompts else len(prompts)
    if not unsaid:
        return []
    return [
        f"attn_prefill without causal ({unsaid} of {len(prompts)} rows): taken as causal (1 masks later keys, 0 "
        "masks none)"
    ]


def reduction_of(row: Any) -> Operator:
    """Return the all-reduce of a row, by latency and bandwidth of the links."""
    size = element_bytes(canonical(str(row.dtype))) * row.rows * row.cols
    return all_reduce_operator(ALL_REDUCE, size, int(row.tp), "kernel")


def measured_network(row: Any) -> Network | None:
    """Return the network that a row's group names, None where it names none that is known."""
    group = getattr(row, "group", None)
    return _network_called(group) if isinstance(group, str) else None


@cache
def _network_called(group: str) -> Network | None:
    try:
        return network_of(group)
    except InputError:
        return None


def framework_of(notes: str) -> str:
    """The release of a framework whose kernels the notes of a row name, "" where they name none."""
    named = FRAMEWORK.search(notes)
    return named[1] if named else ""


def notes_of(row: Any) -> str:
    """The notes of a row, "" where it has none."""
    notes = getattr(row, "notes", "")
    return notes if isinstance(notes, str) else ""


def attention_library(row: Any, warpgroup: bool, kinds: Collection[str]) -> AttentionLibrary:
    """Return the attention library that a row ran, of these ``kinds``; raises InputError where it has no model."""
    source, device = (str(getattr(row, name, "")) for name in ("source", "device"))
    return library_of(notes_of(row), source, warpgroup, kinds, device)

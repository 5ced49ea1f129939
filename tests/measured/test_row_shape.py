"""Rows of a measured table: shapes that are none, the cells of ``causal``."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.measured.row_shape import (
    PRODUCT_SHAPE,
    bare_names,
    framework_of,
    masks_later,
    notes_of_masks,
    why_no_shape,
)


@pytest.mark.parametrize(
    ("op", "row", "why"),
    [
        ("gemm", {}, ""),
        ("gemm", {"batch": np.nan}, ""),
        ("bmm", {"batch": np.nan}, "bmm without its batch"),
        *(("gemm", {"batch": b}, "gemm whose batch is no positive whole number") for b in (-4, 0, 0.5, 2.5, np.inf)),
        ("bmm", {"batch": 2.5}, "bmm whose batch is no positive whole number"),
        ("gemm", {"m": np.nan, "n": 0}, "gemm without its m, n, k"),
        *(("gemm", {"m": m}, "gemm whose m, n, k are not positive") for m in (0, -64)),
        *(("gemm", {"k": k}, "gemm whose m, n, k are not whole") for k in (64.5, np.inf)),
    ],
)
def test_shapes_of_products(op, row, why):
    frame = pd.DataFrame([{"batch": 2.0, "m": 64.0, "n": 64.0, "k": 64.0} | row])
    assert why_no_shape(frame, op, PRODUCT_SHAPE).tolist() == [why]


@pytest.mark.parametrize(
    ("cells", "masks"),
    [
        ((1, 1.0, True, "1", "1.0", "True", " true"), True),
        ((0, 0.0, False, "0", "False"), False),
        ((np.nan, None), None),
    ],
)
def test_cells_of_causal(cells, masks):
    assert {masks_later(cell) for cell in cells} == {masks}


@pytest.mark.parametrize("cell", [2, "no", "10", -1.0])
def test_other_cells_of_causal_are_refused(cell):
    with pytest.raises(InputError, match=f"causal is {cell!r}; 1 masks later keys, 0 masks none"):
        masks_later(cell)


def test_prompts_that_do_not_say_whether_they_are_causal_are_told():
    rows = pd.DataFrame({"op": ["attn_prefill", "attn_prefill", "attn_decode"], "causal": ["no", np.nan, np.nan]})
    (note,) = notes_of_masks(rows)
    assert note.startswith("attn_prefill without causal (1 of 2 rows): taken as causal")
    assert notes_of_masks(rows.drop(columns="causal"))[0].startswith("attn_prefill without causal (2 of 2 rows)")
    assert notes_of_masks(rows.assign(causal=0)) == notes_of_masks(rows[2:]) == []


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ("bfloat16", "bf16"),
        ("torch.float16", "fp16"),
        ("Half", "fp16"),
        ("FP8_E4M3", "fp8"),
        ("NVFP4", "nvfp4"),
        ("W8A8", "w8a8"),
        ("mxfp9", "mxfp9"),
    ],
)
def test_a_type_has_one_name_whichever_framework_s_is_given(given, row):
    frame = bare_names(pd.DataFrame({"dtype": [given, None], "kv_dtype": [None, given]}))
    assert frame["dtype"].fillna("").tolist() == [row, ""]
    assert frame["kv_dtype"].fillna("").tolist() == ["", row]


@pytest.mark.parametrize(
    ("notes", "release"),
    [
        ("impl=vllm-0.19.0/cutlass; A=row", "vllm-0.19.0"),
        ("impl=sglang-0.5.6.post2/sglang", "sglang-0.5.6"),
        ("impl=trtllm-1.3.0rc20/cublas", "trtllm-1.3.0"),
        ("impl=cublas", ""),
    ],
)
def test_a_release_is_its_numbers(notes, release):
    assert framework_of(notes) == release

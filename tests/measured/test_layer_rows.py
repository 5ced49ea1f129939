"""Operators of a layer by name, as LLMCompass's table has them: what each times, and rows that are none."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_sheet
from dse.measured.layer_rows import as_operators, link_us
from dse.measured.row_shape import reduction_of
from dse.reports.validate.page import validation_page_html
from dse.validation.time import validate_time

ROW = {"source": "llmcompass", "device": "A100-SXM4-80GB", "dtype": "fp16", "batch": 8.0, "heads": 24.0,
       "kv_heads": 24.0, "head_dim": 128.0, "seq_q": 2048.0, "seq_kv": 2048.0, "tp": 4.0, "latency_us": 1000.0,
       **dict.fromkeys(("m", "n", "k", "rows", "cols"), np.nan)}  # fmt: skip
NAMES = ("LayerNorm_MHA", "Q_K_V", "Q_mul_K", "Softmax", "A_mul_V", "Wo_proj", "AllReduce_MHA", "LayerNorm_FFN",
         "W1_proj", "GeLU", "W2_proj", "AllReduce_FFN")  # fmt: skip


def layer(**changes):
    """A row for each operator of GPT-3's layer on one of four GPUs."""
    return pd.DataFrame([ROW | {"op": f"layer_prefill:{name}"} | changes for name in NAMES])


def test_gpt3s_layer():
    frame = as_operators(layer()).set_index("layer_operator")
    for name, op, *shape in (
        ("Q_K_V", "gemm", 16384, 9216, 12288),
        ("Q_mul_K", "bmm", 2048, 2048, 128),
        ("A_mul_V", "bmm", 2048, 128, 2048),
        ("Wo_proj", "gemm", 16384, 12288, 3072),
        ("W1_proj", "gemm", 16384, 12288, 12288),
        ("W2_proj", "gemm", 16384, 12288, 12288),
    ):
        row = frame.loc[f"layer_prefill:{name}"]
        assert (row["op"], row["m"], row["n"], row["k"]) == (op, *shape)
    assert frame.loc["layer_prefill:Q_mul_K", "batch"] == 8 * 24
    for name, op, rows, cols in (
        ("Softmax", "softmax", 8 * 24 * 2048, 2048),
        ("LayerNorm_FFN", "layernorm", 16384, 12288),
        ("GeLU", "gelu", 16384, 12288),
        ("AllReduce_MHA", "all_reduce", 16384, 12288),
    ):
        row = frame.loc[f"layer_prefill:{name}"]
        assert (row["op"], row["rows"], row["cols"]) == (op, rows, cols)


def test_a_layers_rows_are_predicted(tmp_path):
    path = tmp_path / "layer.csv"
    wrong = [
        {"op": "layer_prefill:SUM"},
        {"op": "layer_decode:Dropout"},
        {"op": "layer_decode:Q_K_V", "heads": np.nan},
        {"op": "layer_prefill:AllReduce_FFN", "tp": 1.0},
    ]
    pd.concat([layer(), pd.DataFrame([ROW | change for change in wrong])]).to_csv(path, index=False)
    found = validate_time(path)
    counts = {g["op"]: g["n"] for g in found.document["groups"] if g["regime"] == "all"}
    assert counts == {"gemm": 4, "bmm": 2, "softmax": 1, "layernorm": 2, "gelu": 1, "all_reduce": 2}
    assert all(g["roofline3_mape"] is not None for g in found.document["groups"])
    reasons = list(found.document["rows_skipped"])
    assert any("SUM is the sum of the layer's operators" in reason for reason in reasons)
    assert any("no operator of a layer is called 'Dropout'" in reason for reason in reasons)
    assert any("layer_decode:Q_K_V without its batch, heads" in reason for reason in reasons)
    assert "all_reduce over other than 2 to 1,024 GPUs (tp)" in reasons
    assert {row["layer"] for row in found.document["worst"]} == {f"layer_prefill:{name}" for name in NAMES}
    said = " ".join(found.notes)
    assert "operators of a layer (12 rows) stand under what they time" in said
    assert "uncalibrated: " in said and "all_reduce fp16 of nvlink" in said
    assert "over 4 GPUs" in validation_page_html(found)


def test_an_all_reduce_follows_the_links(tmp_path):
    row = ROW | {"op": "all_reduce", "rows": 16384.0, "cols": 12288.0}
    path = tmp_path / "t.csv"
    pd.DataFrame([row, row | {"device": "H100-SXM5-80GB"}]).to_csv(path, index=False)
    time = validate_time(path).rows.set_index("device")["predicted_us"]
    sent = 2 * 3 / 4 * 2 * 16384 * 12288  # two-shot: 2 (p - 1) / p sizes
    a100 = load_sheet("a100_sxm_80gb")
    (one,) = pd.DataFrame([row]).itertuples()
    assert link_us(reduction_of(one), a100) == pytest.approx(sent / a100.numbers()["nvlink_gbs"] / 1e3)
    assert time["A100-SXM4-80GB"] > link_us(reduction_of(one), a100)
    assert 1.2 < time["A100-SXM4-80GB"] / time["H100-SXM5-80GB"] < 2  # 300 and 450 GB/s in a direction
    with pytest.raises(InputError, match="no row can be predicted: all_reduce without its rows, cols, tp"):
        pd.DataFrame([row | {"rows": np.nan}]).to_csv(path, index=False)
        validate_time(path)

"""Which measured rows have a time that can be predicted, and the sentence of those that have none."""

from typing import Any

import pandas as pd
import pytest

from dse.measured.coverage import DTYPES, SHAPES, uncovered
from dse.measured.network_runs.kinds import RUNS, WHY_NOT
from dse.measured.row_shape import ALL_REDUCE
from dse.measured.table import OPERATOR_COLUMNS

ROWS: dict[str, dict[str, Any]] = {
    "product": {"op": "gemm", "dtype": "bf16", "m": 8.0, "n": 64.0, "k": 64.0},
    "attention": {
        "op": "attn_prefill",
        "dtype": "fp16",
        "batch": 1.0,
        "heads": 8.0,
        "kv_heads": 2.0,
        "head_dim": 64.0,
        "seq_q": 32.0,
        "seq_kv": 32.0,
    },
    "vector": {"op": "rmsnorm", "dtype": "fp32", "rows": 8.0, "cols": 64.0},
    "reduction": {"op": ALL_REDUCE, "dtype": "bf16", "rows": 8.0, "cols": 64.0, "tp": 4.0},
}


def why(row: str, unknown: dict[str, str] | None = None, **changes: Any) -> str:
    """Return why a row with changes cannot be predicted."""
    frame = pd.DataFrame([{"device": "H100", "latency_us": 5.0} | ROWS[row] | changes])
    columns = list(dict.fromkeys([*frame.columns, *OPERATOR_COLUMNS, "tp", "source", "notes", "group"]))
    return uncovered(frame.reindex(columns=columns), unknown or {}, {"H100": 700.0}).iloc[0]


@pytest.mark.parametrize("row", ROWS)
def test_a_whole_row_is_covered(row: str) -> None:
    assert why(row) == ""


@pytest.mark.parametrize(
    ("row", "changes", "words"),
    [
        ("product", {"op": "gem"}, "no kernel is made yet for operator 'gem'; did you mean 'gemm'"),
        ("product", {"op": None}, "no kernel is made yet for operator 'nothing'"),
        ("product", {"dtype": "fp6"}, "no kernel is made for gemm in fp6 (accepted are fp32, tf32, bf16, fp16,"),
        ("attention", {"dtype": "int8"}, "no kernel is made for attn_prefill in int8"),
        ("attention", {"kv_heads": 3.0}, "attention whose heads are no multiple of its kv_heads"),
        ("vector", {"dtype": "int8"}, "no kernel is made for rmsnorm in int8"),
        ("reduction", {"tp": 1.0}, "over other than 2 to 1,024 GPUs"),
        ("reduction", {"tp": 2048.0}, "over other than 2 to 1,024 GPUs"),
    ],
)
def test_what_is_missing_is_said(row: str, changes: dict[str, Any], words: str) -> None:
    assert words in why(row, **changes)


@pytest.mark.parametrize("name", ["m", "n", "k"])
def test_a_shape_needs_each_of_its_numbers(name: str) -> None:
    assert name in why("product", **{name: None})
    assert name in why("product", **{name: 0.0})


def test_a_device_that_is_unknown_says_so_before_anything_else() -> None:
    assert why("product", {"H100": "device 'H100' is no GPU"}, dtype="fp6") == "device 'H100' is no GPU"


@pytest.mark.parametrize("op", WHY_NOT)
def test_runs_that_are_not_predicted_say_why(op: str) -> None:
    assert why("product", op=op) == WHY_NOT[op]


def test_every_operator_has_types_and_a_shape() -> None:
    assert set(DTYPES) == set(SHAPES) >= set(RUNS)


@pytest.mark.parametrize(("device", "alone"), [("RTXPRO6000-BW", True), ("H100", False)])
def test_rows_of_a_fallback_are_left_alone_where_it_ran(device: str, alone: bool) -> None:
    row = {"op": "dsv4_csa_decode_module", "dtype": "bf16", "heads": 8.0, "seq_q": 1.0, "seq_kv": 100.0}
    said = why("attention", device=device, notes="impl=sglang-0.5.14/x; compress=4", **row)
    assert ("fallback serves requests one after the other" in said) == alone

"""``dse validate --quantity time``: the document's shape, every row accounted for, notes, refusals."""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError, accepted
from dse.cli import run_command
from dse.measured.coverage import SHAPES, listed_types
from dse.reports.validate.page import validation_page_html
from dse.validation.time import validate_time
from tests.calibration.timing.products import DEVICE, products

KEYS = {"device", "op", "dtype", "regime", "n", "mape", "bias", "log_ratio", "inlier_10", "inlier_20", "roofline_mape",
        "roofline3_mape", "noise_floor", "interval_80_coverage"}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Forty products, an attention row, a product in fp8 (never fitted), and one row for each reason to skip."""
    frame = products(40).assign(latency_us=lambda t: 3 + 2e-6 * t["m"] * t["n"] * t["k"] / 700)
    gemm = {"m": 64, "n": 64, "k": 64, "latency_us": 5.0, "source": "aiconfigurator", "device": DEVICE, "op": "gemm"}
    attention = {
        "op": "attn_prefill",
        "batch": 1,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "seq_q": 1024,
        "seq_kv": 1024,
        "latency_us": 60.0,
        "dtype": "bf16",
    }
    more = [
        gemm | attention,
        gemm | {"dtype": "fp8"},
        gemm | {"op": "conv", "dtype": "bf16"},
        gemm | {"op": "GEMM", "dtype": "bf16"},
        gemm | {"dtype": "int3"},
        gemm | {"dtype": "bf16", "m": 64.5},
        gemm | {"dtype": "bf16", "m": 1e9, "latency_us": 1e6},
        gemm | attention | {"kv_heads": 5},
        gemm | {"dtype": "bf16", "k": np.nan},
        gemm | {"dtype": "bf16", "device": "TPU"},
        gemm | {"dtype": "fp8", "device": "A100-SXM4-80GB"},
        gemm | {"dtype": "bf16", "latency_us": np.nan},
        gemm | attention | {"op": "attn_decode", "head_dim": 2048, "seq_q": 1},
    ]
    path = tmp_path_factory.mktemp("time") / "t.csv"
    pd.concat([frame, pd.DataFrame(more)]).to_csv(path, index=False)
    return path


def test_document(table, capsys):
    assert run_command(["validate", str(table), "--json"]) == 0  # without power: time
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    told = {"table", "table_sha256", "quantity", "model", "calibrations", "notes", "doubts"}
    assert set(document) == {"groups", "worst", "rows_skipped"} | told
    assert (document["table"], document["quantity"], document["doubts"]) == (str(table), "time", [])
    assert document["table_sha256"] == hashlib.sha256(table.read_bytes()).hexdigest()
    assert document["calibrations"] and all(f"dse: {note}" in printed.err for note in document["notes"])
    assert all(set(g) == KEYS for g in document["groups"])
    whole = {(g["op"], g["dtype"]): g for g in document["groups"] if g["regime"] == "all"}
    assert {key: g["n"] for key, g in whole.items()} == {
        ("gemm", "bf16"): 40,
        ("attn_prefill", "bf16"): 1,
        ("gemm", "fp8"): 1,
    }
    parts = [g for g in document["groups"] if (g["op"], g["dtype"]) == ("gemm", "bf16") and g["regime"] != "all"]
    assert sum(g["n"] for g in parts) == 40
    assert 0 <= whole["attn_prefill", "bf16"]["interval_80_coverage"] <= 100
    assert whole["gemm", "fp8"]["interval_80_coverage"] is not None  # judged in this way of measuring, never fitted
    assert 0 <= whole["gemm", "bf16"]["interval_80_coverage"] <= 100
    assert document["rows_skipped"] == {
        "no latency_us": 1,
        "device 'TPU' has no preset; give one with --gpu": 1,
        f"no kernel is made yet for operator 'conv'; {accepted('conv', SHAPES)}": 1,
        "no kernel is made yet for operator 'GEMM'; did you mean 'gemm' or 'gemm_bias'?": 1,
        f"no kernel is made for gemm in int3 (accepted are {', '.join(listed_types('gemm'))})": 1,
        "gemm whose m, n, k are not whole": 1,
        "gemm: operands of more than 80 GB, the memory of H100 SXM5 80GB": 1,
        "attention whose heads are no multiple of its kv_heads": 1,
        "gemm without its m, n, k": 1,
        "A100 SXM4 80GB has no tensor cores for fp8": 1,
        "H100 SXM5 80GB runs none of the kernels of attn_decode bf16 with heads of 2048": 1,
    }
    assert len(document["worst"]) == 20
    for row in document["worst"]:
        assert sum(row["stack_us"].values()) == pytest.approx(row["predicted_us"], rel=1e-3)
    assert all(g["noise_floor"] is None for g in document["groups"])  # the table has no repeats
    assert "uncalibrated: gemm fp8" not in printed.err  # of an unknown release: the nearest one's costs
    assert "calibration h100_sxm" in printed.err


@pytest.mark.slow
def test_a_gpu_for_devices_without_a_preset_and_other_models(table, capsys):
    document = validate_time(table, gpu="h100_sxm", calibration="shared").document
    assert {g["device"] for g in document["groups"]} == {DEVICE, "TPU"}
    assert not any("TPU" in reason for reason in document["rows_skipped"])
    roofline = validate_time(table, timing="roofline")
    assert all(g["interval_80_coverage"] is None for g in roofline.document["groups"])
    cold = validate_time(table, harness="unknown").document["groups"][0]
    assert cold["mape"] != document["groups"][0]["mape"]
    assert run_command(["validate", str(table), "--quantity", "time"]) == 0
    assert "farthest off" in capsys.readouterr().out


def products_of(path, count, **changes):
    """A table of the first ``count`` products, with changed columns."""
    products(40).head(count).assign(latency_us=lambda t: 3 + t["m"] * t["n"] * t["k"] / 3e8, **changes).to_csv(path)
    return path


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_small_tables_have_numbers_or_reasons(tmp_path, capsys, count):
    path, page = products_of(tmp_path / "t.csv", count), tmp_path / "t.html"
    assert run_command(["validate", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    groups = json.loads(printed.out)["groups"]
    assert all((g["roofline3_mape"] is None) == (count < 4) for g in groups)
    reason = f"{'1 row is' if count == 1 else f'{count} rows are'} predicted and its three numbers need 4"
    assert (reason in printed.err) == (count < 4)
    assert run_command(["validate", str(path), "-o", str(page)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    body = page.read_text(encoding="utf-8").partition("<script")[0]
    assert (reason in said) == (count < 4)
    assert (reason in page.read_text(encoding="utf-8")) == (count < 4)
    whole = next(line for line in said.split("gemm bf16 ")[1:] if line.startswith("all"))
    assert (whole.split()[5] == "-") == (count < 4)  # regime, rows, error, bias, sheet, fitted
    for wrong in ("nan", "None", "inf "):
        assert wrong not in said and wrong not in body


def test_few_rows_of_an_operator_take_the_numbers_of_the_device(table, tmp_path):
    found = validate_time(table)
    assert all(g["roofline3_mape"] is not None for g in found.document["groups"])
    (note,) = [note for note in found.notes if note.startswith("fitted roofline")]
    assert note.endswith(f"attn_prefill bf16 on {DEVICE} (to the device), gemm fp8 on {DEVICE} (to all data types)")
    one = validate_time(products_of(tmp_path / "t.csv", 8, n=1024.0, k=1024.0))
    assert one.document["groups"][0]["roofline3_mape"] is not None
    (note,) = [note for note in one.notes if note.startswith("fitted roofline")]
    assert "a training error, with no other shape family" in note


def test_rows_of_another_type_leave_the_fitted_roofline_as_it_was(tmp_path):
    one, both = products_of(tmp_path / "one.csv", 12), tmp_path / "both.csv"
    other = pd.read_csv(one).assign(dtype="fp8", latency_us=lambda t: 9 * t["latency_us"])
    pd.concat([pd.read_csv(one), other]).to_csv(both, index=False)
    alone, beside = (
        next(g for g in validate_time(path).document["groups"] if g["dtype"] == "bf16") for path in (one, both)
    )
    assert alone["roofline3_mape"] == beside["roofline3_mape"]


def test_options_that_no_row_heeds(table, tmp_path):
    with pytest.raises(InputError, match=r"--engine: .* has no run of a whole network"):
        validate_time(table, engine="vllm_2024")
    run = {"device": DEVICE, "dtype": "bf16", "group": "x_Meta-Llama-3-8B", "op": "llm_e2e", "batch": 8, "seq_q": 256,
           "seq_kv": 64, "tp": 1, "latency_us": 1e6, "source": "x"}  # fmt: skip
    runs, both = tmp_path / "runs.csv", tmp_path / "both.csv"
    pd.DataFrame([run]).to_csv(runs, index=False)
    with pytest.raises(InputError, match=r"--harness: .* has only runs of whole networks"):
        validate_time(runs, harness="vidur")
    pd.concat([pd.DataFrame([run]), pd.read_csv(table).head(2)]).to_csv(both, index=False)
    found = validate_time(both, harness="vidur", engine="vllm_2024")
    assert any(note.startswith("--harness vidur holds for the rows of kernels") for note in found.notes)
    assert not any("--harness" in note for note in validate_time(both).notes)
    stacks = {row["op"]: row["stack_us"] for row in found.document["worst"]}
    assert "host" in stacks["llm_e2e"] and "overhead" not in stacks["llm_e2e"]
    assert "overhead" in stacks["gemm"] and "host" not in stacks["gemm"]


def test_times_in_another_unit_are_told(table, tmp_path):
    path = tmp_path / "ms.csv"
    frame = pd.read_csv(table)
    frame.assign(latency_us=frame["latency_us"] / 1e3).to_csv(path, index=False)
    assert any("is latency_us in microseconds?" in note for note in validate_time(path).notes)
    assert not any("microseconds" in note for note in validate_time(table).notes)
    frame.assign(latency_us=frame["latency_us"].where(frame.index > 0, 1e3 * frame["latency_us"])).to_csv(
        path, index=False
    )
    (doubt,) = validate_time(path).doubts
    assert re.match(r"1 of \d+ rows are more than 30 times off, first gemm bf16 m=.*: is latency_us in micros", doubt)


def test_a_calibration_of_another_gpu_was_not_fitted_on_the_rows(table, tmp_path):
    frame = pd.read_csv(table)
    frame[frame["device"] == "H100-SXM5-80GB"].to_csv(tmp_path / "h100.csv", index=False)
    notes = validate_time(tmp_path / "h100.csv", gpu="a100_sxm_80gb").notes
    assert not any("partly a training error" in note for note in notes)


def test_devices_of_the_table_that_a_calibration_was_not_fitted_on_are_named(tmp_path):
    path = products_of(tmp_path / "t.csv", 8, device=["A100-SXM4-80GB"] * 4 + [DEVICE] * 4)
    found = validate_time(path, calibration="h100_sxm")
    elsewhere = "calibration h100_sxm was fitted on h100_sxm, not on A100 SXM4 80GB: no interval of gemm bf16"
    said = [note for note in found.notes if "fitted on h100_sxm" in note]
    assert said == [f"A100-SXM4-80GB: {elsewhere}"]
    assert not any("uncalibrated" in note for note in found.notes)
    assert elsewhere in validation_page_html(found)
    assert not any("fitted on h100_sxm" in note for note in validate_time(path).notes)


def test_rows_of_no_device_are_counted_and_predicted_with_a_gpu(table, tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.read_csv(table).iloc[:6]
    frame.assign(device=[DEVICE] * 4 + [np.nan] * 2).to_csv(path, index=False)
    assert validate_time(path).document["rows_skipped"] == {"device '(empty)' has no preset; give one with --gpu": 2}
    groups = validate_time(path, gpu="h100_sxm").document["groups"]
    assert {g["device"]: g["n"] for g in groups if g["regime"] == "all"} == {DEVICE: 4, "(empty)": 2}


def test_what_is_assumed_and_left_out_of_rows_is_told(tmp_path):
    repeats = {"rep_n": [5, 5, 5, 5, np.inf], "rep_lo_us": 1.0, "rep_hi_us": 1e6}
    prompt = {"device": DEVICE, "op": "attn_prefill", "dtype": "bf16", "batch": 1, "heads": 32, "kv_heads": 8,
              "head_dim": 128, "seq_q": 1024, "seq_kv": 1024, "latency_us": 60.0}  # fmt: skip
    frame = pd.read_csv(products_of(tmp_path / "t.csv", 5, **repeats))
    notes = ["", "", "", "", "busy_us=1.2.3"]
    prompts = pd.DataFrame([prompt | {"causal": cell} for cell in ("1", "0", "", "true", "no")])
    pd.concat([frame.assign(notes=notes), prompts]).to_csv(tmp_path / "t.csv", index=False)
    found = validate_time(tmp_path / "t.csv")
    assert found.document["rows_skipped"] == {
        "attn_prefill: causal is 'no'; 1 masks later keys, 0 masks none": 1,
        "gemm: notes say busy_us=1.2.3; give microseconds from 0 on": 1,
    }
    assert found.notes[-2:] == (
        "attn_prefill without causal (1 of 4 rows): taken as causal (1 masks later keys, 0 masks none)",
        "noise floor, repeats left out: rep_n is no whole number (1)",
    )


def test_refusals(table, tmp_path):
    for change, words in (
        ({"harness": "mine"}, "no harness is called 'mine'"),
        ({"calibration": "mine"}, "no calibration is called 'mine'"),
        ({"gpu": "mine"}, "no GPU is called 'mine'"),
        ({"timing": "mine"}, "no model is called 'mine'"),
        ({"timing": "roofline", "calibration": "shared"}, "roofline cannot be calibrated"),
    ):
        with pytest.raises(InputError, match=words):
            validate_time(table, **change)
    none = tmp_path / "none.csv"
    pd.read_csv(table).assign(op="conv").to_csv(none, index=False)
    with pytest.raises(InputError, match="no row can be predicted: no latency_us"):
        validate_time(none)
    assert run_command(["validate", str(none)]) == 2
    assert run_command(["validate", str(table), "--quantity", "power", "--gpu", "h100_sxm"]) == 2
    assert run_command(["validate", str(table), "--quantity", "time", "--time", "model"]) == 2


@pytest.mark.parametrize(("source", "told"), [("vidur", True), ("aiconfigurator", False)])
def test_boards_that_are_not_what_their_table_says_are_told(tmp_path, source, told):
    row = {"source": source, "group": "", "device": "A100-SXM4-80GB", "op": "gemm", "dtype": "fp16", "latency_us": 90.0}
    path = tmp_path / "t.csv"
    pd.DataFrame([row | {"m": 512, "n": 4096, "k": 4096}]).to_csv(path, index=False)
    note = "A100-SXM4-80GB: rows of vidur are timed as of boards with tdp_w = 300, not as named"
    assert (note in validate_time(path).document["notes"]) == told

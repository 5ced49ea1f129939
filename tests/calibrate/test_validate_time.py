"""``dse validate --quantity time``: the document's shape, every row accounted for, notes, refusals."""

import json

import numpy as np
import pandas as pd
import pytest

from dse.calibrate.sheet_roofline import fitted_roofline
from dse.calibrate.validate_time import validate_time
from dse.cli import run_command
from dse.errors import InputError
from dse.timing.calibration import HELD_BACK, load_timing_calibration
from tests.calibrate.test_timing_fit import DEVICE, products

KEYS = {"device", "op", "dtype", "regime", "n", "mape", "bias", "log_ratio", "inlier_10", "inlier_20", "roofline_mape",
        "roofline3_mape", "noise_floor", "interval_80_coverage"}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Forty products, an attention row, a product in fp8 (never fitted), and one row for each reason to skip."""
    frame = products(40).assign(latency_us=lambda t: 3 + 2e-6 * t["m"] * t["n"] * t["k"] / 700)
    gemm = {"m": 64, "n": 64, "k": 64, "latency_us": 5.0, "source": "aiconfigurator", "device": DEVICE, "op": "gemm"}
    attention = {"op": "attn_prefill", "batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128, "seq_q": 1024,
                 "seq_kv": 1024, "latency_us": 60.0, "dtype": "bf16"}  # fmt: skip
    more = [
        gemm | attention,
        gemm | {"dtype": "fp8"},
        gemm | {"op": "conv", "dtype": "bf16"},
        gemm | {"dtype": "int3"},
        gemm | {"dtype": "bf16", "k": np.nan},
        gemm | {"dtype": "bf16", "device": "TPU"},
        gemm | {"dtype": "fp8", "device": "A100-SXM4-80GB"},
        gemm | {"dtype": "bf16", "latency_us": np.nan},
    ]
    path = tmp_path_factory.mktemp("time") / "t.csv"
    pd.concat([frame, pd.DataFrame(more)]).to_csv(path, index=False)
    return path


def test_document(table, capsys):
    assert run_command(["validate", str(table), "--json"]) == 0  # without power: time
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert set(document) == {"groups", "worst", "rows_skipped"}
    assert all(set(g) == KEYS for g in document["groups"])
    whole = {(g["op"], g["dtype"]): g for g in document["groups"] if g["regime"] == "all"}
    assert {key: g["n"] for key, g in whole.items()} == {
        ("gemm", "bf16"): 40, ("attn_prefill", "bf16"): 1, ("gemm", "fp8"): 1,
    }  # fmt: skip
    parts = [g for g in document["groups"] if (g["op"], g["dtype"]) == ("gemm", "bf16") and g["regime"] != "all"]
    assert sum(g["n"] for g in parts) == 40
    assert 0 <= whole["attn_prefill", "bf16"]["interval_80_coverage"] <= 100
    assert whole["gemm", "fp8"]["interval_80_coverage"] is not None  # judged in this way of measuring, never fitted
    assert 0 <= whole["gemm", "bf16"]["interval_80_coverage"] <= 100
    assert document["rows_skipped"] == {
        "no latency_us": 1,
        "device 'TPU' has no preset; give one with --gpu": 1,
        "no kernel is made yet for operator 'conv'": 1,
        "no kernel is made for gemm in int3": 1,
        "gemm without its m, n, k": 1,
        "A100 SXM4 80GB has no tensor cores for fp8": 1,
    }
    assert len(document["worst"]) == 20
    for row in document["worst"]:
        assert sum(row["stack_us"].values()) == pytest.approx(row["predicted_us"], rel=1e-3)
    assert all(g["noise_floor"] is None for g in document["groups"])  # the table has no repeats
    assert "uncalibrated: gemm fp8 of matrix (" in printed.err
    assert "calibration h100_sxm" in printed.err


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


def test_rows_of_no_device_are_counted_and_predicted_with_a_gpu(table, tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.read_csv(table).iloc[:6]
    frame.assign(device=[DEVICE] * 4 + [np.nan] * 2).to_csv(path, index=False)
    assert validate_time(path).document["rows_skipped"] == {"device '(empty)' has no preset; give one with --gpu": 2}
    groups = validate_time(path, gpu="h100_sxm").document["groups"]
    assert {g["device"]: g["n"] for g in groups if g["regime"] == "all"} == {DEVICE: 4, "(empty)": 2}


def test_the_fitted_roofline_finds_its_own_numbers():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"compute_us": rng.lognormal(3, 2, 200), "memory_us": rng.lognormal(3, 2, 200)})
    rows["latency_us"] = 4.0 + np.maximum(rows["compute_us"] / 0.7, rows["memory_us"] / 0.8)
    found = fitted_roofline(rows, np.arange(200) % 10)
    np.testing.assert_allclose(found, rows["latency_us"], rtol=1e-3)


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


def test_fp32_products_of_a_board_with_few_watts_have_the_interval_of_such_boards(tmp_path):
    columns = "source,device,op,dtype,batch,m,n,k,rows,cols,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us"
    rows = [
        f"neusight,{d},bmm,fp32,64,512,512,64,,,,,,,,{us}" for d in ("T4", "V100-PCIE-32GB", "L4") for us in (900, 950)
    ]
    table = tmp_path / "t.csv"
    table.write_text("\n".join([columns, *rows]) + "\n")
    found = validate_time(table)
    covered = {g["device"]: g["interval_80_coverage"] for g in found.document["groups"] if g["regime"] == "all"}
    assert all(share is not None for share in covered.values())
    assert {note.split(":")[0] for note in found.notes if "fewer watts" in note} == {"T4", "L4"}
    known = load_timing_calibration("shared")
    asked = ("matrix_simt", "bmm", "fp32", "compute_above_50us")
    l4 = known.residual(*asked, "l4", "neusight", HELD_BACK)
    t4, v100 = (known.residual(*asked, gpu, "neusight") for gpu in ("t4", "v100_pcie_32gb"))
    assert l4 is not None and t4 is not None and v100 is not None
    assert (l4.gpu, t4.gpu, v100.gpu) == (HELD_BACK, "t4", "v100_pcie_32gb")
    assert l4.q50 < v100.q50  # measured times are longer

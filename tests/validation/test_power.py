"""``validate`` and ``calibrate power`` as a user meets them: documents, skipped rows, refusals."""

import json

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.power.answer import calibrate_power
from dse.calibration.power.board import FOLDS, _as_constant, _Fit, _folds, _no_better
from dse.cli import run_command
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import watts_of
from dse.measured.coverage import listed_types
from dse.measured.power_rows import load_rows
from dse.measured.table import read_operators
from dse.power.board import BoardPower
from dse.power.calibration import calibrated_board
from dse.timing.calibration import load_timing_calibration
from dse.validation.power import compared, validate_power
from tests.calibration.tables import kernel_table, operator_table


def test_answers_by_device_and_operator_with_short_runs_apart(tmp_path):
    answer = validate_power(operator_table(tmp_path / "t.csv"))
    (row,) = answer["device"]
    assert (row["device"], row["op"], row["n"]) == ("H200-SXM-141GB", "gemm", 2)
    assert abs(row["power_bias"]) <= row["power_mape"] < 15
    assert answer["short"]["all"]["n"] == 1
    assert answer["skipped"] == []
    own = validate_power(tmp_path / "t.csv", "model")
    assert own["time"] != answer["time"]
    assert own["all"]["power_mape"] != answer["all"]["power_mape"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"device": ["H200-SXM-141GB", "TPU", "H200-SXM-141GB"]}, "device 'TPU' has no preset; give one with --gpu"),
        (
            {"dtype": ["bf16", "int3", "bf16"]},
            f"no kernel is made for gemm in int3 (accepted are {', '.join(listed_types('gemm'))})",
        ),
        ({"op": ["gemm", "rope", "gemm"], "rows": 4096, "cols": 4096}, "board power is not compared for rope"),
        ({"op": ["gemm", "llm_e2e", "gemm"]}, "llm_e2e: batch is empty; give a whole number from 1 to 10,000,000"),
        ({"k": [8192, None, 8192]}, "gemm without its m, n, k"),
    ],
)
def test_uncovered_rows_are_counted_with_the_reason(tmp_path, columns, reason):
    answer = validate_power(operator_table(tmp_path / "t.csv", **columns))
    assert answer["skipped"] == [{"reason": reason, "n": 1}]
    assert answer["all"]["n"] == 1


@pytest.mark.slow
def test_a_gpu_of_ones_own_stands_for_a_device_without_a_preset(tmp_path):
    gpu = tmp_path / "mine.toml"
    gpu.write_text('base = "h200"\ntdp_w = 500\n')
    path = operator_table(tmp_path / "t.csv", device=["H200-SXM-141GB", "Mine", "Mine"])
    answer = validate_power(path, gpu=str(gpu))
    assert {row["device"]: row["n"] for row in answer["device"] + answer["short"]["device"]} == {
        "H200-SXM-141GB": 1,
        "Mine": 1,
    }
    whole = validate_power(operator_table(tmp_path / "u.csv"), gpu=str(gpu))
    assert whole["note"] == ""  # no row is judged as the H200 of the fit
    assert whole["all"]["power_bias"] < validate_power(tmp_path / "u.csv")["all"]["power_bias"]  # 500 W for 700


ATTENTION = {
    "op": "attn_prefill",
    "batch": 4,
    "heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "seq_q": 4096,
    "seq_kv": 4096,
}


def test_power_of_attention_is_predicted_without_warpgroup_instructions(tmp_path):
    answer = validate_power(operator_table(tmp_path / "t.csv", device="A100-SXM4-80GB", **ATTENTION))
    assert (answer["all"]["n"], answer["short"]["all"]["n"], answer["skipped"]) == (2, 1, [])


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"seq_kv": [4096, 512, 4096]},
            "attn_prefill in bf16: fewer keys (seq_kv) than queries (seq_q); keys count the",
        ),
        ({"causal": [1, 2, 0]}, "attn_prefill in bf16: causal is 2; 1 masks later keys, 0 masks none"),
    ],
)
def test_attention_that_makes_no_sense_is_counted(tmp_path, columns, reason):
    answer = validate_power(operator_table(tmp_path / "t.csv", **(ATTENTION | columns)))
    (skipped,) = answer["skipped"]
    assert skipped["reason"].startswith(f"H200 SXM 141GB: {reason}")
    assert (skipped["n"], answer["all"]["n"]) == (1, 1)


def test_watts_of_kernels_are_at_the_times_of_the_gpus_calibration(tmp_path):
    path = operator_table(tmp_path / "t.csv")
    judged, _ = compared(read_operators(path), "model", BoardPower.from_table())
    rows = load_rows(read_operators(path).frame, load_sheet("h200"), Skipped(), load_timing_calibration("h200").model)
    assert rows is not None
    own = watts_of(BoardPower.from_table(), rows, own_time=True)
    assert judged["predicted_w"].to_numpy() == pytest.approx(own)
    bare = load_rows(read_operators(path).frame, load_sheet("h200"), Skipped())
    assert bare is not None
    assert rows.own_timing.microseconds.tolist() != pytest.approx(bare.own_timing.microseconds.tolist(), rel=1e-3)


def test_runs_of_whole_networks_are_no_kernels_to_fit(tmp_path):
    path = operator_table(tmp_path / "t.csv", op="llm_prefill", latency_us=1e6)
    with pytest.raises(InputError, match=r"no row can be fitted: a run of a whole network: no kernel \(3\)"):
        calibrate_power(path)
    with pytest.raises(InputError, match=r"--variant hw: .* holds operators, not kernels with components"):
        calibrate_power(path, "hw")
    with pytest.raises(InputError, match=r"--gpu: .* holds kernels with the components of AccelWattch"):
        calibrate_power(kernel_table(tmp_path / "k.csv"), gpu="h200")


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_no_fold_is_without_a_family(count):
    folds = _folds(pd.Series([f"g{i}_1024" for i in range(count)] * 2))
    assert set(folds) == set(range(min(count, FOLDS)))
    assert (folds[:count] == folds[count:]).all()


def test_refusals(tmp_path):
    path = operator_table(tmp_path / "t.csv")
    with pytest.raises(InputError, match="no time is called 'mine'"):
        validate_power(path, "mine")
    with pytest.raises(InputError, match=r"no row can be compared: device 'TPU' has no preset; .* \(3\)"):
        validate_power(operator_table(tmp_path / "u.csv", device="TPU"))


@pytest.mark.slow
def test_calibrate_a_board(tmp_path, capsys):
    path = operator_table(tmp_path / "t.csv")
    frame = pd.read_csv(path)
    pd.concat([frame.assign(n=frame.n + 64 * i, power_w=frame.power_w - i) for i in range(4)]).to_csv(path, index=False)
    assert run_command(["calibrate", "power", str(path), "-o", str(tmp_path / "c.toml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"] == "board"
    assert document["n"] == 8
    assert "dram_path" in document["not_identified"]  # products at the limit say nothing of DRAM
    model = calibrated_board(tmp_path / "c.toml")
    assert float(model.pipeline) > 0  # pyright: ignore
    assert run_command(["run", "h200", "gpt2_xl", "--power", str(tmp_path / "c.toml"), "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert ran["power_calibration"] == model.calibration == f"{document['calibration']} (c.toml)"
    assert (
        run_command(["validate", str(path), "--quantity", "power", "--calibration", str(tmp_path / "c.toml"), "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["calibration"] == model.calibration
    assert 0 < model.error_interval.low < model.error_interval.high and model.error_interval.gpus == ("h200",)  # pyright: ignore


def test_a_fit_of_watts_that_is_worth_nothing_says_so():
    models = [
        {"name": name, "headline": name == "board", "leave_families_out": off}
        for name, off in (("board", 18.65), ("priors alone", 18.09), ("mean", 14.59))
    ]
    (note,) = _no_better(models)
    assert note.startswith("on families left out the fit is 18.6 % off, mean 14.6 %: ")
    assert _no_better([models[0] | {"leave_families_out": 9.0}, *models[1:]]) == []


@pytest.mark.parametrize(
    ("constant", "below", "said"),
    [
        (1.1, [True, True, False], "(2 rows) the fit is 20.0 % off, a constant 10.0 %: "),
        (1.3, [True, True, False], ""),
        (1.1, [True] * 3, ""),
        (1.1, [False] * 3, ""),
    ],
)
def test_a_constant_is_told_only_where_it_is_as_near_away_from_the_limit(constant, below, said):
    left_out = {"board": np.array([1.2, 0.8, 1.0]), "mean": np.array([constant, 2 - constant, 5.0])}
    found = _Fit({name: (ratios, ratios) for name, ratios in left_out.items()}, 1.0, np.zeros(0))
    notes = _as_constant(found, np.array(below))
    assert (said in notes[0] and len(notes) == 1) if said else notes == []

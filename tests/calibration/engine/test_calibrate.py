"""``dse calibrate engine``: known costs are found again, written, read, and used; what runs do not tell is named."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.engine import calibrate as engine
from dse.calibration.engine import fit as engine_fit
from dse.calibration.engine.answer import Errors
from dse.calibration.engine.calibrate import TWICE, calibrate_engine, left_out_interval
from dse.calibration.engine.fit import Runs, measured_runs
from dse.cli import run_command
from dse.hardware.presets import load_sheet
from dse.measured.network_runs.rows import network_rows, predicted_runs
from dse.measured.table import read_times
from dse.timing.calibration import load_timing_calibration
from dse.validation.time import validate_time
from dse.workload.serving_engine import COSTS, SHARED, engines, find_engine

LIKE = engines()["vllm_2024"]
DEVICE = "H100-SXM5-80GB"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Runs of two networks that take exactly what an engine and the H100's calibration say."""
    shapes = [(b, q, o, tp) for b in (1, 8, 32) for q, o in ((128, 64), (512, 256)) for tp in (1, 2)]
    frame = pd.DataFrame(shapes * 2, columns=["batch", "seq_q", "seq_kv", "tp"]).astype(float)
    frame["group"] = ["x_Llama-2-7b-hf"] * len(shapes) + ["x_Meta-Llama-3-8B"] * len(shapes)
    frame = frame.assign(device=DEVICE, op="llm_e2e", dtype="bf16", latency_us=1.0)
    rows = network_rows(frame, load_sheet(DEVICE), Skipped(), LIKE)
    assert rows is not None
    times = predicted_runs(load_timing_calibration("h100_sxm").model, rows)[0]["predicted_us"]
    path = tmp_path_factory.mktemp("engine") / "runs.csv"
    frame.assign(latency_us=times).to_csv(path, index=False)
    return path


def test_known_costs_come_back(table, tmp_path, capsys):
    out = tmp_path / "mine.toml"
    assert (
        run_command(["calibrate", "engine", "mine", str(table), "--like", "vllm_2024", "-o", str(out), "--json"]) == 0
    )
    document = json.loads(capsys.readouterr().out)
    costs = {cost["name"]: cost for cost in document["costs"]}
    for name in ("step_us", "request_us", "reduce_us"):
        assert costs[name]["value"] == pytest.approx(getattr(LIKE, name), rel=0.02)
        assert costs[name]["determined"]
    assert {name for name, cost in costs.items() if not cost["determined"]} == {"launch_us", "prompt_us", "turn"}
    assert document["mape"]["fitted"] < 0.1 < 5 < document["mape"]["kernels_alone"]
    mine = find_engine(str(out))
    assert (mine.name, mine.turn, mine.library) == ("mine", LIKE.turn, LIKE.library)
    assert mine.step_us == pytest.approx(costs["step_us"]["value"], rel=1e-5)
    networks = sorted(set(pd.read_csv(table)["group"]))
    told = ", ".join(networks) if len(networks) <= 3 else f"{len(networks)} networks"
    assert mine.title == f"mine, fitted to {document['rows']} runs of {told}"  # its interval is said of these
    assert run_command(["calibrate", "engine", "mine", str(table)]) == 0
    assert "no token of a server" in " ".join(capsys.readouterr().out.split())


def test_runs_left_out_move_no_cost(table, monkeypatch):
    """Of fits that end where their loss says, instead of where it is least: what it sees moves them."""
    monkeypatch.setattr(engine_fit, "quasi_newton", lambda loss, start: (start + loss(start),))
    monkeypatch.setattr(engine, "DRAWS", 2)
    read = read_times(table)
    runs = Runs(measured_runs(read, Skipped(), LIKE))
    measured, out = runs.table["latency_us"], runs.table["out"].to_numpy()
    assert 0 < out.sum() < len(out) / 2

    def found(times):
        runs.table = runs.table.assign(latency_us=measured * times)
        return engine._answer("mine", LIKE, (read,), runs, False, Skipped(), ())

    plain, spoilt, moved = (found(times) for times in (1.0, np.where(out, 1.5, 1.0), np.where(out, 1.0, 1.5)))
    assert spoilt.costs == plain.costs != moved.costs
    assert spoilt.errors.fitted == plain.errors.fitted
    assert spoilt.errors.left_out != plain.errors.left_out


def test_an_engine_like_that_of_a_file_stands_by_itself(table, tmp_path):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    calibrate_engine("first", [table], "vllm_2024").write(first)
    calibrate_engine("second", [table], str(first)).write(second)
    first.unlink()
    found = find_engine(str(second))
    assert (found.name, found.like, found.attention) == ("second", "vllm_2024", LIKE.attention)


@pytest.mark.slow
def test_a_fitted_engine_is_held_against_runs(table, tmp_path):
    own = tmp_path / "mine.toml"
    calibrate_engine("mine", [table], "vllm_2024").write(own)
    found = validate_time(table, engine=str(own))
    assert found.document["groups"][0]["mape"] < 0.1 < 5 < validate_time(table).document["groups"][0]["mape"]
    assert set(found.rows["engine"]) == {"mine"}
    assert (found.rows[["low", "high"]].to_numpy() == [find_engine(str(own)).low, find_engine(str(own)).high]).all()
    assert "it was fitted to runs of this table: on those, a training error" in " ".join(found.notes)
    with pytest.raises(InputError, match="--engine: no engine is called 'vlm_2024'"):
        validate_time(table, engine="vlm_2024")


def test_a_gpu_and_a_calibration_for_runs_of_a_device_without_a_preset(table, tmp_path, capsys):
    other = tmp_path / "other.csv"
    pd.read_csv(table).assign(device="MyGPU").to_csv(other, index=False)
    with pytest.raises(InputError, match=r"device 'MyGPU' has no preset; give one with --gpu \(24\)"):
        calibrate_engine("mine", [other], "vllm_2024")
    own = calibrate_engine("mine", [table], "vllm_2024").costs
    assert calibrate_engine("mine", [other], "vllm_2024", gpu="h100_sxm").costs == own
    command = ["calibrate", "engine", "mine", str(other), "--like", "vllm_2024", "--gpu", "h100_sxm", "--json"]
    assert run_command([*command, "--calibration", "shared"]) == 0
    costs = {cost["name"]: cost["value"] for cost in json.loads(capsys.readouterr().out)["costs"]}
    assert costs["step_us"] != pytest.approx({c.name: c.value for c in own}["step_us"], rel=1e-3)
    frame = pd.read_csv(table)
    frame[frame["tp"] == 1].drop(columns="tp").to_csv(other, index=False)
    assert calibrate_engine("mine", [other], "vllm_2024").notes == (
        "other.csv: no column tp (GPUs that share each layer): each of 12 runs is taken to be on one GPU",
    )
    with pytest.raises(InputError, match="--calibration: no calibration is called 'mine'"):
        calibrate_engine("mine", [table], calibration="mine")


def test_runs_count_once_and_a_file_says_what_was_fitted(table, tmp_path):
    with pytest.raises(InputError, match=r"runs\.csv: is the same table as .*runs\.csv; give it once"):
        calibrate_engine("mine", [table, table])
    twice, own = tmp_path / "twice.csv", tmp_path / "mine.toml"
    pd.concat([pd.read_csv(table)] * 2).to_csv(twice, index=False)
    answer = calibrate_engine("mine", [twice], "vllm_2023_h100_host")
    assert (answer.rows + answer.rows_left_out, answer.skipped) == (24, {TWICE: 24})
    assert any("as those of vllm_2023_h100_host are" in note for note in answer.notes)  # of its launches
    assert "launches" not in {cost.name: cost.not_fitted for cost in answer.costs}["launch_us"]
    answer.write(own)
    fitted = find_engine(str(own)).fitted
    assert fitted == answer.fitted
    assert (fitted.gpus, fitted.calibrations, fitted.judged_by) == (("h100_sxm",), ("h100_sxm",), ())
    pd.read_csv(table).head(1).loc[[0] * 8].to_csv(twice, index=False)
    with pytest.raises(InputError, match="1 different runs of whole networks can be fitted, 8 are needed"):
        calibrate_engine("mine", [twice])


def test_an_interval_rests_on_enough_different_runs_that_were_left_out():
    shapes = {"group": "x", "device": DEVICE, "dtype": "bf16", "seq_q": 128.0, "seq_kv": 8.0, "tp": 1.0}
    rows = pd.DataFrame({"batch": np.arange(24.0), "op": ["llm_e2e"] * 18 + ["llm_prefill"] * 6}).assign(**shapes)
    rows, error, shared = rows.assign(family=rows["batch"].astype(str)), np.linspace(-0.1, 0.1, 24), engines()[SHARED]
    low, high, kinds = left_out_interval(error, rows, True)
    assert -0.1 < low < -0.07 and 0.07 < high < 0.1
    assert kinds == ("llm_e2e",)  # of prefills too few were left out
    widest = (shared.low, shared.high, ())
    assert left_out_interval(error, rows, False) == widest  # fitted ones judge nothing
    assert left_out_interval(error[:19], rows[:19], True) == widest
    assert left_out_interval(error, rows.assign(batch=1.0), True) == widest  # repeats of one run
    assert left_out_interval(9 * error[:8], rows[:8], True) == (pytest.approx(-0.9), shared.high, ())  # the wider end
    with pytest.raises(InputError, match="more than 100 times off: is latency_us in microseconds"):
        left_out_interval(error + 6, rows, True)


def test_a_name_of_a_shipped_engine_is_refused(table):
    with pytest.raises(InputError, match="NAME: 'shared' is a shipped engine"):
        calibrate_engine("shared", [table])


def test_what_a_fit_did_not_explain_is_doubted(table, tmp_path):
    path = tmp_path / "runs.csv"
    runs = pd.read_csv(table)
    runs.assign(latency_us=8 * runs["latency_us"]).to_csv(path, index=False)
    slow = calibrate_engine("mine", [path], "vllm_2024")
    assert "the median run was measured 8 times as long as with the costs of vllm_2024" in slow.warnings[0]
    assert slow.errors.like_left_out == pytest.approx(87.5, abs=0.1)
    runs.assign(latency_us=0.4 * runs["latency_us"]).to_csv(path, index=False)
    (doubt,) = calibrate_engine("mine", [path], "vllm_2024").doubts
    assert "the kernels of the median run alone are predicted" in doubt and "is latency_us in microseconds" in doubt
    answer = replace(slow, errors=Errors(20.0, 10.0, 13.1, 20.0, 4.8), doubts=())
    assert answer.warnings == (
        f"on the {slow.rows_left_out} runs left out the engine is 13.1 % off, vllm_2024, which it is like, 4.8 %: "
        "take that one",
    )


@pytest.mark.slow
def test_a_fit_that_is_worse_than_kernels_alone_says_so(table, tmp_path, capsys):
    assert calibrate_engine("mine", [table], "vllm_2024").warnings == ()
    runs = Runs(measured_runs(read_times(table), Skipped(), LIKE))
    frame, out = runs.table, runs.table["out"].to_numpy()
    bare = np.exp(runs.error(np.ones(len(out), bool), {})) * frame["latency_us"]  # without any host
    path = tmp_path / "apart.csv"
    frame.assign(latency_us=frame["latency_us"].where(~out, bare)).to_csv(path, index=False)
    answer = calibrate_engine("mine", [path], "vllm_2024")
    off, alone = answer.errors.left_out, answer.errors.kernels_alone_left_out
    assert off is not None and alone is not None and alone < 0.1 < 5 < off
    command = ["calibrate", "engine", "mine", str(path), "--like", "vllm_2024"]
    assert run_command([*command, "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["mape"]["kernels_alone_left_out"] == pytest.approx(alone)
    (warning,) = document["warnings"]
    assert "these costs do not carry over" in warning and warning in printed.err
    assert run_command(command) == 0
    assert "warning: on the" in capsys.readouterr().out


def test_what_cannot_be_written_is_refused_before_the_fit(table, tmp_path, capsys):
    command = ["calibrate", "engine", "mine", str(table), "-o"]
    assert run_command([*command, str(tmp_path / "mine.txt")]) == 2
    assert "give a name that ends in .toml" in capsys.readouterr().err
    assert run_command(["validate", str(table), "-o", str(tmp_path)]) == 2
    assert "is a folder; give the path of a file" in capsys.readouterr().err
    assert run_command(["calibrate", "engine", "mine"]) == 2
    assert "TABLE: none is given" in capsys.readouterr().err
    assert run_command(["calibrate", "engine", "", str(table)]) == 2
    assert "NAME: '' is no name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_refusals(table, tmp_path):
    with pytest.raises(InputError, match="--like: no engine is called 'vlm_2024'; did you mean 'vllm_2024'"):
        calibrate_engine("mine", [table], "vlm_2024")
    few = tmp_path / "few.csv"
    pd.read_csv(table).head(3).to_csv(few, index=False)
    with pytest.raises(InputError, match="3 different runs of whole networks can be fitted, 8 are needed"):
        calibrate_engine("mine", [few])
    runs = pd.read_csv(table)
    for factor, told in ((1e-3, r"fitted, \d+"), (1e3, "of the kernels alone, 0.000")):
        runs.assign(latency_us=factor * runs["latency_us"]).to_csv(few, index=False)
        with pytest.raises(InputError, match=f"{told}.*: is latency_us in microseconds"):
            calibrate_engine("mine", [few])
    bad = tmp_path / "bad.toml"
    bad.write_text('format = "gpu-dse engine 1"\nstep_us = -4\n')
    with pytest.raises(InputError, match="launch_us is missing; give a number"):
        find_engine(str(bad))
    numbers = "".join(f"{name} = 1\n" for name in (*COSTS, "low"))
    bad.write_text(f'format = "gpu-dse engine 1"\n{numbers}high = 0.5\n')
    with pytest.raises(InputError, match="low = 1 is above high"):
        find_engine(str(bad))
    bad.write_text("x = 1\n")
    with pytest.raises(InputError, match="give a file that 'dse calibrate engine -o' wrote"):
        find_engine(str(bad))
    with pytest.raises(InputError, match="no such file"):
        find_engine(str(tmp_path / "none.toml"))

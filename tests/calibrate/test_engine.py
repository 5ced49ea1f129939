"""``dse calibrate engine``: known costs are found again, written, read, and used; what runs do not tell is named."""

import json

import pandas as pd
import pytest

from dse.calibrate.engine import calibrate_engine
from dse.calibrate.network_rows import network_rows, predicted_runs
from dse.cli import run_command
from dse.errors import InputError
from dse.hardware.presets import load_sheet
from dse.timing.calibration import load_timing_calibration
from dse.workload.engine import engines, find_engine

LIKE = engines()["vllm_2024"]
DEVICE = "H100-SXM5-80GB"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Runs of two networks that take exactly what an engine and the H100's calibration say."""
    shapes = [(b, q, o, tp) for b in (1, 8, 32) for q, o in ((128, 64), (512, 256)) for tp in (1, 2)]
    frame = pd.DataFrame(shapes * 2, columns=["batch", "seq_q", "seq_kv", "tp"]).astype(float)
    frame["group"] = ["x_Llama-2-7b-hf"] * len(shapes) + ["x_Meta-Llama-3-8B"] * len(shapes)
    frame = frame.assign(device=DEVICE, op="llm_e2e", dtype="bf16", latency_us=1.0)
    rows = network_rows(frame, load_sheet(DEVICE), {}, LIKE)
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
    assert run_command(["calibrate", "engine", "mine", str(table)]) == 0
    assert "no token of a server" in " ".join(capsys.readouterr().out.split())


def test_refusals(table, tmp_path):
    with pytest.raises(InputError, match="--like: no engine is called 'vlm_2024'; did you mean 'vllm_2024'"):
        calibrate_engine("mine", [table], "vlm_2024")
    few = tmp_path / "few.csv"
    pd.read_csv(table).head(3).to_csv(few, index=False)
    with pytest.raises(InputError, match="3 runs of whole networks can be fitted, 8 are needed"):
        calibrate_engine("mine", [few])
    bad = tmp_path / "bad.toml"
    bad.write_text('format = "gpu-dse engine 1"\nstep_us = -4\n')
    with pytest.raises(InputError, match="launch_us = None; give a number"):
        find_engine(str(bad))
    bad.write_text("x = 1\n")
    with pytest.raises(InputError, match="give a file of 'dse calibrate engine'"):
        find_engine(str(bad))
    with pytest.raises(InputError, match="cannot be read as an engine"):
        find_engine(str(tmp_path / "none.toml"))

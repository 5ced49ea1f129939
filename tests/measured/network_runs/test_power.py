"""Board power of runs of whole networks: what ``dse run`` says of the same run, at its own time or the measured."""

import json

import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.cli import run_command
from dse.evaluate.run import run
from dse.measured.device_models import device_models
from dse.measured.network_runs.kinds import RUNS
from dse.measured.network_runs.power import run_watts
from dse.measured.table import read_operators, tensor_parallel
from dse.power.board import BoardPower
from dse.timing.calibration import load_timing_calibration
from dse.validation.power import validate_power
from tests.measured.network_runs.runs import ROW

POWER = {"power_w": 400.0, "rows": None, "cols": None, "latency_us": 2e6}


@pytest.fixture
def table(tmp_path):
    """Two runs of a network, one as long again; its prefill; rows of which no power is predicted."""
    changes = [
        {},
        {"latency_us": 4e6},
        {"op": "llm_prefill"},
        {"group": "x_Nobody-1B"},
        {"op": "serving_ttft"},
        {"device": "TPU"},
        {"power_w": None},
    ]
    path = tmp_path / "runs.csv"
    pd.DataFrame([ROW | POWER | change for change in changes]).to_csv(path, index=False)
    return path


def watts(table, own_time):
    """Predicted watts of the two runs and the prefill."""
    measured = read_operators(table)
    frame = measured.frame.assign(tp=tensor_parallel(measured))
    frame = frame[frame["op"].isin(RUNS) & (frame["device"] != "TPU")]
    models, _ = device_models(frame)
    return run_watts(frame, models, BoardPower.from_table(), own_time, Skipped())["predicted_w"].to_list()


@pytest.mark.slow
def test_it_is_what_dse_run_says(table):
    same, again, prefill = watts(table, own_time=True)
    model = load_timing_calibration("h100_sxm").model
    served = "batch=8,prompt=256,output=64,dtype=bf16,engine=vllm_2024"
    expected = run("h100_sxm", f"Meta-Llama-3-8B:phase=generate,{served}", model).metrics["power_w"][0]
    assert same == again == pytest.approx(expected, rel=1e-3)
    assert prefill > same  # tensor cores at work, the host's wait spread over many tokens


def test_at_the_measured_time_a_longer_run_draws_less(table):
    one, twice, _ = watts(table, own_time=False)
    idle = watts_at_rest()
    assert idle < twice < one
    assert twice - idle > 0.4 * (one - idle)  # what clocked SMs draw does not fall with the rate of work


def watts_at_rest():
    """Watts of an H100 that waits."""
    from dse.hardware.presets import load_sheet

    gpu = load_sheet("h100_sxm").record()
    return float(BoardPower.from_table().between_kernels(gpu.boost_clock_mhz / 1e3, gpu).watts)


def test_runs_have_groups_like_kernels(table, capsys):
    assert run_command(["validate", str(table), "--quantity", "power", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["device"], row["op"], row["n"]) for row in document["device"]] == [
        ("H100-SXM5-80GB", "llm_e2e", 2),
        ("H100-SXM5-80GB", "llm_prefill", 1),
    ]
    assert all(set(row) == {"device", "op", "n", "power_mape", "power_bias"} for row in document["device"])
    skipped = {row["reason"].partition(";")[0]: row["n"] for row in document["skipped"]}
    assert document["all"]["n"] + sum(skipped.values()) == len(pd.read_csv(table))
    assert skipped["no power_w"] == 1 and skipped["device 'TPU' has no preset"] == 1
    assert any("first token" in reason for reason in skipped)
    assert any("no network is called 'x_Nobody-1B'" in reason for reason in skipped)
    assert "between kernels is fitted to such runs" in document["note"]
    own = validate_power(table, "model")
    assert own["all"]["power_mape"] != document["all"]["power_mape"]


def test_a_table_without_any_run_that_is_known_is_refused(table):
    frame = pd.read_csv(table)
    frame[frame["group"] == "x_Nobody-1B"].to_csv(table, index=False)
    with pytest.raises(InputError, match="no row can be compared: no network is called 'x_Nobody-1B'"):
        validate_power(table)

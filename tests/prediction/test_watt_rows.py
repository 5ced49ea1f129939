"""Rows to learn watts from: launches and runs with their loads, and what the power model has seen."""

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.prediction.loads import LOADS
from dse.prediction.predict import predict
from dse.prediction.quantities import POWER
from dse.prediction.table import read_measured
from dse.prediction.watt_rows import load_rows, seen_by_power_model
from dse.reports.common.figures import plotly_script
from dse.reports.predict.page import predict_page_html
from dse.reports.predict.terminal import print_predict
from dse.timing.amali import Amali
from experiments import data

BOARDS = ("A100-SXM4-80GB", "H100-SXM5-80GB")
CONSTANT, ARITHMETIC, COLD = 0.2, 0.5, 0.3
"""Shares of the limit that a made-up board draws: whatever runs, and what two of its parts are busy with."""


def products():
    """Return 36 products of either board."""
    shapes = [(m, n, k) for m in (64, 512, 2048, 8192) for n in (4096, 8192, 16384) for k in (4096, 8192, 16384)]
    frame = pd.DataFrame([(device, *shape) for device in BOARDS for shape in shapes], columns=["device", "m", "n", "k"])
    return frame.assign(source="aiconfigurator", op="gemm", dtype="bf16", latency_us=1000.0, power_w=100.0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of products whose watts follow the shares above."""
    path = tmp_path_factory.mktemp("watts") / "t.csv"
    frame = products()
    frame.to_csv(path, index=False)
    rows, _ = load_rows(read_measured(path, POWER), ["a100_sxm_80gb", "h100_sxm"], Amali())
    loads = dict(zip(LOADS, rows.x.T, strict=False))
    watts = CONSTANT * loads["limit"] + ARITHMETIC * loads["arithmetic"] + COLD * loads["cold"]
    drawn = rows.frame.assign(power_w=watts)[["device", "m", "n", "k", "power_w"]]
    frame.drop(columns="power_w").merge(drawn).to_csv(path, index=False)
    return path


def test_watts_follow_a_law_that_one_board_shows(table):
    answer = predict(table, "H100", predictors=("ols", "nnls"), quantity="power")
    (transferred,) = answer.transfers.values()
    plain = next(one for one in transferred.scored if (one.name, one.mode) == ("ols", "plain"))
    assert plain.e_out["error"] < 0.1
    drawn = transferred.test.y
    off = CONSTANT * (700 - 400) / drawn  # one board cannot tell a constant from a share of its limit
    assert np.allclose(plain.errors, 100 * off, atol=0.5)
    assert [b.fair for b in transferred.baselines] == [True, True, False]
    assert transferred.baselines[0].name == "power model alone"
    document = answer.document()
    assert (document["quantity"], document["unit"], list(document["features"])) == ("power", "W", list(LOADS))
    with pytest.raises(InputError, match="makes no timing model"):
        answer.model()


def test_the_page_and_the_terminal_speak_of_watts(table, capsys):
    answer = predict(table, "H100", predictors=("nnls",), quantity="power")
    page = predict_page_html(answer).replace(plotly_script(), "")
    assert "power of h100_sxm predicted from t.csv" in page and "measured [W]" in page
    print_predict(answer, Console(width=120))
    out = capsys.readouterr().out
    assert "power model" in out and "others' share of limit" in out
    assert answer.sentences()[0].count("share of the power limit that the other devices draw") == 1


def test_short_rows_and_rows_without_watts_are_counted(tmp_path):
    frame = products()
    frame.loc[0, "latency_us"], frame.loc[1, "power_w"] = 5.0, np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    measured = read_measured(tmp_path / "t.csv", POWER)
    assert measured.skipped["no power_w"] == 1
    assert sum(n for reason, n in measured.skipped.items() if reason.startswith("shorter than 200 us")) == 1
    assert measured.rows == len(frame)


def test_runs_of_networks_have_the_loads_of_their_launches(tmp_path):
    frame = data.frame("llm_inference_bench__e2e")
    runs = frame[(frame["power_w"] > 0) & (frame["device"] == BOARDS[1]) & (frame["batch"] == 1)].head(2)
    runs.dropna(axis=1, how="all").to_csv(tmp_path / "t.csv", index=False)
    rows, skipped = load_rows(read_measured(tmp_path / "t.csv", POWER), ["h100_sxm"], Amali())
    assert not skipped and len(rows.y) == 2
    loads = dict(zip(LOADS, rows.x.T, strict=False))
    limit = preset_sheet("h100_sxm").numbers()["tdp_w"]
    assert np.all(loads["limit"] == limit)
    assert np.all((loads["cold"] > 0.5 * limit) & (loads["cold"] <= limit))  # a decode streams its weights
    assert np.all((rows.analytical > 50) & (rows.analytical < limit))
    assert rows.frame["family"].iloc[0] == "anl_Llama-2-7b-hf_1"


def test_what_the_power_model_was_fitted_to_is_no_baseline():
    assert seen_by_power_model("gemm", "h200") and not seen_by_power_model("gemm", "h100_sxm")
    assert seen_by_power_model("llm_prefill", "h100_sxm") and not seen_by_power_model("llm_prefill", "h200")

"""Runs of whole networks: the sum of their kernels and their host, requests that wait, rows that are refused."""

import io
import json

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dse.base.csv_table import sha256
from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.cli import run_command
from dse.measured.network_runs.rows import network_rows, passes_of, predicted_runs, run_stack, runs_at_watts_ends
from dse.reports.validate.page import validation_page_html
from dse.reports.validate.terminal import print_time_validation
from dse.validation.baselines import with_rooflines
from dse.validation.time import validate_time
from dse.workload.serving_engine import COSTS, FORMAT, NUMBERS, engines
from tests.measured.network_runs.runs import H100, MODEL, ROW, runs


@pytest.fixture(scope="module")
def four():
    """A prefill, a decode step, a whole run and a served token of one network."""
    ops = ("llm_prefill", "llm_decode_step_avg", "llm_e2e", "serving_tpot")
    return runs(*({"op": op} for op in ops))[0]


def test_a_run_is_its_prefill_and_its_decodes(four):
    time = predicted_runs(MODEL, four)[0]["predicted_us"].to_numpy()
    prefill, decode, whole, served = time
    assert whole == pytest.approx(prefill + 63 * decode)
    turn = engines()["vllm_2024"].turn * (8 - 1) / 63  # of single prompts' prefills
    one = predicted_runs(MODEL, runs({"op": "llm_prefill", "batch": 1.0})[0])[0]["predicted_us"][0]
    assert served == pytest.approx(decode + turn * one)


def test_runs_are_timed_at_both_ends_of_what_the_board_may_draw(four):
    us = predicted_runs(MODEL, four)[0]["predicted_us"].to_numpy()
    ends = runs_at_watts_ends(MODEL, four)
    assert (ends["low_power_us"] <= us * (1 + 1e-6)).all() and (ends["high_power_us"] >= us * (1 - 1e-6)).all()
    longer = ends["high_power_us"] > 1.02 * ends["low_power_us"]
    assert ((ends["throttles"] == "open") >= longer).all()


def test_the_sheets_roofline_takes_the_longer_of_each_launch(four):
    """Not of their sums: a prefill's products are held by arithmetic, its vector kernels by bytes."""
    table = four.table
    longer = np.maximum(table["compute_us"], table["memory_us"])
    assert (table["sheet_us"] > 1.02 * longer).tolist() == [True, False, True, False]
    assert (table["sheet_us"] >= longer).all() and (table["sheet_us"] <= table["compute_us"] + table["memory_us"]).all()
    whole = table["sheet_us"][0] + 63 * table["sheet_us"][1]
    assert table["sheet_us"][2] == pytest.approx(whole)
    np.testing.assert_array_equal(with_rooflines(table.assign(predicted_us=1.0))["sheet_us"], table["sheet_us"])


def test_the_host_is_what_the_engine_says(four):
    table, _ = predicted_runs(MODEL, four)
    engine = engines()["vllm_2024"]
    assert table["overhead_us"][1] == pytest.approx(engine.step_us + 8 * engine.request_us)
    passes, _ = passes_of(MODEL, four)
    costs = dict.fromkeys(COSTS, 3.0)
    np.testing.assert_allclose(
        passes.total_us(costs), passes.total_us({name: jnp.asarray(cost) for name, cost in costs.items()}), rtol=1e-6
    )
    columns = (passes.launches, passes.reductions, passes.requests, passes.prompts, passes.gpu_us)
    idle = [g + engine.host(n, r, q, p).idle_us(g) for n, r, q, p, g in zip(*columns, strict=True)]
    own = {name: getattr(engine, name) for name in COSTS} | {"turn": 1.0}
    np.testing.assert_allclose(passes.total_us(own), passes.runs * np.array(idle))


def test_a_stack_adds_up_to_the_kernels_but_for_the_power_limit(four):
    table, places = predicted_runs(MODEL, four)
    kernels = (table["predicted_us"] - table["overhead_us"]).to_numpy()
    stacks = np.array([sum(run_stack(MODEL, four, places, row).values()) for row in range(4)])
    slower = kernels / stacks
    assert slower[1] == pytest.approx(1.0, abs=1e-4)  # a decode waits for bytes
    assert 1.005 < slower[0] < 1.2
    assert 1.0 <= slower[2] < slower[0]


def test_rows_that_are_no_runs_say_why():
    wrong = ({"group": "x_Nobody-1B"}, {"group": "llama2_70b"}, {"tp": 3.0}, {"dtype": "nvfp4"}, {"group": np.nan})
    rows, skipped = runs(*wrong)
    assert rows is None
    assert len(skipped) == 5 and sum(skipped.values()) == 5
    words = " ".join(skipped)
    for said in (
        "no network is called 'x_Nobody-1B'",
        "does not fit 1 x",
        "tp=3 does not divide",
        "no tensor cores for fp4",
        "llm_e2e without its group",
    ):
        assert said in words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 0.5}, "llm_e2e: batch is 0.5; give a whole number from 1 to 10,000,000"),
        ({"batch": np.inf}, "batch is inf; give a whole number"),
        ({"seq_q": 0.0}, "seq_q is 0; give a whole number"),
        ({"seq_kv": np.nan}, "seq_kv is empty; give a whole number"),
        ({"tp": 1.5}, "tp is 1.5; give a whole number from 1 to 1,024"),
        ({"tp": 2048.0}, "tp is 2048; give a whole number from 1 to 1,024"),
        ({"dtype": "fp17"}, "llm_e2e: dtype is 'fp17'; did you mean 'fp16'?"),
        ({"dtype": np.nan}, "dtype is empty; accepted are: awq, bf16"),
        ({"group": 123}, "the network's name: 123"),
        ({"group": "llama9_8b"}, "no network is called 'llama9_8b' ('dse show networks'); did you mean 'llama3_8b'"),
    ],
)
def test_a_wrong_cell_is_named(change, said, tmp_path):
    for engine in (None, engines()["vllm_2024"]):  # validated, or fitted
        skipped = Skipped()
        assert network_rows(pd.DataFrame([ROW | change]), H100, skipped, engine) is None
        assert list(skipped.values()) == [1] and said in next(iter(skipped))
    path = tmp_path / "runs.csv"
    pd.DataFrame([ROW | change]).to_csv(path, index=False)
    with pytest.raises(InputError, match="no row can be predicted") as refused:
        validate_time(path)
    assert said in str(refused.value) and "no column tp" not in str(refused.value)


def test_runs_that_fit_no_gpu_without_their_tp_say_so(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame([ROW | {"group": "llama2_70b"}]).drop(columns="tp").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"does not fit 1 x .*; no column tp .*: each of 1 runs is taken to be on one"):
        validate_time(path)


def test_rows_that_their_source_computed_are_never_fitted():
    capped = {"source": "splitwise", "device": "H100-SXM5-80GB-350Wcap", "notes": ""}
    skipped = Skipped()
    assert network_rows(pd.DataFrame([ROW | capped]), H100, skipped, engines()["vllm_2024"]) is None
    assert "computed, not measured" in next(iter(skipped))


def test_own_runs_are_told_from_fitted_ones_and_units_are_doubted(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame([ROW | {"source": "mine", "notes": "", "latency_us": 1.5}]).to_csv(path, index=False)
    found = validate_time(path)
    assert found.document["groups"][0]["roofline3_mape"] is None  # three numbers fit one row exactly
    said = " ".join(found.notes)
    assert "the costs of shared" in said and "is latency_us in microseconds?" in found.doubts[0] == found.notes[0]
    console = Console(record=True, width=400, file=io.StringIO())
    print_time_validation(found, console)
    printed = console.export_text()
    assert printed.startswith(f"warning: {found.doubts[0]}") and printed.count(found.doubts[0]) == 1
    assert "fitted to seven in ten" not in said
    page = validation_page_html(found)
    assert "three numbers fitted" not in page and "nan" not in page.partition("<script")[0]


def test_forward_passes_are_not_told_as_fitted(tmp_path):
    path = tmp_path / "runs.csv"
    forward = {
        "op": "model_inf",
        "dtype": "fp32",
        "group": "neusight_bert_large",
        "seq_q": 512.0,
        "notes": "fusion=False",
        "source": "neusight",
    }
    pd.DataFrame([ROW | forward]).to_csv(path, index=False)
    said = " ".join(validate_time(path).notes)
    assert "what an engine's host adds (pytorch_eager)" in said and "fitted to seven in ten" not in said
    pd.DataFrame([ROW | forward, ROW]).to_csv(path, index=False)
    said = " ".join(validate_time(path).notes)
    assert "(pytorch_eager, vllm_2024); the host of vllm_2024 is fitted to seven in ten" in said


def test_runs_of_another_engine_are_not_told_as_fitted(tmp_path):
    path = tmp_path / "runs.csv"
    other = ROW | {"source": "splitwise", "notes": ""}
    pd.DataFrame([other, other]).to_csv(path, index=False)
    said = " ".join(validate_time(path, engine="vllm_2024").notes)
    assert "what an engine's host adds (vllm_2024)" in said and "fitted to seven in ten" not in said
    pd.DataFrame([other, ROW]).to_csv(path, index=False)
    said = " ".join(validate_time(path, engine="vllm_2024").notes)
    assert "is fitted to seven in ten of such runs as 1 of these are: partly a training error" in said


def test_runs_under_an_engine_of_a_file_are_told_by_what_it_was_fitted_to(tmp_path):
    path, own = tmp_path / "runs.csv", tmp_path / "mine.toml"
    pd.DataFrame([ROW, ROW]).to_csv(path, index=False)
    shipped = "".join(f"{name} = 0.1\n" for name in NUMBERS) + f'format = "{FORMAT}"\nlike = "shared"\n'

    def told(*lines):
        own.write_text("\n".join(('engine = "shared"', *lines, shipped)))  # the name of a shipped one
        return " ".join(validate_time(path, engine=str(own)).notes)

    assert "its file does not say to which runs it was fitted" in told()
    assert "it was fitted to runs of this table: on those, a training error" in told(f'tables = ["x {sha256(path)}"]')
    other = ('tables = ["x.csv 123"]', 'calibrations = ["uncalibrated"]', 'gpus = ["h100_sxm"]')
    found = told(*other, 'networks = ["y_llama3_8b"]')
    assert "to another table (x.csv), of x_Meta-Llama-3-8B too: no training error, unless" in found
    assert "beside kernels timed by uncalibrated, not by h100_sxm" in found and "that no row's notes tell" not in found
    assert "(x.csv), of none of these networks" in told(*other, 'networks = ["llama2_7b"]')


def test_an_operator_misspelt_is_told_the_nearest_run_too(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame([ROW | {"op": "llm_prefil"}]).to_csv(path, index=False)
    with pytest.raises(InputError, match="no kernel is made yet for operator 'llm_prefil'; did you mean 'llm_prefill'"):
        validate_time(path)


def test_a_forward_pass_needs_no_output(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    forward = {"op": "model_inf", "dtype": "fp32", "group": "neusight_bert_large", "seq_q": 512.0, "seq_kv": None}
    pd.DataFrame([ROW | forward]).to_csv(path, index=False)
    assert run_command(["validate", str(path), "--json"]) == 0
    assert "seq_kv" not in json.loads(capsys.readouterr().out)["worst"][0]


def test_a_table_of_runs_is_validated(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [ROW | {"seq_kv": n, "latency_us": us} for n, us in ((32.0, 3e5), (64.0, 6e5), (128.0, 1.2e6))]
    rows += [ROW | {"op": "serving_ttft"}, ROW | {"group": "x_Nobody-1B"}, ROW | {"seq_q": np.nan}]
    pd.DataFrame(rows).to_csv(path, index=False)
    found = validate_time(path)
    whole = found.document["groups"][0]
    assert (whole["op"], whole["n"]) == ("llm_e2e", 3)
    assert whole["interval_80_coverage"] is not None
    assert sorted(found.document["rows_skipped"].values()) == [1, 1, 1]
    worst = found.document["worst"][0]
    assert worst["group"] == "x_Meta-Llama-3-8B" and worst["implementation"] == "vllm_2024"
    assert sum(worst["stack_us"].values()) == pytest.approx(worst["predicted_us"], rel=1e-3)
    assert any("whole networks" in note for note in found.notes)

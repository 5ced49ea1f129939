"""Serving engines: what the host adds, whose rows are whose, and that none is named in vain."""

from dataclasses import replace

import pytest

from dse.base.errors import InputError
from dse.workload.dtypes import precision
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.network import networks
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.serving_engine import (
    FORMAT,
    NUMBERS,
    SHARED,
    Fitted,
    Host,
    engine_of,
    engines,
    find_engine,
    fitted_elsewhere,
    interval_of,
    runs_of,
)


def test_a_host_beside_the_gpu_shows_only_where_it_is_longer():
    host = Host(overlapped_us=100.0, waits_us=7.0)
    assert host.idle_us(150.0) == 7.0
    assert host.idle_us(60.0) == 47.0
    assert Host().idle_us(0.0) == 0.0


@pytest.mark.parametrize("engine", engines().values(), ids=list(engines()))
def test_a_shipped_engine_is_whole(engine):
    costs = (engine.launch_us, engine.step_us, engine.request_us, engine.prompt_us, engine.reduce_us)
    assert all(cost >= 0 for cost in costs) and sum(costs) > 0
    assert 0 <= engine.turn <= 1
    assert engine.low < engine.high
    assert {engine.attention, engine.warpgroup_attention} <= {"", *attention_libraries()}
    assert engine.title and engine.source


def test_the_phases_of_a_network_carry_their_host():
    engine, network = engines()["vllm_2024"], networks()["llama3_8b"]
    serving = Serving("generate", 16, 128, 192.0, 128, precision("x"), 2, engine)
    prefill, decode = llm_workload(network, serving, "x").phases
    reductions = 2 * network.depth * engine.reduce_us
    assert decode.host.waits_us == pytest.approx(engine.step_us + 16 * engine.request_us + reductions)
    assert prefill.host.waits_us == pytest.approx(engine.step_us + 16 * engine.prompt_us + reductions)
    assert decode.host.overlapped_us == 0.0  # launches are replayed as a graph
    bare = llm_workload(network, Serving("decode", 16, 128, 192.0, 0, precision("x"), 2), "x")
    assert bare.phases[0].host == Host()


def test_rows_find_their_engine():
    notes = "framework=vLLM;model=x"
    assert engine_of(notes, "llm-inference-bench", "A100-SXM4-40GB").name == "vllm_2024"
    assert engine_of("backend=sglang-0.5.1.post1", "x", "H100").name == "sglang_0_5_1"
    assert engine_of("backend=vllm-0.12.0", "aiconfigurator-silicon", "H200-SXM-141GB").name == "vllm_0_12_cached"
    assert engine_of("backend=vllm-0.12.0", "mine", "H200-SXM-141GB").name == "vllm_0_12"
    assert engine_of("", "splitwise", "A100-SXM4-80GB").launch_us > engine_of("", "splitwise", "H100").launch_us > 0
    assert engine_of("", "mine", "H100").name == SHARED
    with pytest.raises(InputError, match="computed, not measured"):
        engine_of("", "splitwise", "H100-SXM5-80GB-350Wcap")


@pytest.mark.parametrize(
    "source, notes, spellings",
    [
        ("splitwise", "", ("A100-SXM4-80GB", "a100_sxm_80gb", "NVIDIA A100-SXM4-80GB", "a100")),
        ("splitwise", "", ("H100-SXM5-80GB", "h100_sxm", "NVIDIA H100 80GB HBM3", "my board")),
        ("aiconfigurator-silicon", "backend=vllm-0.12.0", ("H200-SXM-141GB", "h200", "NVIDIA H200")),
    ],
)
def test_all_names_of_a_gpu_tell_one_engine(source, notes, spellings):
    assert len({engine_of(notes, source, device).name for device in spellings}) == 1
    with pytest.raises(InputError, match="computed, not measured"):
        engine_of("", "splitwise", "h100_sxm_350w")


def test_a_key_that_no_engine_has_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('format = "gpu-dse engine 1"\nstep_uss = 5.0\n')
    with pytest.raises(InputError, match=r"mine\.toml: 'step_uss' is no key of an engine; did you mean"):
        find_engine(str(path))


def test_a_wrong_name_is_helped():
    with pytest.raises(InputError, match="no engine is called 'vllm_2025'; did you mean"):
        find_engine("vllm_2025")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"like": '"mine.toml"'}, r"like is 'mine\.toml', which is no shipped engine; accepted are: "),
        ({"like": '"vlm_2024"'}, "like is 'vlm_2024', which is no shipped engine; did you mean 'vllm_2024'"),
        ({"like": None}, "like is missing; give the shipped engine whose libraries ran: accepted are: "),
        ({"high": "5000"}, "high is 5000; give a number from -4.6"),
        ({"low": "-9"}, "low is -9; give a number from -4.6"),
        ({"turn": "1000"}, "turn is 1000; give a number from 0 to 10"),
        ({"step_us": "-1"}, "step_us is -1; give a number from 0 to 1e"),
        ({"step_us": "nan"}, "step_us is nan; give a number"),
        ({"judged_by": '"llm_e2e"'}, "judged_by is 'llm_e2e'; give a list of words"),
        ({"launch_us": '"x"'}, "launch_us is 'x'; give a number"),
    ],
)
def test_a_wrong_value_of_a_toml_is_named(tmp_path, monkeypatch, change, sentence):
    monkeypatch.chdir(tmp_path)
    pairs = {"format": f'"{FORMAT}"', "like": '"shared"'} | dict.fromkeys(NUMBERS, "0.1")
    lines = [f"{key} = {value}\n" for key, value in (pairs | change).items() if value is not None]
    (tmp_path / "mine.toml").write_text("".join(lines))
    with pytest.raises(InputError, match=rf"mine\.toml: {sentence}"):
        find_engine("mine.toml")


def test_the_interval_of_a_fitted_engine_is_said_of_the_runs_that_judged_it():
    shared, engine = engines()[SHARED], replace(engines()["vllm_2024"], like="vllm_2024", title="mine")
    unknown = (shared.low, shared.high)
    judged = replace(engine, low=-0.1, high=0.5, fitted=Fitted(judged_by=("llm_prefill",)))
    assert interval_of(judged, "llm_prefill") == (-0.1, 0.5)
    assert runs_of(judged, "llm_prefill") == "runs of mine"
    assert interval_of(judged, "llm_e2e") == (shared.low, 0.5)
    assert runs_of(judged, "llm_e2e").endswith(
        "nobody has measured and of mine: judged by llm_prefill alone, not by llm_e2e"
    )
    few = replace(engine, fitted=Fitted(judged_by=()))
    assert interval_of(few, "llm_e2e") == unknown
    assert runs_of(few, "llm_e2e").endswith("too few of its own were left out of the fit")
    assert interval_of(engine, "llm_e2e") == (engine.low, engine.high)  # its file does not say


def test_a_kind_of_run_that_no_measurement_of_a_shipped_engine_was_of_has_the_wider_interval():
    shared, whole, served = (engines()[name] for name in (SHARED, "vllm_2024", "vllm_0_12"))
    assert runs_of(whole, "llm_e2e") == runs_of(whole, "llm_decode_step_avg") == f"runs of {whole.title}"
    assert interval_of(whole, "llm_decode_step_avg") == interval_of(whole, "llm_e2e")  # nearly all of whose time it is
    assert interval_of(served, "llm_decode_step_avg") == interval_of(served, "serving_tpot")
    low, high = interval_of(served, "llm_prefill")
    assert low <= min(shared.low, served.low) and high >= max(shared.high, served.high)
    assert runs_of(served, "llm_prefill").endswith(f"of {served.title}: measured by serving_tpot, not by llm_prefill")
    assert interval_of(shared, "llm_prefill")[0] >= shared.low  # the shared engine is for all


def test_a_gpu_and_a_calibration_that_an_engine_was_not_fitted_with_are_told():
    fitted = Fitted(gpus=("h100_sxm",), calibrations=("h100_sxm",))
    engine = replace(engines()["vllm_2024"], name="mine", like="vllm_2024", fitted=fitted)
    assert fitted_elsewhere(engine, "h100_sxm", "h100_sxm") == []
    assert fitted_elsewhere(engine, "a100_pcie", "x") == ["the host of mine was fitted on h100_sxm, not on a100_pcie"]
    (said,) = fitted_elsewhere(engine, "h100_sxm", "uncalibrated")
    assert "was fitted beside kernels timed by h100_sxm, not by uncalibrated" in said
    assert fitted_elsewhere(engines()["vllm_2024"], "a100_pcie", "x") == []

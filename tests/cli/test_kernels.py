"""Commands over one GPU: run and explain."""

import json
from pathlib import Path

import pytest

from dse.cli import run_command
from dse.workload.serving_engine import find_engine
from tests.cli.commands import refused


def test_run_prints_kernels_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "h100_sxm", "llama3_8b:phase=decode,batch=32,context=2048"]
    assert run_command(command) == 0
    text = capsys.readouterr().out
    assert "time between tokens" in text
    assert "gate_up_projection" in text
    assert "timing model Amali, calibration h100_sxm" in text  # a measured GPU's own calibration, unless told otherwise
    assert run_command([*command, "--calibration", "none"]) == 0
    assert "timing model Amali, uncalibrated" in capsys.readouterr().out
    assert run_command(["run", "b200", *command[2:]]) == 0
    assert "timing model Amali, calibration shared" in capsys.readouterr().out
    assert run_command([*command, "--calibration", "a100_sxm_80gb"]) == 0  # another GPU's: told, and no interval
    printed = capsys.readouterr()
    assert "fitted on a100_sxm_80gb, not on H100 SXM5 80GB: no interval" in printed.err
    assert "uncalibrated" in printed.out
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["calibration"] == "h100_sxm"
    low, high = document["metrics"]["power_w"]["interval_80"]
    assert low < document["metrics"]["power_w"]["value"] <= high <= 700  # a board that is held to it draws no more
    total = sum(kernel["time_ms"] for kernel in document["kernels"])
    assert document["metrics"]["tbt_ms"]["value"] == pytest.approx(total)
    assert sum(document["stack_ms"]["decode"].values()) == pytest.approx(total, rel=1e-5)


def test_run_under_an_engine_tells_of_its_host(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    command = ["run", "h100_sxm", "llama3_8b:phase=decode,batch=32,context=2048,tp=4,engine=vllm_2024"]
    assert run_command(command) == 0
    text = capsys.readouterr().out
    assert f"under {find_engine('vllm_2024').title}" in text
    assert "the GPU waits for the engine's host" in text and "none: the GPU waits" in text
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    kernels = sum(kernel["time_ms"] for kernel in document["kernels"])
    host = document["stack_ms"]["decode"]["host"]
    assert host > 0
    assert document["metrics"]["tbt_ms"]["value"] == pytest.approx(kernels + host, rel=1e-5)


def test_run_on_several_gpus_says_that_intervals_leave_messages_out(
    capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    workload = "llama3_8b:phase=decode,batch=32,context=2048,tp=2,dtype=bf16"
    command = ["run", "h100_sxm", workload, "--calibration", "shared"]
    assert run_command(command) == 0
    text = capsys.readouterr().out
    (line,) = [line for line in text.splitlines() if "time between tokens" in line]
    assert line.endswith("%, kernels alone")
    assert "kernels alone; messages between GPUs apart: " in text
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    metrics = document["metrics"]
    assert " ".join(text.split()).count(" ".join(document["notes"])) == 1  # what the terminal says beside the numbers
    assert metrics["tbt_ms"]["interval_80_of"] == "kernels alone; messages between GPUs apart"
    assert metrics["tbt_ms"]["interval_80"] is not None
    assert metrics["power_w"]["interval_80_of"] is None
    assert run_command(["run", "h100_sxm", workload.replace(",tp=2", ""), "--calibration", "shared"]) == 0
    assert "kernels alone" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('base = "h100_smx"', ["h100_smx", "h100_sxm"]),
        ('base = "h100_sxm"\nsm_cuont = 3', ["'sm_cuont'", "sm_count"]),
        ('base = "h100_sxm"\nsm_count = "many"', ["sm_count = 'many'", "1 to 1024"]),
        ('base = "h100_sxm"\nl2_mib = -1', ["l2_mib = -1", "MiB"]),
        ("sm_count = 3", ["there is no base", "are missing"]),
        ("base = ", ["not valid TOML"]),
        ('base = "h100_sxm"\n[peaks]\nbf16 = 1979', ["sparsity"]),
    ],
)
def test_wrong_gpu_files_exit_2(text: str, parts: list[str], tmp_path: Path, capsys) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    message = refused(["run", str(path), "llama3_8b"], capsys)
    assert str(path) in message
    for part in parts:
        assert part in message


def test_a_wrong_second_gpu_is_told_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = refused(["explain", "h100_sxm", "llama3_8b", "--against", "h200x"], capsys)
    assert sentence.startswith("dse: --against: no GPU is called 'h200x'; did you mean 'h200'")


def test_a_board_that_draws_too_much_at_any_clock_is_refused(tmp_path: Path, capsys) -> None:
    gpu = tmp_path / "weak.toml"
    gpu.write_text('name = "Weak"\nbase = "h100_sxm"\ntdp_w = 30\n')
    assert run_command(["run", str(gpu), "llama3_8b:phase=prefill"]) == 2
    assert (
        "at its lowest clock (0.15 of the requested one), more than the board is held to at tdp_w = 30 W"
        in capsys.readouterr().err
    )


def test_a_held_board_computes_no_faster_than_its_tensor_cores(tmp_path: Path, capsys) -> None:
    """Bytes bind this product at the requested clock; the limit of 350 W lowers it until the products do."""
    (tmp_path / "one.csv").write_text("m,n,k,dtype\n256,32768,32768,fp16\n")
    assert run_command(["run", "h100_sxm_350w", str(tmp_path / "one.csv"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    share = document["metrics"]["clock_share"]["value"]
    assert 0.2 < share < 0.6
    assert document["kernels"][0]["tflops"] < 989.4 * share  # the sheet's dense peak [TFLOP/s]
    assert document["metrics"]["power_w"]["value"] == pytest.approx(0.99 * 350, rel=0.01)
    assert document["throttles"] == "yes"
    low, high = document["metrics"]["clock_share"]["interval_80"]
    assert low < 0.95 * share and high > 1.05 * share
    said = f"leaves {100 * share:.0f} % of the clock, {100 * low:.0f} to {100 * high:.0f} % of the clock by the error"
    assert [note for note in document["notes"] if said in note]


def test_a_long_prompt_of_many_requests_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    rates = []
    for batch in (8, 32):  # 8 and 34 million shares of the embedding's elements
        assert run_command(["run", "h200", f"llama3_8b:phase=prefill,batch={batch},prompt=8192", "--json"]) == 0
        kernels = json.loads(capsys.readouterr().out)["kernels"]
        rates += [k["dram_gbs"] for k in kernels if k["kernel"] == "embedding"]
    assert rates[1] == pytest.approx(rates[0], rel=0.2)


def test_a_workload_that_cannot_run_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "workload '': is empty" in refused(["run", "h100_sxm", ""], capsys)
    sentence = refused(["run", "v100_sxm2_32gb", "llama3_8b:batch=1,dtype=bf16"], capsys)
    assert "computes in bf16, in which no kernels of Tesla V100 SXM2 32GB are known" in sentence
    sentence = refused(["explain", "p100_pcie_16gb", "gpt2_xl", "--against", "quadro_gv100"], capsys)
    assert "Tesla P100 PCIe 16GB can in fp32; Quadro GV100 can in fp32, fp16" in sentence

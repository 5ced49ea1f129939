"""The command line: exit codes, one JSON document on stdout, sentences on stderr, nothing half-written."""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dse
from dse.base.pareto_filter import pareto_mask
from dse.cli import run_command
from dse.cli.app import app, one_line_paragraphs
from dse.workload.serving_engine import find_engine


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must be refused and return its sentence."""
    assert run_command(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dse: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.fixture
def quick(small: dict[str, Any]) -> dict[str, Any]:
    """One workload and the model that compiles soonest: what a command says and writes does not depend on them."""
    prefill = {"prefill": small["workloads"]["prefill"]}
    return small | {"timing": "roofline", "workloads": prefill, "objectives": small["objectives"][::2]}


def test_sweep_answers_in_json_and_writes_everything(
    quick: dict[str, Any], write_space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "n",
        "n_feasible",
        "infeasible",
        "objectives",
        "baseline",
        "pareto",
        "seconds",
        "calibration",
        "intervals",
        "notes",
    ]
    assert document["n"] == document["n_feasible"] == 45
    assert document["calibration"] == "uncalibrated"
    assert document["objectives"][0] == {"name": "prefill.ttft_ms", "unit": "ms", "direction": "minimize"}
    assert set(document["seconds"]) == {"compile", "evaluate", "write"}
    costs = [[row[o["name"]] for o in document["objectives"]] for row in document["pareto"]]
    assert pareto_mask(costs).all()  # pyright: ignore[reportArgumentType]
    assert document["baseline"]["sm_count"] == 132
    assert {p.name for p in out.iterdir()} == {"points.parquet", "pareto.parquet", "run.json", "report.html"}
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out), "--no-page"]) == 0
    assert f"dse report {out} draws the page" in capsys.readouterr().out
    assert not (out / "report.html").exists()  # that of an earlier sweep is not left beside new tables


@pytest.mark.slow
def test_report_draws_the_same_page_again(quick, write_space, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out)]) == 0
    page = (out / "report.html").read_bytes()
    assert run_command(["report", str(out)]) == 0
    assert (out / "report.html").read_bytes() == page


def test_sweep_prints_a_table(quick, write_space, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run_command(["sweep", str(write_space(quick)), "-o", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "uncalibrated" in out
    assert "\x1b" not in out
    assert "report.html" in out


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
    assert "kernels alone; communication uncalibrated: " in text
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    metrics = document["metrics"]
    assert " ".join(text.split()).count(" ".join(document["notes"])) == 1  # what the terminal says beside the numbers
    assert metrics["tbt_ms"]["interval_80_of"] == "kernels alone; communication uncalibrated"
    assert metrics["tbt_ms"]["interval_80"] is not None
    assert metrics["power_w"]["interval_80_of"] is None
    assert run_command(["run", "h100_sxm", workload.replace(",tp=2", ""), "--calibration", "shared"]) == 0
    assert "kernels alone" not in capsys.readouterr().out


@pytest.mark.parametrize("what", ["gpus", "schema", "networks", "engines", "spaces", "metrics"])
def test_show_prints_tables_and_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", what]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 2
    assert run_command(["show", what, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("what", ["gpus", "schema", "networks", "engines"])
def test_a_narrow_terminal_keeps_names_whole(what: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    assert run_command(["show", what, "--json"]) == 0
    names = [next(iter(row.values())) for row in json.loads(capsys.readouterr().out)]
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["show", what]) == 0
    shown = capsys.readouterr().out
    assert {line.split(" ")[0] for line in shown.splitlines()} >= set(names)
    assert "with --json" in shown


def test_show_gpu_gives_units_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["show", "gpu", "NVIDIA H100 80GB HBM3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["name"] == "h100_sxm"
    assert all(row["source"] and row["status"] and row["unit"] for row in document["attributes"])
    assert (document["die_mm2"], document["sm_on_die"]) == (814, 144)  # numbers as numbers
    assert document["peaks"]


def test_check_tells_what_a_sweep_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "h100_tensor_core", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["n"] >= 1_000_000
    assert document["memory_gb"] < 2
    assert document["seconds"] < 120
    assert sum(document["parts"].values()) == pytest.approx(document["seconds"], rel=0.01)
    assert run_command(["check", "h100_tensor_core"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "designs" in told
    assert f"{document['parts']['page']:.0f} s draw the page (none with --no-page)" in told


def test_check_counts_on_less_time_for_less_work(quick, small, write_space, capsys) -> None:
    def seconds(space: dict[str, Any]) -> float:
        assert run_command(["check", str(write_space(space)), "--json"]) == 0
        return json.loads(capsys.readouterr().out)["seconds"]

    many = small["axes"] | {"l2_mib": {"from": 20, "to": 50, "step": 1}}
    assert seconds(quick) < seconds(small) < seconds(small | {"axes": many}) < 120


def test_check_warns_of_a_space_without_room(small, write_space, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_space(small | {"axes": {"dram_gb": [1, 2]}, "links": {}})
    assert run_command(["check", str(path), "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [w.partition(":")[0] for w in warnings] == [f"no design has room for {w}" for w in ("prefill", "decode")]
    assert run_command(["check", str(path)]) == 0
    assert "dram_gb is 2 at most" in " ".join(capsys.readouterr().out.split())


def test_check_tells_what_constraints_leave(small, write_space, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_space(small | {"constraints": ["sm_count <= 108", "prefill.ttft_ms < 50", "die_mm2 <= 10"]})
    assert run_command(["check", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["within"] == {"sm_count <= 108": 0.4, "prefill.ttft_ms < 50": None, "die_mm2 <= 10": 0}
    assert [warning.partition(":")[0] for warning in document["warnings"]] == ["no design is within die_mm2 <= 10"]
    assert run_command(["check", str(path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "constraint sm_count <= 108: 40 % of designs" in told
    assert "constraint prefill.ttft_ms < 50: a sweep tells how many designs" in told


def test_new_writes_a_space_that_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    assert run_command(["new", str(path)]) == 0
    assert run_command(["check", str(path)]) == 0
    capsys.readouterr()
    assert "exists already" in refused(["new", str(path)], capsys)
    assert "h100_tensor_core" in refused(["new", str(tmp_path / "b.toml"), "--from", "h100_tensor_cor"], capsys)
    assert not (tmp_path / "b.toml").exists()
    assert "there is no folder" in refused(["new", str(tmp_path / "no" / "c")], capsys)


WRONG_SPACES = {
    "unknown key": ({"bse": "h100"}, "did you mean 'base'"),
    "unknown base": ({"base": "h100_sxn"}, "h100_sxm"),
    "unknown axis": ({"axes": {"sm_cuont": [1]}}, "did you mean 'sm_count'"),
    "mistyped value": ({"axes": {"sm_count": ["many"]}}, "'many'"),
    "out of range": ({"axes": {"sm_count": [5000]}}, "1 to 1024"),
    "bad range": ({"axes": {"sm_count": {"from": 9, "to": 1, "step": 1}}}, "not below"),
    "unknown network": ({"workloads": {"a": "llama9"}}, "no network"),
    "unsafe constraint": ({"constraints": ["exit() > 1"]}, "not allowed"),
    "unknown metric": ({"objectives": [{"value": "decode.speed", "goal": "min"}]}, "decode.speed"),
    "missing objectives": ({"objectives": []}, "objectives are missing"),
    "missing data type": ({"workloads": {"prefill": "gpt2_xl:dtype=fp4"}}, "fp4"),
    "unknown model": ({"timing": "amalli"}, "did you mean 'amali'"),
}


@pytest.mark.parametrize("kind", WRONG_SPACES)
def test_wrong_spaces_exit_2_and_write_nothing(
    kind: str, small: dict[str, Any], write_space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, part = WRONG_SPACES[kind]
    path = write_space(small | change)
    message = refused(["sweep", str(path), "-o", str(tmp_path / "out")], capsys)
    assert str(path) in message
    assert part in message
    assert not (tmp_path / "out").exists()


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


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["swep"], "swep"),
        (["sweep"], "SPACE"),
        (["sweep", "nowhere.toml"], "no such file"),
        (["run", "h100", "llama3_8b:phase=train"], "phase=train"),
        (["run", "h100", "llama3_70b"], "needs"),
        (["run", "a100", "llama3_8b:dtype=fp8"], "fp8"),
        (["run", "h100", "llama3_8b", "--timing", "gut"], "amali"),
        (["run", "h100", "llama3_8b", "--calibration", "h100"], "--calibration: no calibration is called 'h100'"),
        (["report", "nowhere"], "run.json"),
        (["show", "gpu", "mi300x"], "NVIDIA"),
        (["sweep", "h100_tensor_core", "--fast"], "--fast"),
        (["search", "h100_tensor_core", "--seed", "1.5"], "--seed 1.5 is not accepted; give a whole number"),
        (["explain", "h100", "llama3_8b", "--top", "few"], "--top few is not accepted; give a whole number"),
    ],
)
def test_wrong_commands_exit_2(arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert part in refused(arguments, capsys)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from dse.cli import run_command; run_command(['--help']); "
        "print([m for m in ('jax', 'numpy', 'pandas', 'plotly', 'pyarrow', 'optuna') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dse ")


@pytest.mark.parametrize("said", ["", "interrupted; the same command goes on"])
def test_an_interruption_always_says_so(said: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt(*filter(None, [said]))

    monkeypatch.setattr("dse.reports.show.terminal.print_gpus", interrupt)
    assert run_command(["show", "gpus"]) == 130
    assert capsys.readouterr().err == f"dse: {said or 'interrupted'}\n"


@pytest.mark.parametrize("seconds", [0.0, 20.0], ids=["the command ends at once", "the command goes on"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_interruption_that_a_callback_drops_is_raised_again(
    seconds: float, times: int, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    """Python ignores what is raised in a callback of the garbage collector: JAX has one."""
    left = iter(range(times))

    def callback(phase: str, _: object) -> None:
        if phase == "start" and next(left, None) is not None:
            raise KeyboardInterrupt

    def collects(*_: object) -> None:
        end = time.monotonic() + seconds
        gc.collect()
        while time.monotonic() < end:
            time.sleep(0.1)
            gc.collect()

    monkeypatch.setattr("dse.reports.show.terminal.print_gpus", collects)
    gc.callbacks.append(callback)
    try:
        begin = time.monotonic()
        assert run_command(["show", "gpus"]) == 130
        assert time.monotonic() - begin < 15
    finally:
        gc.callbacks.remove(callback)
    assert capsys.readouterr().err == "dse: interrupted\n"


@pytest.mark.parametrize("command", [["show", "schema"], ["show", "schema", "--json"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dse.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


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
    assert [note for note in document["notes"] if "% of the clock: the time rests on the predicted watts" in note]


def test_a_long_prompt_of_many_requests_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    rates = []
    for batch in (8, 32):  # 8 and 34 million shares of the embedding's elements
        assert run_command(["run", "h200", f"llama3_8b:phase=prefill,batch={batch},prompt=8192", "--json"]) == 0
        kernels = json.loads(capsys.readouterr().out)["kernels"]
        rates += [k["dram_gbs"] for k in kernels if k["kernel"] == "embedding"]
    assert rates[1] == pytest.approx(rates[0], rel=0.2)


def test_the_command_is_a_module_too() -> None:
    found = subprocess.run([sys.executable, "-m", "dse", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"dse {dse.__version__}"


def test_a_workload_that_cannot_run_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "workload '': is empty" in refused(["run", "h100_sxm", ""], capsys)
    sentence = refused(["run", "v100_sxm2_32gb", "llama3_8b:batch=1,dtype=bf16"], capsys)
    assert "computes in bf16, in which no kernels of Tesla V100 SXM2 32GB are known" in sentence
    sentence = refused(["explain", "p100_pcie_16gb", "gpt2_xl", "--against", "quadro_gv100"], capsys)
    assert "Tesla P100 PCIe 16GB can in fp32; Quadro GV100 can in fp32, fp16" in sentence


def test_help_wraps_a_paragraph_to_the_terminal_alone():
    """Where the docstring wraps its lines is nothing to the reader's terminal."""
    text = """One sentence that
    goes on.

    Another paragraph.

    Parameters
    ----------
    space:
        Path of a space,
        or its name.
    out:
        Folder.
    """
    assert one_line_paragraphs(text).split("\n") == [
        "One sentence that goes on.",
        "",
        "Another paragraph.",
        "",
        "Parameters",
        "----------",
        "space:",
        "    Path of a space, or its name.",
        "out:",
        "    Folder.",
    ]


def test_every_command_s_help_is_wrapped_anew():
    texts = [app[name].default_command.__doc__ for name in ("sweep", "search", "validate")]
    assert all(text == one_line_paragraphs(text) for text in texts)

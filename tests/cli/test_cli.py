"""The command line: exit codes, one JSON document on stdout, sentences on stderr, nothing half-written."""

import gc
import os
import subprocess
import sys
import time

import pytest

import dse
from dse.cli import run_command
from tests.cli.commands import refused


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["swep"], "swep"),
        (["sweep"], "SPACE"),
        (["sweep", "nowhere.toml"], "no such file"),
        (["run", "h100_sxm", "llama3_8b:phase=train"], "phase=train"),
        (["run", "h100_sxm", "llama3_70b"], "needs"),
        (["run", "a100_sxm_80gb", "llama3_8b:dtype=fp8"], "fp8"),
        (["run", "h100_sxm", "llama3_8b", "--timing", "gut"], "amali"),
        (["run", "h100_sxm", "llama3_8b", "--calibration", "h100"], "--calibration: no calibration is called 'h100'"),
        (["report", "nowhere"], "run.json"),
        (["show", "gpu", "mi300x"], "NVIDIA"),
        (["sweep", "h100_tensor_core", "--fast"], "--fast"),
        (["search", "h100_tensor_core", "--seed", "1.5"], "--seed 1.5 is not accepted; give a whole number"),
        (["explain", "h100_sxm", "llama3_8b", "--top", "few"], "--top few is not accepted; give a whole number"),
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


def test_the_command_is_a_module_too() -> None:
    found = subprocess.run([sys.executable, "-m", "dse", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"dse {dse.__version__}"

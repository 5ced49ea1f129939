"""``dse trace --power``: watts of recorded kernels from their own activity."""

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from dse.cli import run_command
from dse.evaluate.trace_watts import mean_watts, traced_watts
from dse.power.accelwattch_designs import AccelWattchPower
from dse.timing.traced.trace_answer import TraceQuestion
from tests.traces.traces import kernel_text, write_directory

WARPS = 640


def kernel(loads: int, name: str = "k") -> str:
    """A kernel whose warps load so many lines each, four of them the same, add them up, and store a line.

    The four run on SMs of their own, so that three of them find the lines in the L2.
    """
    ctas = []
    for number in range(WARPS):
        address = 0x7F0000000000 + 4096 * (number // 4)
        lines = [f"{16 * i:04x} ffffffff 1 R{2 + i} LDG.E.SYS 1 R1 4 1 {address + 128 * i:#x} 4" for i in range(loads)]
        lines += [f"{16 * (loads + i):04x} ffffffff 1 R40 FADD 2 R40 R{2 + i} 0" for i in range(loads)]
        ctas.append(
            [[*lines, f"0f00 ffffffff 0 STG.E.SYS 2 R1 R40 4 1 {address + (1 << 30) + 128 * (number % 4):#x} 4"]]
        )
    return kernel_text(ctas, name=name, binary=70)


def watts(folder: Path, *kernels: str) -> list[dict[str, float]]:
    question = TraceQuestion.of(write_directory(folder, *kernels), None, None, None)
    return [result.watts for result in traced_watts(question, AccelWattchPower.published())]


@pytest.fixture
def no_published_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the measured and published watts of AccelWattch's kernels away: whoever reads them fails."""
    opened = builtins.open

    def refuse(file: Any, *args: Any, **settings: Any) -> Any:
        if "_kernels.csv" in str(file) or "experiments" in str(file):
            raise AssertionError(f"{file}: published watts are read")
        return opened(file, *args, **settings)

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr("io.open", refuse)


@pytest.mark.usefixtures("no_published_watts")
def test_twice_the_loads_draw_more_in_l2_and_dram(tmp_path: Path) -> None:
    once, twice = watts(tmp_path / "t", kernel(8), kernel(16))
    assert twice["dram"] > 1.2 * once["dram"] and twice["l2"] > 1.1 * once["l2"]
    assert twice["noc"] > once["noc"]
    assert twice["constant"] == once["constant"]


def test_all_kernels_together_draw_the_mean_by_time(tmp_path: Path) -> None:
    question = TraceQuestion.of(write_directory(tmp_path / "t", kernel(8), kernel(16)), None, None, None)
    results = traced_watts(question, AccelWattchPower.published())
    joules = sum(result.total * result.timing.microseconds for result in results)
    together = joules / sum(result.timing.microseconds for result in results)
    assert sum(mean_watts(results).values()) == pytest.approx(together)


def test_the_command_gives_watts_by_component(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_directory(tmp_path / "t", kernel(2))
    assert run_command(["trace", str(folder), "--power", "accelwattch", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["power_w"] == pytest.approx(sum(row["watts"].values())) and "board_w" not in row
    assert row["cycles"] > 0
    assert run_command(["trace", str(folder), "--power", "accelwattch", "--gpu", "h100_sxm"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "on tsmc_4n its dynamic watts are multiplied" in shown and "the board model's watts, kernel by kernel" in shown
    )
    assert run_command(["trace", str(folder), "--power", "board", "--timing", "gcom", "--gpu", "rtx_2060"]) == 2
    assert "gcom gives cycles alone" in capsys.readouterr().err

"""Miss-rate curves and scale models of a recorded trace."""

import json
from pathlib import Path

import pytest

from dse.cli import run_command
from dse.scaling.from_trace import miss_rate_curve, traced_sheet
from dse.timing.traced.trace_answer import TraceQuestion
from tests.traces.traces import kernel_text, write_directory

CTAS, LINES = 80, 32


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """CTAs that read lines of their own twice, with those of all others in between: reuse at the whole footprint."""
    ctas = []
    for number in range(CTAS):
        base = 0x7F0000000000 + 128 * LINES * number
        order = [*range(LINES), *range(LINES)]
        lines = [f"{16 * i:04x} ffffffff 1 R2 LDG.E.SYS 1 R1 4 1 {base + 128 * n:#x} 4" for i, n in enumerate(order)]
        ctas.append([[*lines, "0f00 ffffffff 0 EXIT 0 0"]])
    return write_directory(tmp_path / "t", kernel_text(ctas, name="twice", binary=90))


def test_a_curve_falls_from_all_loads_to_the_first_ones(trace: Path) -> None:
    (kernel,) = TraceQuestion.of(trace, "h100_sxm", None, None).kernels()
    curve = miss_rate_curve(kernel)
    misses = [point.misses for point in curve]
    assert misses == sorted(misses, reverse=True)
    assert curve[-1].misses == 4 * CTAS * LINES  # each line once, in four sectors
    assert curve[-1].mpki == pytest.approx(1000 * curve[-1].misses / (32 * CTAS * (2 * LINES + 1)))


def test_scale_models_of_a_trace_have_what_a_table_has(trace: Path) -> None:
    (benchmark,) = traced_sheet(trace, "h100_sxm", 33, 66).benchmarks
    assert benchmark.name == "1 twice" and benchmark.sizes == (33.0, 66.0, 132.0)
    assert all(ipc is not None and ipc > 0 for ipc in benchmark.ipc)
    assert all(waits is not None and 0 <= waits < 1 for waits in benchmark.f_mem)
    assert benchmark.mpki[0] == pytest.approx(1000 * 4 / (32 * (2 + 1 / LINES)))


def test_the_commands(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(trace), "--miss-rate-curve", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["kernel"] == "twice" and row["curve"][0]["l2_mib"] == 0.125
    assert run_command(["trace", str(trace), "--miss-rate-curve"]) == 0
    assert "MPKI" in capsys.readouterr().out
    models = ["--trace", str(trace), "--gpu", "h100_sxm"]
    page = ["-o", str(tmp_path / "page.html")]
    assert run_command(["scale", *models, "--small", "33", "--large", "66", *page, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {point["size"] for point in answer["points"]} == {132.0}
    assert run_command(["scale", *models, *page]) == 2
    assert "--trace: give --gpu NAME, and the SMs of two scale models" in capsys.readouterr().err
    assert run_command(["scale", *models, "--small", "33", "--large", "132", *page]) == 2
    assert "give two sizes below" in capsys.readouterr().err
    assert run_command(["scale", *page]) == 2
    assert "give a table, or --trace DIR" in capsys.readouterr().err

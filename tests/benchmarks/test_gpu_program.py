"""The GPU's figures: of the sweep's own program, in a table, and a refusal where what compiles for it is missing."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_program
from benchmarks.gpu import h100, running
from tests.benchmarks.gpu.altered import MORE

KEYS = {
    "program", "launches_per_million", "scratch_mib", "bytes_per_design", "instructions_per_design", "spill_bytes",
    "bound_designs_per_second", "projected_designs_per_second", "bound_by",
}  # fmt: skip

RUN_KEYS = (
    "program", "device", "measured_designs_per_second", "projected_designs_per_second", "bound_designs_per_second",
    "share_of_bound", "date",
)  # fmt: skip


def test_refuses_with_a_sentence_where_the_plugin_is_missing(monkeypatch, capsys) -> None:
    monkeypatch.setattr(h100, "_importable", lambda module: False)
    monkeypatch.setattr(sys, "argv", ["gpu_program", "--json"])
    with pytest.raises(SystemExit) as refusal:
        gpu_program.main()
    said = capsys.readouterr()
    assert refusal.value.code == 2
    assert "jax-cuda12-plugin" in said.err
    assert "gpu-dse[gpu-aot]" in said.err
    assert said.out == ""


def test_a_run_without_a_gpu_is_refused_in_a_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_program", "--run", "main space"])
    with pytest.raises(SystemExit) as refusal:
        gpu_program.main()
    said = capsys.readouterr()
    assert refusal.value.code == 2
    assert said.err == "--run needs a GPU that JAX sees; this process has cpu alone\n"
    assert said.out == ""


@pytest.mark.parametrize("error", [RuntimeError, AssertionError])
def test_a_platform_that_cannot_begin_is_refused_too(error, monkeypatch) -> None:
    def none() -> str:
        raise error

    monkeypatch.setattr(running.jax, "default_backend", none)
    assert running.refusal() == "--run needs a GPU that JAX sees; this process has no device"


@pytest.mark.parametrize("words", [["--run", "--write"], ["--run", "calibration step"]])
def test_what_a_run_does_not_do_is_refused(words, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_program", *words])
    with pytest.raises(SystemExit) as refusal:
        gpu_program.main()
    said = capsys.readouterr()
    assert refusal.value.code == 2
    assert words[1] in said.err and said.out == ""


def test_a_run_prints_measured_beside_projected(monkeypatch, capsys) -> None:
    one = dict.fromkeys(RUN_KEYS) | {"program": "main space", "device": h100.KIND, "share_of_bound": 0.5}
    given: list[Any] = []
    monkeypatch.setattr(running, "refusal", lambda: None)
    monkeypatch.setattr(running, "run", lambda *arguments: given.append(arguments) or [one])
    monkeypatch.setattr(sys, "argv", ["gpu_program", "--run", "--json", "main space"])
    gpu_program.main()
    wanted, projections = given[0]
    assert wanted == ["main space"]
    assert set(projections[h100.KIND]) == set(gpu_program.subjects(Path()))
    assert all(
        0 < of["projected_designs_per_second"] <= of["bound_designs_per_second"]
        for of in projections[h100.KIND].values()
    )
    assert json.loads(capsys.readouterr().out) == {"device": h100.KIND, "programs": [one]}
    monkeypatch.setattr(sys, "argv", ["gpu_program", "--run"])
    gpu_program.main()
    row = capsys.readouterr().out.splitlines()[2]
    assert row == f"| main space | {h100.KIND} |  |  |  | 50% |  |"


def test_a_page_gets_the_new_table() -> None:
    page = f"Before.\n{gpu_program.BEGIN}\n| old |\n{gpu_program.END}\nAfter.\n"
    assert gpu_program.written(page, ["| new |", "|---|"]) == page.replace("| old |", "| new |\n|---|")
    assert gpu_program.BEGIN in gpu_program.README.read_text(encoding="utf-8")


def test_the_readme_tells_the_projection_of_the_main_space() -> None:
    page = gpu_program.README.read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| main space | at least")]
    cells = dict(zip(gpu_program.COLUMNS, (cell.strip() for cell in row.strip("|").split("|")), strict=True))
    millions = float(cells["projected_designs_per_second"].replace(",", "")) / 1e6
    readme = (gpu_program.README.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"{millions:.0f} M designs/s are projected: compiled for an H100, [not yet run on one]" in readme


@pytest.mark.slow
@pytest.mark.skipif(bool(h100.missing()), reason="needs the packages of gpu-aot")
def test_the_figures_are_those_of_the_program_that_the_sweep_runs() -> None:
    sweep, altered = gpu_program.measured(module="tests.benchmarks.gpu.altered")
    assert set(sweep) >= KEYS
    # A minimum in memory is tried again where another thread was faster: how often is not known.
    loops = {kernel["kernel"]: kernel["loops_counted"] for kernel in sweep["heaviest"]}
    assert loops["fastest_candidates"] and all(known for name, known in loops.items() if "scatter" not in name)
    assert sweep["designs_per_call"] == altered["designs_per_call"]
    added = altered["instructions_per_design"] - sweep["instructions_per_design"]
    assert 2 * MORE <= added < 2.5 * MORE  # a product and a maximum, and what of the area is computed twice
    assert altered["projected_designs_per_second"] < altered["bound_designs_per_second"]
    lines = gpu_program.table([sweep, altered])
    assert len({line.count("|") for line in lines}) == 1

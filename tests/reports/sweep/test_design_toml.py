"""What the page's buttons copy: GPU files that load again as the very design and give its results."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dse.evaluate.run import run
from dse.grid.result import SweepResult
from dse.hardware.presets import Entry, load_sheet
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.design_explanations import design_numbers, design_sheet
from dse.reports.sweep.design_toml import design_files
from tests.conftest import SMALL
from tests.reports.conftest import QUICK, swept


def loaded(result: SweepResult, design: int, folder: Path):
    """The sheet of a front design's file."""
    path = folder / "design.toml"
    path.write_text(design_files(result.space, result.front).text(design, design + 1), encoding="utf-8")
    return load_sheet(path)


@pytest.mark.parametrize(
    "name", ["result", *(pytest.param(n, marks=pytest.mark.slow) for n in ("maximised", "without_baseline"))]
)
def test_a_file_loads_as_the_design(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    of_space = request.getfixturevalue(name)
    for design in (0, len(of_space.front) - 1):
        sheet = loaded(of_space, design, tmp_path)
        expected = of_space.space.base.numbers() | design_numbers(of_space.space, of_space.front.iloc[design])
        assert sheet.numbers() == expected
        assert sheet.title == f"small: Pareto design {design + 1}"


def test_a_loaded_design_gives_its_results(result: SweepResult, tmp_path: Path) -> None:
    sheet, space = loaded(result, 5, tmp_path), result.space
    for workload in space.workloads:
        ran = run(sheet, workload, space.model, space.power)
        for metric in ("time_ms", "energy_j"):
            assert ran.metrics[metric][0] == pytest.approx(result.front[f"{workload.name}.{metric}"].iloc[5], rel=1e-4)


@pytest.mark.slow
def test_a_changed_base_is_written(tmp_path: Path) -> None:
    of_space = swept(
        gpu={"l2_mib": 40, "process": "tsmc_n5"},
        axes={"sm_count": [96, 120]},
        links={},
        objectives=SMALL["objectives"][::2],
        **QUICK,
    )
    text = design_files(of_space.space, of_space.front).text(0, 1)
    assert 'process = "tsmc_n5"' in text
    assert loaded(of_space, 0, tmp_path).numbers()["l2_mib"] == 40


def test_a_base_of_ones_own_is_written_whole(result: SweepResult, tmp_path: Path) -> None:
    entries = result.space.base.entries
    cache = Entry(entries["l2_mib"].attribute, 44.0, "", "user")
    own = replace(result.space.base, name="my own", entries=entries | {"l2_mib": cache})
    of_space = replace(result, space=replace(result.space, base=own, name='a "quoted" \\ name'))
    sheet = loaded(of_space, 0, tmp_path)
    assert "base = " not in (tmp_path / "design.toml").read_text(encoding="utf-8").splitlines()[1]
    assert sheet.numbers() == own.numbers() | design_numbers(of_space.space, of_space.front.iloc[0])
    assert sheet.title.startswith('a "quoted" \\ name')


def test_lines_are_those_of_axes_and_links(result: SweepResult) -> None:
    files = design_files(result.space, result.front)
    assert files.names == ["tensor_fma_bf16", "sm_count", "dram_bandwidth_gbs", "tensor_fma_fp16", "tensor_fma_fp8"]
    assert files.head == 'name = "small: Pareto design {number}"\nbase = "h100_sxm"'
    fp8 = np.array([float(text) for text in files.literals["tensor_fma_fp8"]])[files.codes["tensor_fma_fp8"]]
    assert (fp8 == 2 * result.front["tensor_fma_bf16"].to_numpy()).all()


def test_sheets_of_chosen_designs(result: SweepResult) -> None:
    chosen = chosen_designs(result)
    assert design_sheet(result.space, chosen.iloc[0]) is result.space.base
    numbers = design_sheet(result.space, chosen.iloc[1]).numbers()
    assert numbers["sm_count"] == chosen["sm_count"].iloc[1]
    assert numbers["tensor_fma_fp8"] == 2 * chosen["tensor_fma_bf16"].iloc[1]

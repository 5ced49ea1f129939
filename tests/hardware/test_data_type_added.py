"""A data type is added by rows of tables alone: a product runs in it, in a copy of the package."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dse.hardware.presets import preset_sheet

PACKAGE = Path(__file__).parents[2] / "dse"

NEW, LIKE = "mxfp4", "fp4"
"""A second type of four bits, with scales of eight bits for 32 elements (OCP MX), and the one whose row it copies."""

ADDED = {
    "schema/data_types.csv": {
        "title": "MXFP4",
        "spellings": "mx_fp4",
        "scale_group": "32",
        "opcodes": "",
        "source": "OCP Microscaling Formats (MX) specification 1.0",
    },
    "schema/gpu.csv": {"description": "dense MXFP4 tensor rate"},
}
"""File -> what its new row says otherwise than that of the type before."""

MOST_FILES = 3

BASE, RATE = "b200", 512
"""The GPU that gets a tensor rate for the new type [FMA/cycle/tensor core], so low that products are bound by it."""

GPU = f'base = "{BASE}"\nname = "mine"\ntensor_fma_{NEW} = {RATE}\ntdp_w = 3000\n'


def add_row(path: Path, changes: dict[str, str]) -> None:
    """Append the row of LIKE under the name NEW."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    cells = {line.split(",", 1)[0].removeprefix("tensor_fma_"): line for line in lines}
    row = next(csv.DictReader([head, cells[LIKE]]))
    key = next(iter(row))
    row |= {key: row[key].replace(LIKE, NEW)} | changes
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, list(row), lineterminator="\n").writerow(row)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package that has the new type, a GPU that has its rate, and products."""
    root = tmp_path_factory.mktemp("added")
    shutil.copytree(PACKAGE, root / "dse", ignore=shutil.ignore_patterns("__pycache__"))
    for file, changes in ADDED.items():
        add_row(root / "dse" / "data" / file, changes)
    (root / "mine.toml").write_text(GPU)
    (root / "products.csv").write_text(
        f"m,n,k,dtype\n8192,8192,8192,{LIKE}\n8192,8192,8192,{NEW}\n16,8192,8192,{NEW}\n"
    )
    return root


def dse(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in the copy."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "dse", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def changed(before: Path, after: Path) -> list[str]:
    """Return the files of ``after`` that are not as in ``before``."""
    files = (path for path in after.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = [path.relative_to(after) for path in files]
    return [str(n) for n in names if not (before / n).exists() or (before / n).read_bytes() != (after / n).read_bytes()]


def test_an_added_type_touches_two_tables_and_no_code(folder: Path) -> None:
    touched = changed(PACKAGE, folder / "dse")
    assert sorted(touched) == sorted(f"data/{file}" for file in ADDED)
    assert len(touched) == 2 <= MOST_FILES


def test_a_product_runs_in_it(folder: Path) -> None:
    done = dse(folder, "run", "mine.toml", "products.csv", "--json")
    assert done.returncode == 0, done.stderr
    kernels: list[dict[str, Any]] = json.loads(done.stdout)["kernels"]
    like, square, flat = (kernel["time_us"] for kernel in kernels)
    base = preset_sheet(BASE).numbers()
    peak = base["sm_count"] * base["tensor_cores_per_sm"] * RATE * base["tensor_clock_mhz"]  # [FMA/us]
    assert 8192**3 / peak < square < 1.15 * 8192**3 / peak
    assert like < square / 3  # at eight times the rate
    assert flat < square / 20  # bound by the weights' bytes


def test_a_gpu_that_lacks_it_is_told_so(folder: Path) -> None:
    done = dse(folder, "run", "h100_sxm", "products.csv")
    assert (done.returncode == 2 and NEW in done.stderr) or LIKE in done.stderr


def test_it_is_an_attribute_with_words_bounds_and_a_peak(folder: Path) -> None:
    (folder / "peaks.toml").write_text(GPU + f"[peaks]\n{NEW} = 1\n")
    refused = dse(folder, "run", "peaks.toml", "products.csv")
    assert refused.returncode == 2 and f"peaks.{NEW} = 1 TFLOPS contradicts" in refused.stderr
    shown = dse(folder, "show", "schema")
    assert f"tensor_fma_{NEW}" in shown.stdout

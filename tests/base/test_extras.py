"""A package that is not installed is a sentence naming its extra; the main job needs none of them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.base.extras import extra

ROOT = Path(__file__).parents[2]
OPTIONAL = ("distributed", "mcp", "numba", "openpyxl", "optax", "optuna", "sklearn", "statsmodels")

LACKING = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from dse.cli import run_command
"""


def command_lacking(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that has the packages of the main job alone."""
    call = f"{LACKING}sys.exit(run_command({list(arguments)!r}))"
    return subprocess.run([sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True)


def test_a_package_that_is_there_is_imported() -> None:
    with extra("predict", "dse predict"):
        import json as found
    assert found is json


def test_the_sentence_names_the_package_and_the_extra() -> None:
    said = "dse predict needs sklearn, which is not installed; pip install 'gpu-dse[predict]'"
    with pytest.raises(InputError) as raised, extra("predict", "dse predict"):
        raise ModuleNotFoundError("No module named 'sklearn.ensemble'", name="sklearn.ensemble")
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("search", "h100_tensor_core", "--evaluations", "10"), "search"),
        (("trace", "tests/traces/data"), "traces"),
        (("sweep", "h100_tensor_core", "--cluster", "local:1"), "cluster"),
        (("mcp",), "mcp"),
    ],
)
def test_commands_beside_the_main_job_name_what_to_install(arguments: tuple[str, ...], name: str) -> None:
    done = command_lacking(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("dse: ") and f"pip install 'gpu-dse[{name}]'" in done.stderr


def test_what_answers_the_main_job_imports_none_of_them() -> None:
    folders = ("common", "compare", "explain", "run", "sweep")
    files = [file for name in folders for file in (ROOT / "dse" / "reports" / name).rglob("*.py")]
    files += [ROOT / "dse" / "reports" / name for name in ("figure.py", "redraw.py")]
    names = sorted({".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files})
    call = f"{LACKING}import importlib\nfor name in {names!r}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_main_job_needs_none_of_them(quick, write_space, tmp_path: Path) -> None:
    space, out = str(write_space(quick)), str(tmp_path / "out")
    work = "llama3_8b:phase=decode,batch=8,context=1024"
    for arguments in (
        ("show", "gpus"),
        ("check", space),
        ("sweep", space, "-o", out),
        ("sweep", space, "-o", f"{out}-front", "--keep", "front", "--refine"),
        ("report", out),
        ("run", "h100_sxm", work),
        ("compare", "h100_sxm", "h200", work),
        ("explain", "h100_sxm", work),
    ):
        done = command_lacking(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


def test_the_extras_hold_what_the_sentences_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {"sklearn": "scikit-learn"}
    extras = " ".join(package for packages in project["optional-dependencies"].values() for package in packages)
    for package in OPTIONAL:
        assert named.get(package, package) in extras
        assert not any(one.startswith(named.get(package, package)) for one in project["dependencies"])

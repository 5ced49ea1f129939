"""Importing the package imports nothing heavy; its names load on first use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dse

HEAVY = ("jax", "jaxlib", "numpy", "pandas", "optuna", "plotly", "pyarrow", "optax", "equinox", "pydantic", "cyclopts")


def heavy_after(statement):
    """Heavy packages that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_importing_the_package_imports_nothing_heavy():
    assert heavy_after("import dse") == []


def test_listing_the_names_imports_nothing_heavy():
    assert heavy_after("import dse; dir(dse); dse.__version__") == []


def test_sheets_and_schema_are_shown_without_the_models():
    statement = "from dse.hardware.presets import load_sheet; load_sheet('h100_sxm')"
    assert not {"jax", "numpy", "pandas"} & set(heavy_after(statement))


def test_a_run_needs_no_library_of_tables_plots_or_searches():
    loaded = heavy_after("import dse.cli.kernels, dse.evaluate.run, dse.reports.run.notes, dse.reports.run.terminal")
    assert "jax" in loaded
    assert not {"pandas", "optuna", "plotly", "pyarrow", "optax"} & set(loaded)


@pytest.mark.parametrize("table", ["gpus", "schema", "spaces", "engines", "columns"])
def test_tables_are_shown_without_the_models(table):
    statement = f"from dse.cli import run_command; assert run_command(['show', '{table}', '--json']) == 0"
    assert "jax" not in heavy_after(statement)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'gpu_of_dreams'"):
        dse.gpu_of_dreams  # noqa: B018


def test_a_name_loads_on_first_use():
    from dse.hardware.gpu import Gpu

    assert dse.Gpu is Gpu
    assert set(dir(dse)) == set(dse.__all__)


PUBLIC = {
    "Amali", "AssumedEffects", "AxisVerdicts", "Comparison", "DieArea", "Explanation", "Gpu", "GpuComparison",
    "InputError", "Kernel", "ParetoSampler", "Roofline", "RunResult", "SearchResult", "Space", "SpaceObjective",
    "SweepResult", "Timing", "Workload", "__version__", "assumed_numbers", "axis_verdicts", "compare", "compare_gpus",
    "explain", "Quantity", "WorkloadObjective", "calibrate_engine", "calibrate_power", "calibrate_timing", "measure",
    "objective", "predict", "report", "scale", "trace", "validate",
    "load_gpu", "load_space", "load_workload", "merge", "pareto_mask", "run", "search", "sweep",
    "sweep_shard", "verdict_sentences",
}  # fmt: skip


def test_what_functions_take_return_and_raise_is_public_beside_them():
    assert set(dse.__all__) == PUBLIC
    assert all(getattr(dse, name).__name__.endswith(name) for name in PUBLIC - {"__version__"})


def test_the_error_to_catch_loads_without_the_models():
    assert heavy_after("from dse import InputError") == []


def test_sweep_and_search_are_plain_functions_whatever_was_imported():
    code = "import dse.grid.sweep, dse.pareto.search, inspect; print(*map(inspect.isfunction, (dse.sweep, dse.search)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_only_the_room_of_searches_imports_optuna():
    files = sorted(Path(dse.__file__).parent.rglob("*.py"))
    importing = [
        p.parent.name for p in files for node in ast.walk(ast.parse(p.read_text(encoding="utf-8"))) if names(node)
    ]
    assert set(importing) == {"pareto"}


def names(node):
    """Whether a node of a syntax tree imports optuna."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "optuna" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "optuna"

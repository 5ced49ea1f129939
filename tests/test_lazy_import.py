"""Importing the package imports nothing heavy; its names load on first use."""

import subprocess
import sys

import pytest

import dse

HEAVY = ("jax", "jaxlib", "numpy", "pandas", "optuna", "plotly", "pyarrow", "optax", "equinox", "pydantic", "cyclopts")


def heavy_after(statement):
    """Heavy packages that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_the_package_imports_nothing_heavy():
    assert heavy_after("import dse") == []


def test_listing_the_names_imports_nothing_heavy():
    assert heavy_after("import dse; dir(dse); dse.__version__") == []


def test_sheets_and_schema_are_shown_without_the_models():
    statement = "from dse.hardware.presets import load_sheet; load_sheet('h100_sxm')"
    assert not {"jax", "numpy", "pandas"} & set(heavy_after(statement))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'gpu_of_dreams'"):
        dse.gpu_of_dreams  # noqa: B018


def test_a_name_loads_on_first_use():
    from dse.hardware.gpu import Gpu

    assert dse.Gpu is Gpu
    assert set(dir(dse)) == set(dse.__all__)

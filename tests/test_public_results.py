"""What public functions return is alike: tables by to_frame, figures by name, numbers with units."""

import inspect

import pandas as pd
import plotly.graph_objects as go
import pytest

import dse
from dse.base.quantity import Quantity

SPACE = """base = "h100_sxm"
[axes]
sm_count = [96, 132]
dram_bandwidth_gbs = [2000, 3350]
[workloads]
gemm = "g.csv"
[[objectives]]
value = "gemm.time_ms"
goal = "min"
[[objectives]]
value = "die_mm2"
goal = "min"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("public")
    (path / "g.csv").write_text("m,n,k\n4096,4096,4096\n")
    (path / "s.toml").write_text(SPACE)
    return path


@pytest.fixture(scope="module")
def swept(folder):
    return dse.sweep(dse.load_space(folder / "s.toml"), folder / "out")


def test_a_quantity_is_a_value_and_a_unit():
    value, unit = quantity = Quantity(1.5, "ms")
    assert (value, unit, str(quantity), quantity.document()) == (1.5, "ms", "1.5 ms", {"value": 1.5, "unit": "ms"})
    assert str(Quantity(0.5, "1")) == "0.5"


def test_metrics_of_a_run_are_quantities_here_and_in_its_document(folder):
    result = dse.run("h100_sxm", str(folder / "g.csv"))
    said = result.summary()["metrics"]["time_ms"]
    assert {key: said[key] for key in ("value", "unit")} == result.metrics["time_ms"].document()
    assert result.to_frame() is result.kernels


def test_a_sweep_has_tables_and_figures(swept):
    assert swept.to_frame() is swept.pareto()
    assert swept.figure_names() == ["pareto", "stacks", "axes"]
    for name in ("", *swept.figure_names()):
        assert isinstance(swept.figure(name), go.Figure)
    assert {trace.name for trace in swept.figure("pareto").data} == {"feasible designs", "front", "baseline"}
    with pytest.raises(dse.InputError, match=r"figure = 'paretto' is not accepted; did you mean 'pareto'"):
        swept.figure("paretto")


def test_a_comparison_has_a_figure(folder):
    found = dse.compare_gpus(["h100_sxm", "h200"], str(folder / "g.csv"))
    assert isinstance(found.figure(), go.Figure)
    assert isinstance(found.to_frame(), pd.DataFrame)


def test_a_validation_has_rows_and_figures(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("device,op,dtype,m,n,k,latency_us\nNVIDIA H200,gemm,bf16,4096,4096,4096,215\n")
    found = dse.validate(path)
    assert len(found.to_frame()) == 1
    assert isinstance(found.figure("scatter"), go.Figure)
    with pytest.raises(dse.InputError, match="no quantity is called 'joy'"):
        dse.validate(path, "joy")


@pytest.mark.parametrize("name", [n for n in dse.__all__ if inspect.isfunction(getattr(dse, n))])
def test_every_public_function_says_what_it_does(name):
    assert len(inspect.getdoc(getattr(dse, name)) or "") > 40

"""Experiment 002: its data functions, on a few rows and small traces."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dse.timing.timing import CAUSES

pytestmark = pytest.mark.slow  # ten programs

FOLDER = Path(__file__).parents[2] / "experiments" / "002_amali_ablation"
MODULES = ("variants", "measured", "tensor", "shared_traces", "drawings")
DEVICE = "A100-SXM4-80GB"
ROW = {"source": "vidur", "device": DEVICE, "dtype": "fp16", "latency_us": 100.0}
ROWS = pd.DataFrame(
    [
        ROW | {"op": "gemm", "kind": "gemm", "phase": "prefill", "tokens": 2048, "m": 2048, "n": 6144, "k": 4096},
        ROW | {"op": "gemm", "kind": "gemm", "phase": "decode", "tokens": 8, "m": 8, "n": 6144, "k": 4096},
        ROW | {"op": "add", "kind": "elementwise", "phase": "decode", "tokens": 8, "rows": 8, "cols": 4096},
        ROW | {"op": "rmsnorm", "kind": "elementwise", "phase": "prefill", "tokens": 512, "rows": 512, "cols": 4096},
    ]
)


@pytest.fixture(scope="module")
def ablation():
    """The modules of the experiment by name, forgotten afterwards: other experiments may use the same names."""
    sys.path.insert(0, str(FOLDER))
    modules = SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in ("amali as printed", "mdm"):  # for speed
        del modules.variants.VARIANTS[name]
    yield modules
    sys.path.remove(str(FOLDER))
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture(scope="module")
def predicted(ablation):
    """What all variants say of ROWS."""
    return ablation.measured.predict(ROWS, DEVICE)


def us(predicted: pd.DataFrame, variant: str) -> np.ndarray:
    return predicted.loc[predicted["variant"] == variant, "us"].to_numpy()


def test_every_row_gets_every_variant_and_stacks_add_up(ablation, predicted):
    assert len(predicted) == len(ROWS) * len(ablation.variants.VARIANTS)
    assert predicted[list(CAUSES)].sum(axis=1).to_numpy() == pytest.approx(predicted["us"].to_numpy(), rel=1e-5)


def test_each_term_changes_what_it_should(predicted):
    gcom, tensor, launch = (us(predicted, name) for name in ("gcom", "+ tensor core", "+ launch"))
    assert tensor[0] < 0.7 * gcom[0]  # 8 cycles instead of 16
    assert list(tensor[2:]) == list(gcom[2:])  # no tensor core
    assert (launch > gcom + 1.5).all()  # 2200 cycles at 1.41 GHz
    assert us(predicted, "+ divergence") == pytest.approx(gcom)  # a label for cycles that are issued anyway
    assert us(predicted, "amali")[1] > us(predicted, "+ tensor core")[1]  # the floor: weights from DRAM


def test_the_held_kernel_is_the_fastest_of_the_full_model_only(ablation, predicted):
    full = predicted[predicted["variant"] == ablation.variants.FULL]
    assert (full["us"] == full["own_us"]).all()
    assert (predicted["own_us"] <= predicted["us"] * (1 + 1e-6)).all()


def test_errors_by_hand(ablation):
    frame = pd.DataFrame({"kind": "gemm", "variant": "v", "us": [50.0, 200.0, 110.0], "latency_us": 100.0})
    (row,) = ablation.measured.errors(frame, ["kind"]).to_dict("records")
    assert (row["n"], row["mape"], row["median"]) == (3, pytest.approx(160 / 3), pytest.approx(50))
    assert row["bias"] == pytest.approx(1.1 ** (1 / 3))


def test_the_page_holds_its_figures_and_one_plotly(ablation, predicted, tmp_path):
    stacks = ablation.measured.stacks(predicted)
    figure = ablation.drawings.measured_figure(stacks)
    bars = {(bar.name, bar.xaxis): list(bar.y) for bar in figure.data}
    math = stacks.query("kind == 'gemm' and phase == 'prefill'")["math_pipe_throttle"]
    assert bars["math_pipe_throttle", "x"] == pytest.approx(list(math))
    ablation.drawings.write_page(tmp_path / "page.html", {"measured": figure})
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('id="measured"') == 1
    assert "<script src=" not in page  # plotly.js stands in the page


def test_rows_are_chosen_by_the_rule(ablation):
    rows = ablation.measured.select()
    assert set(rows["device"]) == set(ablation.measured.DEVICES)
    assert set(rows["dtype"]) == {"fp16", "bf16"}
    assert (rows["tokens"].between(1, 64) | rows["tokens"].between(128, 6144)).all()
    grid = rows[rows["source"] == "aiconfigurator"]
    assert grid[["n", "k"]].min().min() >= 4096 and grid[["n", "k"]].max().max() <= 16384
    assert rows["bin"].notna().all()


@pytest.mark.slow
def test_gcom_is_blind_to_the_instruction_and_amali_is_not(ablation, monkeypatch):
    monkeypatch.setitem(ablation.variants.VARIANTS, "amali as printed", ablation.variants.terms(tensor=True))
    a100 = {"A100": ablation.tensor.gpus()["A100"]}
    monkeypatch.setattr(ablation.tensor, "gpus", lambda: a100)
    table = ablation.tensor.study((2, 4)).set_index(["model", "opcode"])["cycles_of_hmma"]
    wide, narrow = ablation.tensor.HMMA
    assert table["gcom", wide] == pytest.approx(table["gcom", narrow], rel=0.01) == pytest.approx(16, rel=0.01)
    assert table["amali", wide] == pytest.approx(8, rel=1e-3)
    assert table["amali", narrow] == pytest.approx(4, rel=1e-3)

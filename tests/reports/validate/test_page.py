"""The page of ``dse validate --quantity time``: its data, self-contained, the same bytes twice, escaped."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from dse.cli import run_command
from dse.reports.validate import data as findings_validate
from dse.reports.validate.figures import ratio_figure, scatter_figure, shape_figure, worst_stacks_figure
from dse.reports.validate.page import validation_page_html, write_validation_page
from dse.validation.time import TimeValidation, validate_time
from tests.measured.network_runs.runs import ROW
from tests.reports.conftest import HOSTILE

ATTENTION = {"op": "attn_prefill", "dtype": "fp16", "batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128}


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Thirty products of two devices, with repeats; attention, a vector kernel; one row that is skipped."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "device": device,
            "op": "gemm",
            "dtype": "bf16",
            "m": m,
            "n": 1024,
            "k": 4096,
            "rep_n": 5,
            "latency_us": 5 + m / 60 * rng.lognormal(0, 0.1),
        }
        for device in ("H100-SXM5-80GB", "A100-SXM4-80GB")
        for m in np.geomspace(16, 8192, 15).astype(int)
    ]
    rows += [
        ATTENTION | {"device": "H100-SXM5-80GB", "seq_q": s, "seq_kv": s, "latency_us": s / 10} for s in (512, 2048)
    ]
    rows.append(
        {
            "device": "H100-SXM5-80GB",
            "op": "rmsnorm",
            "dtype": "fp16",
            "rows": 4096,
            "cols": 4096,
            "latency_us": 40.0,
            "source": "vidur",
        }
    )
    rows.append({"device": HOSTILE, "op": "gemm", "dtype": "bf16", "m": 8, "n": 8, "k": 8, "latency_us": 5.0})
    frame = pd.DataFrame(rows).fillna({"source": "aiconfigurator"})
    frame["rep_lo_us"], frame["rep_hi_us"] = 0.95 * frame["latency_us"], 1.05 * frame["latency_us"]
    path = tmp_path_factory.mktemp("page") / "t.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def found(table) -> TimeValidation:
    return validate_time(table)


def test_points_are_thinned_evenly_and_keep_the_ends(found):
    every = findings_validate.points(found)
    assert len(every) == len(found.rows) == 33
    some = findings_validate.points(found, most=12)
    assert len(some) < 18
    for _, part in every.groupby(["device", "kind"]):
        mine = some[(some["device"] == part["device"].iloc[0]) & (some["kind"] == part["kind"].iloc[0])]
        assert len(mine) >= 1
        assert mine["measured_us"].min() == part["measured_us"].min()
    np.testing.assert_allclose(every["ratio"], every["predicted_us"] / every["measured_us"])


def test_bins_hold_every_row_of_a_varied_shape(found):
    tables = findings_validate.shape_errors(found)
    products = tables["Matrix products"]
    assert set(products["column"]) == {"m"}  # n and k do not vary
    assert products["n"].sum() <= 30
    assert ((products["low"] <= products["middle"]) & (products["middle"] <= products["high"])).all()
    assert set(tables["Attention"]["column"]) == {"seq_q", "seq_kv"}
    assert "Vector kernels" not in tables  # one row


def test_stacks_add_up_to_what_is_predicted(found):
    stacks = findings_validate.worst_stacks(found)
    whole = stacks.groupby("place").agg({"us": "sum", "predicted_us": "first"})
    assert len(whole) == 20
    np.testing.assert_allclose(whole["us"], whole["predicted_us"], rtol=1e-3)
    assert stacks.groupby("place")["share"].sum().max() < 1.001
    assert set(stacks["part"]) <= set(findings_validate.MEANINGS)


def test_few_rows_of_a_series_are_dots(found):
    bins = findings_validate.shape_errors(found)["Matrix products"]
    assert (bins["n"] == 1).all() and len(bins) == 30  # fifteen rows of each device
    figure = shape_figure(bins)
    assert {trace.mode for trace in figure.data} == {"markers"}


def test_times_of_runs_are_in_seconds(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [ROW | {"seq_kv": n, "latency_us": 1e4 * n} for n in (32.0, 128.0, 512.0)]
    pd.DataFrame(rows).to_csv(path, index=False)
    runs = validate_time(path)
    figure = scatter_figure(findings_validate.points(runs))
    assert figure.layout.xaxis.title.text == "measured [s]"  # pyright: ignore
    assert sorted(figure.data[-1].x) == pytest.approx([0.32, 1.28, 5.12])
    assert ratio_figure(findings_validate.points(runs)).layout.xaxis.title.text == "measured [s]"  # pyright: ignore
    for one in (figure, worst_stacks_figure(findings_validate.worst_stacks(runs))):
        assert " us" not in str(one.to_json())
    assert "host" in set(findings_validate.worst_stacks(runs)["part"])


def test_one_row_is_told_as_one(table, tmp_path):
    path = tmp_path / "one.csv"
    pd.read_csv(table).head(1).to_csv(path, index=False)
    page = validation_page_html(validate_time(path))
    assert "1 row of H100-SXM5-80GB is predicted" in page and "The row that is farthest off" in page
    assert "1 rows" not in page


def test_drawn_stacks_are_those_of_the_document():
    shape = {"device": "A", "op": "gemm", "dtype": "bf16", "m": 1.0, "n": 1.0, "k": 1.0, "kernel": "", "ratio": 1.2}
    row = shape | {
        "measured_us": 10.0,
        "predicted_us": 12.0,
        "stack_us": {"overhead": 9.0, "selected": 1.0, "wait": 2.0},
    }
    stacks = findings_validate.worst_stacks(cast(TimeValidation, SimpleNamespace(document={"worst": [row]})))
    assert dict(zip(stacks["part"], stacks["us"], strict=True)) == {"overhead": 9.0, "selected": 1.0, "wait": 2.0}
    assert stacks["share"].sum() == pytest.approx(1.0)


def test_noise_and_predictors(found):
    groups = {(g["device"], g["op"]): g for g in found.document["groups"] if g["regime"] == "all"}
    assert groups["H100-SXM5-80GB", "gemm"]["noise_floor"] == pytest.approx(100 * 0.1 * 0.79788 / 2.326, rel=1e-3)
    assert groups["H100-SXM5-80GB", "attn_prefill"]["noise_floor"] is None
    assert [(p.device, p.rows, p.calibration, p.fitted_on_it) for p in found.predictors] == [
        ("A100-SXM4-80GB", 15, "a100_sxm_80gb", True),
        ("H100-SXM5-80GB", 18, "h100_sxm", True),
    ]


def test_the_page_is_whole_and_the_same_twice(found, table, tmp_path):
    page = validation_page_html(found)
    head, rest = page.split("<script>", 1)
    bare = head + rest.split("</head>", 1)[1]
    assert not re.findall(r"\b(?:src|href)\s*=\s*[\"'](?:https?:)?//", bare)
    sections = re.findall(r'<section id="(\w+)"', bare)
    assert sections == ["answer", "points", "groups", "shapes", "worst", "predictors", "skipped"]
    assert HOSTILE not in bare
    write_validation_page(found, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert run_command(["validate", str(table), "--quantity", "time", "-o", str(tmp_path / "b.html")]) == 0
    assert (tmp_path / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_a_table_without_calibration_has_a_page(table):
    bare = validate_time(table, timing="roofline")
    assert "roofline" in validation_page_html(replace(bare, notes=()))


def test_power_has_no_page(table, tmp_path):
    assert run_command(["validate", str(table), "--quantity", "power", "-o", str(tmp_path / "c.html")]) == 2
    assert not (tmp_path / "c.html").exists()

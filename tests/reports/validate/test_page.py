"""The page of ``dse validate --quantity time``: its data, self-contained, the same bytes twice, escaped."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from dse.cli import run_command
from dse.reports.validate import data as validate_data
from dse.reports.validate.figures import ratio_figure, scatter_figure, worst_stacks_figure
from dse.reports.validate.page import validation_page_html, write_validation_page
from dse.validation.time import validate_time
from tests.measured.network_runs.runs import ROW
from tests.reports.conftest import HOSTILE


def test_times_of_runs_are_in_seconds(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [ROW | {"seq_kv": n, "latency_us": 1e4 * n} for n in (32.0, 128.0, 512.0)]
    pd.DataFrame(rows).to_csv(path, index=False)
    runs = validate_time(path)
    figure = scatter_figure(validate_data.points(runs))
    assert figure.layout.xaxis.title.text == "measured [s]"  # pyright: ignore
    assert sorted(figure.data[-1].x) == pytest.approx([0.32, 1.28, 5.12])
    assert ratio_figure(validate_data.points(runs)).layout.xaxis.title.text == "measured [s]"  # pyright: ignore
    for one in (figure, worst_stacks_figure(validate_data.worst_stacks(runs))):
        assert " us" not in str(one.to_json())
    assert "host" in set(validate_data.worst_stacks(runs)["part"])


def test_one_row_is_reported_as_one(table, tmp_path):
    path = tmp_path / "one.csv"
    pd.read_csv(table).head(1).to_csv(path, index=False)
    page = validation_page_html(validate_time(path))
    assert "1 row of H100-SXM5-80GB is predicted" in page and "The row that is farthest off" in page
    assert "1 rows" not in page


def test_the_page_is_whole_and_the_same_twice(validation, table, tmp_path):
    page = validation_page_html(validation)
    head, rest = page.split("<script>", 1)
    bare = head + rest.split("</head>", 1)[1]
    assert not re.findall(r"\b(?:src|href)\s*=\s*[\"'](?:https?:)?//", bare)
    sections = re.findall(r'<section id="(\w+)"', bare)
    assert sections == ["answer", "points", "groups", "shapes", "worst", "predictors", "skipped"]
    assert HOSTILE not in bare
    write_validation_page(validation, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert run_command(["validate", str(table), "--quantity", "time", "-o", str(tmp_path / "b.html")]) == 0
    assert (tmp_path / "b.html").read_bytes() == (tmp_path / "a.html").read_bytes()


def test_a_table_without_calibration_has_a_page(table):
    bare = validate_time(table, timing="roofline")
    assert "roofline" in validation_page_html(replace(bare, notes=()))


def test_power_has_no_page(table, tmp_path):
    assert run_command(["validate", str(table), "--quantity", "power", "-o", str(tmp_path / "c.html")]) == 2
    assert not (tmp_path / "c.html").exists()

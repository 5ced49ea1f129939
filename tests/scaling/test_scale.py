"""``dse scale``: its document, what it skips and why, its page, and its refusals."""

import json

import pytest
from rich.console import Console

from dse.base.errors import InputError
from dse.cli import run_command
from dse.reports.common.figures import plotly_script
from dse.reports.scale.page import scaling_page_html
from dse.reports.scale.terminal import print_scaling
from dse.scaling.scale import scale
from dse.scaling.scale_model import METHODS
from tests.scaling.tables import HEAD, TABLE, written


def test_document(tmp_path, capsys):
    path, page = written(tmp_path, TABLE), tmp_path / "p.html"
    assert run_command(["scale", str(path), "--json", "-o", str(page)]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert list(document) == ["table", "scale_models", "predictions", "errors", "points", "coverage", "cliffs",
                              "speed_ups", "notes", "skipped"]  # fmt: skip
    assert list(document["predictions"]) == list(document["errors"]) == ["t"]
    assert list(document["predictions"]["t"]) == list(document["errors"]["t"]) == list(METHODS)
    assert set(document["predictions"]["t"]["recursion"]) == {"flat"}
    assert set(document["predictions"]["t"]["recursion"]["flat"]) == {"32", "48"}
    assert document["predictions"]["t"]["proportional"]["cliff"]["32"] == 40
    assert set(document["errors"]["t"]["recursion"]) == {"32"}  # no truth at 48
    c0 = 2 - 20 / 19
    assert document["errors"]["t"]["recursion"]["32"]["mean"] == pytest.approx(100 * (1 - 38 * c0 / 36))
    assert document["errors"]["t"]["proportional"]["32"]["max"] == pytest.approx(400)
    assert document["scale_models"] == {"t": {"unit": "SM", "small": 8, "large": 16}}
    (point,) = (p for p in document["points"] if (p["method"], p["benchmark"], p["size"]) == ("recursion", "flat", 32))
    assert (point["sheet"], point["truth"]) == ("t", 36)
    assert point["off_percent"] == pytest.approx(100 * (38 * c0 / 36 - 1))
    low, high = point["interval"]
    assert low < point["ipc"] < high
    assert document["coverage"]["t"]["32"] == {"inside": 1, "truths": 1}
    assert document["cliffs"]["t"]["cliff"] == [{"before": 16, "after": 32, "f_mem": None}]
    assert document["speed_ups"] == [{"sheet": "t", "benchmark": "flat", "size": 32, "factor": 300 / 190}]
    reasons = " ".join(document["skipped"])
    for part in ("needs f_mem", "no faster than half", "no ipc at 8 or 16", "without mpki at every size"):
        assert part in reasons
    assert "skipped: " in captured.err
    drawn = page.read_text(encoding="utf-8").replace(plotly_script(), "")
    assert "flat" in drawn and "<script src" not in drawn
    assert not list(tmp_path.glob("*.partial"))


def test_other_scale_models(tmp_path):
    answer = scale(written(tmp_path, TABLE), small=16, large=32)
    (sheet,) = answer.sheets
    assert (sheet.small, sheet.large) == (16, 32)
    assert {p.size for p in sheet.points} == {48}
    assert any("lies below the large scale model" in r or "no size above" in r for r in answer.skipped)


def test_sizes_left_out_make_no_cliff_but_a_note(tmp_path, capsys, monkeypatch):
    """Each doubling falls by 1.3x: the prediction is the same whether the sizes between stand in the table or not."""
    monkeypatch.chdir(tmp_path)
    gap = HEAD + "x,8,100,64,0.5,\n,16,199,60,,\n,128,,25,,\n"
    predicted, whole = scale(written(tmp_path, gap)), scale(written(tmp_path, gap + ",32,,45,,\n,64,,33,,\n", "u.csv"))
    at = [p for p in predicted.sheets[0].points if p.size == 128]
    assert [p.ipc for p in at] == [p.ipc for p in whole.sheets[0].points if p.size == 128]
    assert whole.notes == ()
    assert run_command(["scale", str(tmp_path / "t.csv")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "t: x: mpki falls from 60 to 25 between 16 and 128 SMs, by less than 2x a doubling" in printed


def test_large_sizes_keep_their_names(tmp_path):
    predicted = scale(written(tmp_path, HEAD + "x,8,10,5,,\n,16,20,5,,\n,999999,,5,,\n,1000000,,5,,\n")).document()
    assert list(predicted["predictions"]["t"]["recursion"]["x"]) == ["999999", "1000000"]


def test_what_falls_to_nothing_is_reported_and_no_prediction(tmp_path):
    answer = scale(written(tmp_path, HEAD + "x,64,100,5,,\n,80,80,5,,\n,160,,5,,\n,640,,5,,\n,1000000,,5,,\n"))
    predicted = {(p.method, p.size): p for p in answer.sheets[0].points}
    assert ("recursion", 640) not in predicted and ("linear", 160) not in predicted
    assert all(p.ipc >= 0.8 for p in predicted.values())
    low, _ = predicted["recursion", 160].interval
    assert low > 0
    why = "falls below 0.01 of the large scale model's IPC: no prediction, and in no interval"
    assert answer.skipped[f"recursion: {why}"] == 2
    assert answer.skipped[f"linear: {why}"] == 3


def test_same_answer_same_bytes(tmp_path):
    path = written(tmp_path, TABLE)
    assert scaling_page_html(scale(path)) == scaling_page_html(scale(path))


def test_one_size_only(tmp_path):
    with pytest.raises(InputError, match="holds one size only"):
        scale(written(tmp_path, HEAD + "a,8,10,5,,\n"))


HARD = HEAD + (
    "easy,8,10,5,,\n,16,19,5,,\n,32,36,5,,\n,64,70,5,,\n"
    "hard,8,10,5,,\n,16,9,5,,\n,32,20,5,,\n"
    "even,8,10,5,,\n,16,20,5,,\n,32,38,5,,\n,64,70,5,,\n"
)
"""The recursion predicts nothing of ``hard``, and the others are far off."""


def test_methods_are_compared_on_what_all_of_them_predict(tmp_path):
    answer = scale(written(tmp_path, HARD))
    errors = answer.document()["errors"]["t"]
    assert {m: errors[m]["32"]["n"] for m in METHODS} == dict.fromkeys(METHODS, 3) | {"recursion": 2}
    assert {errors[m][size]["shared_n"] for m in METHODS for size in ("32", "64")} == {2}
    points = [p for p in answer.sheets[0].points if (p.method, p.size) == ("proportional", 32)]
    of = {p.benchmark: p.error or 0.0 for p in points}
    assert errors["proportional"]["32"]["mean"] == pytest.approx(sum(of.values()) / 3)
    assert errors["proportional"]["32"]["shared_mean"] == pytest.approx((of["easy"] + of["even"]) / 2)
    assert errors["recursion"]["32"]["shared_max"] == errors["recursion"]["32"]["max"]


def test_the_table_and_the_page_say_over_which_benchmarks(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run_command(["scale", str(written(tmp_path, HARD))]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    message = (
        "Over the benchmarks that every method predicts: 2 of 3 at 32, 2 of 2 at 64 SMs. In brackets: how many a "
        "method predicts."
    )
    assert message in printed and "(3)" in printed
    assert message in (tmp_path / "scale-t.html").read_text(encoding="utf-8")


def test_a_size_that_no_benchmark_has_of_every_method_has_no_comparison(tmp_path):
    cliff = "cliff,8,10,5,,\n,16,19,5,,\n,32,60,1,,\n"  # methods that see it lack f_mem
    falling = "falling,8,100,5,,\n,16,60,5,,\n,32,50,5,,\n"  # the linear one falls to nothing
    answer = scale(written(tmp_path, HEAD + cliff + falling))
    predicted = [e["32"] for e in answer.document()["errors"]["t"].values() if e]
    assert len(predicted) == 6
    assert {(e["shared_n"], e["shared_mean"], e["shared_max"]) for e in predicted} == {(0, None, None)}
    assert "0 of 2 at 32 SMs" in scaling_page_html(answer)
    print_scaling(answer, Console())

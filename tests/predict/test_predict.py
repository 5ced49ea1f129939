"""``dse predict``: a device left out with its generation, baselines beside, studies, the document, refusals."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dse.cli import run_command
from dse.errors import InputError
from dse.predict.model import type_of
from dse.predict.predict import _notes_of_units, beats, predict
from dse.predict.transfer import Transfer
from dse.report.figures import plotly_script
from dse.report.findings_predict import CURVE, inlier_curves
from dse.report.page_predict import predict_page_html
from tests.predict.tables import gemm_table

QUICK = ("ols", "nnls")
SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "measured"


@cache
def answer(folder):
    return predict(gemm_table(folder / "t.csv"), "H100", "V100", predictors=QUICK)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return answer(tmp_path_factory.mktemp("predict"))


def test_a_device_is_predicted_from_older_ones(found):
    ((key, transferred),) = found.transfers.items()
    assert key == ("gemm", "fp16")
    assert transferred.train.devices == ["a100_sxm_80gb", "v100_sxm2_16gb"]
    assert set(transferred.test.frame["preset"]) == {"h100_sxm"}
    errors = {b.name: b.target["error"] for b in transferred.baselines}
    assert errors["calibrated roofline fitted to the target itself"] < 3  # the law the table follows, with its noise
    assert transferred.chosen.target["error"] < errors["analytical model alone"]
    assert len(transferred.judged) == len(QUICK) * 3


def test_document(found):
    document = found.document()
    json.dumps(document, allow_nan=False)
    (group,) = document["groups"]
    assert len(group["predictors"]) == 6
    assert {p["mode"] for p in group["predictors"]} == {"plain", "analytical", "residual"}
    assert [p["e_out"] for p in group["predictors"]] == sorted(p["e_out"] for p in group["predictors"])
    assert list(group["predictors"][0]["target"]["inliers"]) == ["1", "5", "10", "15", "20", "30", "40", "50"]
    assert [b["fair"] for b in group["baselines"]] == [True, True, True, False]
    (transferred,) = found.transfers.values()
    assert group["beats_baselines"] == beats(transferred.chosen, transferred)
    (said,) = document["said"]
    assert ("beats both" if group["beats_baselines"] else "does not beat both") in said


def test_the_order_of_the_rows_tells_nothing(found, tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "u.csv")).sample(frac=1, random_state=3)
    frame.to_csv(tmp_path / "u.csv", index=False)
    shuffled = predict(tmp_path / "u.csv", "H100", "V100", predictors=QUICK).document()
    document = found.document()
    for group in (*shuffled["groups"], *document["groups"]):
        for row in group["predictors"]:
            del row["fit_seconds"]
    for key in set(document) - {"table", "table_sha256"}:
        assert shuffled[key] == document[key], key


def test_studies(found):
    studies = found.studies
    (without_any, *others) = studies["feature_study"]
    assert without_any["without"] is None
    assert len(others) >= 6
    (row,) = studies["fewer_sms"]
    assert row["from"] == {"a100_sxm_80gb": 108, "v100_sxm2_16gb": 80}
    host = studies["host_to_target"]
    assert {(r["predictor"], r["mode"]) for r in host} == {
        (p, m) for p in QUICK for m in ("plain", "analytical", "residual")
    }
    assert host[0]["rows"] == 64
    assert host[0]["e_out_families"]["error"] < 20


def test_the_chosen_predictors_are_a_timing_model(found):
    model = found.model()
    assert model.calibration == "learned on gemm fp16 of a100_sxm_80gb, v100_sxm2_16gb in t.csv"
    assert (model.kinds, model.types) == ((0,), (type_of("fp16"),))


def test_times_in_another_unit_are_told():
    apart = {"a100_sxm_80gb": 800.0, "v100_sxm2_16gb": 0.9}
    parts = {name: SimpleNamespace(analytical=np.full(3, ratio), y=np.ones(3)) for name, ratio in apart.items()}
    rows: Any = SimpleNamespace(devices=list(apart), of=parts.get)
    (note,) = _notes_of_units(rows)
    assert note.startswith("the median row of a100_sxm_80gb is predicted 8e+02 times as long as measured")


def test_what_is_chosen_has_not_seen_the_target():
    """The least error on devices left out of training, then under folds; the target's own is hindsight."""

    def judged(name, transfer, out, target):
        return SimpleNamespace(name=name, e_transfer=transfer, e_out={"error": out}, target={"error": target})

    three = SimpleNamespace(judged=(judged("a", 9.0, 1.0, 9.0), judged("b", 5.0, 3.0, 8.0), judged("c", 5.0, 4.0, 1.0)))
    assert Transfer.chosen.fget(three).name == "b"
    assert Transfer.least_e_out.fget(three).name == "a"
    assert Transfer.hindsight.fget(three).name == "c"


def test_inlier_curves_rise_to_all_rows(found):
    (transferred,) = found.transfers.values()
    frame = inlier_curves(transferred)
    for _, part in frame.groupby("series"):
        assert part["inliers"].is_monotonic_increasing
        assert len(part) == len(CURVE)
    page = predict_page_html(found).replace(plotly_script(), "")
    assert "calibrated roofline" in page and "<script src" not in page


def test_one_version_predicts_another(tmp_path):
    notes = ["impl=vllm-1"] * 64 + ["impl=vllm-1", "impl=vllm-2"] * 32
    path = gemm_table(tmp_path / "t.csv", ("V100-SXM2-16GB", "A100-SXM4-80GB"), notes=notes)
    versions = predict(path, "A100", predictors=("nnls",)).studies["versions"]
    assert {(v["device"], v["from"], v["to"]) for v in versions} == {
        ("a100_sxm_80gb", "vllm-1", "vllm-2"), ("a100_sxm_80gb", "vllm-2", "vllm-1"),
    }  # fmt: skip
    assert all(v["errors"]["nnls"] < 30 for v in versions)


def test_without_another_generation_the_note_says_so(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv", ("H100-SXM5-80GB",)))
    frame = pd.concat([frame, frame.assign(device="H200-SXM-141GB")])
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = predict(tmp_path / "t.csv", "h200", predictors=("nnls",))
    assert found.notes == ("every other device is of h200's generation (Hopper) too: no generation could be left out",)
    assert found.transfers["gemm", "fp16"].train.devices == ["h100_sxm"]


@pytest.mark.parametrize(
    ("changes", "arguments", "sentence"),
    [
        ({}, ["--target", "L40S"], "has no usable row of 'L40S'"),
        ({}, ["--target", "H1000"], "no GPU is called 'H1000'"),
        ({}, ["--target", "H100", "--host", "H100"], "is the target itself"),
        ({}, ["--target", "H100", "--host", "T4"], "--host: "),
        ({}, ["--target", "H100", "--predictors", "gut"], "no predictor is called 'gut'"),
        ({"latency_us": -3.0}, ["--target", "H100"], "latency_us is -3; give a positive time"),
        ({"n": 64, "k": 64}, ["--target", "H100"], "holds one benchmark only, the shape family 'gemm_64_64'"),
        ({"device": "H100-SXM5-80GB"}, ["--target", "H100"], "holds rows of h100_sxm only"),
    ],
)
def test_refusals_write_nothing(tmp_path, capsys, monkeypatch, changes, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    path = gemm_table(tmp_path / "t.csv", **changes)
    assert run_command(["predict", str(path), *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_too_little_to_learn_from(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    few = pd.concat([frame[frame["device"] == "A100-SXM4-80GB"][:5], frame[frame["device"] == "H100-SXM5-80GB"]])
    few.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"nothing to learn from: gemm fp16: fewer than 20 rows"):
        predict(tmp_path / "t.csv", "H100", predictors=QUICK)


@pytest.mark.slow
def test_command(tmp_path, capsys):
    path, page = gemm_table(tmp_path / "t.csv"), tmp_path / "p.html"
    command = ["predict", str(path), "--target", "H100", "--predictors", "nnls", "-o", str(page)]
    assert run_command([*command, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["target"] == "h100_sxm"
    assert "learned on" in captured.err
    assert page.exists() and not list(tmp_path.glob("*.partial"))
    assert run_command(command) == 0
    assert "calibrated roofline" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the shared data (../shared/data/measured) are absent")
@pytest.mark.parametrize("table", ["vidur__gemm.csv", "aiconfigurator__gemm.csv"])
def test_gemms_of_an_h100_from_older_gpus(table):
    """On public GEMM tables what is chosen without the target beats the model alone and the calibrated roofline."""
    found = predict(SHARED / table, "H100-SXM5-80GB", predictors=("ols", "nnls", "lasso"))
    for transferred in found.transfers.values():
        assert transferred.train.devices == ["a100_sxm_80gb"]
        assert beats(transferred.chosen, transferred)

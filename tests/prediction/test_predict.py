"""``dse predict``: a device left out with its generation, baselines beside, studies, the document, refusals."""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from dse.base.errors import InputError
from dse.prediction.predict import _notes_of_units, beats, predict
from dse.prediction.predicted_timing import type_of
from dse.prediction.predictors import fit
from dse.prediction.transfer import SAME_IN_RESIDUAL_MODE
from dse.reports.common.figures import plotly_script
from dse.reports.predict.data import CURVE, inlier_curves, predicted_against_measured
from dse.reports.predict.page import predict_page_html
from dse.reports.predict.terminal import print_predict
from experiments import data
from tests.prediction.tables import DEVICES, gemm_table

QUICK = ("ols", "nnls")
WAYS = {(name, mode) for name in QUICK for mode in ("plain", "analytical")}


@cache
def answer(folder):
    return predict(gemm_table(folder / "t.csv"), "H100", "V100", predictors=QUICK)


@pytest.fixture(scope="module")
def prediction(tmp_path_factory):
    return answer(tmp_path_factory.mktemp("predict"))


def test_a_device_is_predicted_from_older_ones(prediction):
    ((key, transferred),) = prediction.transfers.items()
    assert key == ("gemm", "fp16")
    assert transferred.train.devices == ["a100_sxm_80gb", "v100_sxm2_16gb"]
    assert set(transferred.test.frame["preset"]) == {"h100_sxm"}
    errors = {b.name: b.target["error"] for b in transferred.baselines}
    assert errors["calibrated roofline fitted to the target itself"] < 3  # the law the table follows, with its noise
    assert transferred.chosen.target["error"] < errors["analytical model alone"]
    assert {(j.name, j.mode) for j in transferred.scored} == WAYS


def test_document(prediction):
    document = prediction.document()
    json.dumps(document, allow_nan=False)
    (group,) = document["groups"]
    assert len(group["predictors"]) == len(WAYS)
    assert [p["e_out"] for p in group["predictors"]] == sorted(p["e_out"] for p in group["predictors"])
    assert list(group["predictors"][0]["target"]["inliers"]) == ["1", "5", "10", "15", "20", "30", "40", "50"]
    assert [b["fair"] for b in group["baselines"]] == [True, True, True, True, True, False]
    (transferred,) = prediction.transfers.values()
    assert group["beats_baselines"] == beats(transferred.chosen, transferred)
    (sentence,) = document["said"]
    assert ("beats them all" if group["beats_baselines"] else "does not beat them all") in sentence


def test_the_order_of_the_rows_tells_nothing(prediction, tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "u.csv")).sample(frac=1, random_state=3)
    frame.to_csv(tmp_path / "u.csv", index=False)
    shuffled = predict(tmp_path / "u.csv", "H100", "V100", predictors=QUICK).document()
    document = prediction.document()
    for group in (*shuffled["groups"], *document["groups"]):
        for row in group["predictors"]:
            del row["fit_seconds"]
    for key in set(document) - {"table", "table_sha256"}:
        assert shuffled[key] == document[key], key


def test_studies(prediction):
    studies = prediction.studies
    (without_any, *others) = studies["feature_study"]
    assert without_any["without"] is None
    assert len(others) >= 6
    (row,) = studies["fewer_sms"]
    assert row["from"] == {"a100_sxm_80gb": 108, "v100_sxm2_16gb": 80}
    host = studies["host_to_target"]
    assert {(r["predictor"], r["mode"]) for r in host} == WAYS
    assert host[0]["rows"] == 64
    assert host[0]["e_out_families"]["error"] < 20


def test_the_chosen_predictors_are_a_timing_model(prediction):
    model = prediction.model()
    learned = "learned on gemm fp16 of a100_sxm_80gb, v100_sxm2_16gb in t.csv"
    assert model.calibration == f"{learned}; kernels of other kinds and types by amali, uncalibrated"
    assert (model.kinds, model.types) == ((0,), (type_of("fp16"),))


def test_times_in_another_unit_are_reported():
    apart = {"a100_sxm_80gb": 800.0, "v100_sxm2_16gb": 0.9}
    parts = {name: SimpleNamespace(analytical=np.full(3, ratio), y=np.ones(3)) for name, ratio in apart.items()}
    rows: Any = SimpleNamespace(devices=list(apart), of=parts.get)
    (note,) = _notes_of_units(rows)
    assert note.startswith("the median row of a100_sxm_80gb is predicted 8e+02 times as long as measured")


def test_inlier_curves_rise_to_all_rows(prediction):
    (transferred,) = prediction.transfers.values()
    frame = inlier_curves(transferred)
    for _, part in frame.groupby("series"):
        assert part["inliers"].is_monotonic_increasing
        assert len(part) == len(CURVE)
    page = predict_page_html(prediction).replace(plotly_script(), "")
    assert "calibrated roofline" in page and "<script src" not in page


def test_a_host_that_ran_few_shapes_or_some_of_them_twice_is_reported(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    ran = frame["device"] == "V100-SXM2-16GB"
    twice = (frame[ran].assign(notes=f"impl=lib-{n}", latency_us=n * frame["latency_us"][ran]) for n in (1, 2))
    for name, rows in {"few": [frame[ran].head(1)], "twice": twice}.items():
        pd.concat([frame[~ran], *rows]).to_csv(tmp_path / f"{name}.csv", index=False)
    few, several = (predict(tmp_path / f"{n}.csv", "H100", "V100", predictors=("nnls",)) for n in ("few", "twice"))
    assert few.studies["host_to_target"] == []
    of = "--host v100_sxm2_16gb: gemm fp16: "
    assert any(
        note.startswith(f"{of}not judged: the host ran the shapes of 1 of the target's 64") for note in few.notes
    )
    assert len(several.studies["host_to_target"]) == 2
    assert any(note.startswith(f"{of}the host ran the shapes of 64 of 64 rows under several") for note in several.notes)


@pytest.mark.parametrize(
    ("slip", "note"),
    [
        ({"H100-SXM5-80GB": 10.0}, "gemm fp16: the median row of h100_sxm is predicted"),
        ({"H100-SXM5-80GB": 0.1}, "gemm fp16: the median row of"),
        (dict.fromkeys(DEVICES, 1e-3), "the median row of a100_sxm_80gb is predicted"),
    ],
)
def test_nothing_beats_anything_while_a_unit_is_in_doubt(tmp_path, slip, note):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    times = frame["latency_us"] * frame["device"].map(lambda name: slip.get(name, 1.0))
    frame.assign(latency_us=times).to_csv(tmp_path / "t.csv", index=False)
    prediction = predict(tmp_path / "t.csv", "H100", predictors=QUICK)
    assert any(text.startswith(note) and "is latency_us in microseconds" in text for text in prediction.notes)
    (sentence,) = prediction.sentences()
    assert (
        "cannot be told while a unit is in doubt" in sentence
        and "beat them all" not in sentence
        and "beats them all" not in sentence
    )
    assert prediction.document()["groups"][0]["beats_baselines"] is None


@pytest.mark.parametrize("name", SAME_IN_RESIDUAL_MODE)
def test_two_ways_that_are_one(prediction, name):
    (transferred,) = prediction.transfers.values()
    rows, test = transferred.train.rows("analytical"), transferred.test.rows("analytical").x
    predictor_modes = [fit(name, rows, residual).many(test) for residual in (False, True)]
    assert predictor_modes[0] == pytest.approx(predictor_modes[1], rel=1e-4)


def test_one_version_predicts_another(tmp_path):
    notes = ["impl=vllm-1"] * 64 + ["impl=vllm-1", "impl=vllm-2"] * 32
    path = gemm_table(tmp_path / "t.csv", ("V100-SXM2-16GB", "A100-SXM4-80GB"), notes=notes)
    versions = predict(path, "A100", predictors=("nnls",)).studies["versions"]
    assert {(v["device"], v["from"], v["to"]) for v in versions} == {
        ("a100_sxm_80gb", "vllm-1", "vllm-2"),
        ("a100_sxm_80gb", "vllm-2", "vllm-1"),
    }
    assert all(v["errors"]["nnls"] < 30 for v in versions)


def test_without_another_generation_the_note_says_so(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv", ("H100-SXM5-80GB",)))
    frame = pd.concat([frame, frame.assign(device="H200-SXM-141GB")])
    frame.to_csv(tmp_path / "t.csv", index=False)
    prediction = predict(tmp_path / "t.csv", "h200", predictors=("nnls",))
    assert prediction.notes == (
        "every other device is of h200's generation (Hopper) too: no generation could be left out",
    )
    assert prediction.transfers["gemm", "fp16"].train.devices == ["h100_sxm"]


def test_too_little_to_learn_from(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    few = pd.concat([frame[frame["device"] == "A100-SXM4-80GB"][:5], frame[frame["device"] == "H100-SXM5-80GB"]])
    few.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"nothing to learn from: gemm fp16: fewer than 20 rows"):
        predict(tmp_path / "t.csv", "H100", predictors=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["vidur__gemm", "aiconfigurator__gemm"])
def test_gemms_of_an_h100_from_older_gpus(table):
    """On public GEMM tables what is chosen without the target beats the model alone and the calibrated roofline."""
    prediction = predict(data.path(table), "H100-SXM5-80GB", predictors=("ols", "nnls", "lasso"))
    for transferred in prediction.transfers.values():
        assert transferred.train.devices == ["a100_sxm_80gb"]
        assert beats(transferred.chosen, transferred)


def rows_of(answer):
    """Rows of an answer's training and test sets."""
    return sum(len(one.train.y) + len(one.test.y) for one in answer.transfers.values())


def test_every_row_of_the_table_is_used_skipped_or_merged(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    nowhere = frame[:3].assign(device="TPU")
    same = frame[frame["device"] == "H100-SXM5-80GB"].assign(device="H200")  # of the target's generation
    alone = frame[:7].assign(dtype="fp32")  # the target has none in this type
    fewer = frame[::9].assign(dtype="bf16")
    whole = pd.concat([frame, frame, frame[:5], nowhere, same, alone, fewer])
    whole.to_csv(tmp_path / "t.csv", index=False)
    answer = predict(tmp_path / "t.csv", "H100", predictors=("ols",))
    assert answer.rows == {
        "table": len(whole),
        "used": rows_of(answer),
        "merged": len(frame) + 5,
        "skipped": sum(answer.skipped.values()),
    }
    assert answer.rows["table"] == answer.rows["used"] + answer.rows["merged"] + answer.rows["skipped"]
    assert answer.document()["rows"] == answer.rows
    assert answer.skipped["h200 is of h100_sxm's generation"] == 64
    assert answer.skipped["gemm fp32: no row of h100_sxm"] == 7
    assert f"{len(frame) + 5} of {len(whole)} rows repeat another: averaged with it" in answer.notes


def test_the_tables_fit_eighty_columns(prediction, capsys):
    print_predict(prediction, Console(width=80))
    printed = capsys.readouterr().out
    assert "\u2026" not in printed and "..." not in printed
    (head,) = (line.split() for line in printed.splitlines() if line.startswith("predictor"))
    assert head == ["predictor", "mode", "E_out", "out*", "target", "in", "10", "rank"]
    assert "rank: Spearman's correlation" in printed


def test_a_predictor_of_a_long_name_with_large_errors_fits_too(prediction, capsys):
    ((key, transferred),) = prediction.transfers.items()
    merits = transferred.chosen.target | {"error": 12345.6, "spearman": -0.123, "inliers": {"10": 100.0}}
    wide = {"name": "elastic_net/non-negative", "target": merits, "e_out": {"error": 12345.6}, "e_transfer": 12345.6}
    scored = tuple(one._replace(**wide) for one in transferred.scored)
    print_predict(replace(prediction, transfers={key: replace(transferred, scored=scored)}), Console(width=80))
    printed = capsys.readouterr().out
    assert "elastic_net/non-negative" in printed and "-0.123" in printed and "\u2026" not in printed


def test_a_plot_holds_predicted_and_measured_times_of_the_target(prediction):
    (found,) = prediction.transfers.values()
    frame = predicted_against_measured(found)
    assert frame["measured"].to_numpy() == pytest.approx(found.test.frame["latency_us"].to_numpy())
    off = 100 * (frame["predicted"] / frame["measured"] - 1).abs()
    assert off.mean() == pytest.approx(found.chosen.target["error"], rel=1e-6)
    assert "figure-predicted-0" in predict_page_html(prediction)


def test_the_sentence_names_the_calibrations_of_other_devices(prediction):
    (sentence,) = prediction.sentences()
    errors = {b.name: b.target["error"] for b in next(iter(prediction.transfers.values())).baselines}
    known = errors["analytical model, calibrated to a100_sxm_80gb"]
    assert f"calibrated to a100_sxm_80gb {known:.1f} %" in sentence

"""What a fit of power coefficients answers: a document, and a file that is read again."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.document import Answer

SURE = Coefficient("DRAMP", 0.8, "1", 0.7, 0.9, 0.95)
UNSURE = Coefficient("L2CP", 1.5, "1", 0.1, 9.0, 0.05)
ANSWER = Answer(
    kind="accelwattch_hw",
    calibration="fitted on mine.csv",
    table="mine.csv",
    table_sha256="abc",
    rows=128,
    skipped={"no kernel": 2},
    strength=0.3,
    strength_by="leave one out",
    models=[{"name": "multipliers", "leave_one_benchmark_out": 7.5}, {"name": "mean", "leave_one_benchmark_out": 30.0}],
    coefficients=[SURE, UNSURE],
    condition=12.0,
    notes=["few rows"],
)


def test_the_document_is_json_and_counts_what_was_skipped() -> None:
    document = json.loads(json.dumps(ANSWER.document(), allow_nan=False))
    assert document["n"] == 128
    assert document["skipped"] == [{"reason": "no kernel", "n": 2}]
    assert [m["name"] for m in document["models"]] == ["multipliers", "mean"]
    assert document["notes"] == ["few rows"]


def test_what_the_data_do_not_tell_is_named() -> None:
    document = ANSWER.document()
    assert {row["name"]: row["identified"] for row in document["coefficients"]} == {"DRAMP": True, "L2CP": False}
    assert document["not_identified"] == ["L2CP"]
    assert replace(ANSWER, coefficients=[SURE]).document()["not_identified"] == []


def test_the_file_holds_the_coefficients_and_the_errors_of_the_fit(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    ANSWER.write(path)
    content = tomllib.loads(path.read_text())
    values = {name: row["value"] for name, row in content["coefficients"].items()}
    assert values == {"DRAMP": pytest.approx(0.8), "L2CP": pytest.approx(1.5)}
    assert "7.5" in path.read_text() and "30.0" not in path.read_text()  # the first model is the one that is written


@pytest.mark.parametrize(
    ("off", "interval", "words"),
    [
        (7.5, [6.0, 9.0], "The fit gained 4.5 points: it is 7.5 % off on what it has not seen"),
        (11.0, [8.0, 14.0], "The fit may have gained 1.0 points"),
        (12.5, [8.0, 14.0], "The fit gained nothing: it is 12.5 % off .* the published coefficients 12.0 %. Keep"),
    ],
)
def test_what_a_fit_is_worth_is_said(off, interval, words):
    fit = {"name": "multipliers", "headline": True, "leave_one_benchmark_out": off, "interval": interval}
    before = {"name": "published", "headline": False, "leave_one_benchmark_out": 12.0, "interval": [9.0, 15.0]}
    answer = replace(ANSWER, models=[fit, before])
    assert re.match(words, answer.verdict)
    assert answer.document()["verdict"] == answer.verdict
    assert replace(ANSWER, models=[fit]).verdict == ""

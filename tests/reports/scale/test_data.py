"""The data of a page of scale models: curves, errors, speed-ups and notes, by hand."""

from pathlib import Path

import pytest

from dse.reports.scale.data import compared_text, coverage_text, curves, error_table, scaling_notes, speed_ups, unequal
from dse.scaling.scale import ScaleAnswer, SheetAnswer, scale
from dse.scaling.scale_model import METHODS
from tests.scaling.tables import TABLE, written


@pytest.fixture
def answer(tmp_path: Path) -> ScaleAnswer:
    """Benchmarks that scale, cross a cliff, slow down, or lack a size."""
    return scale(written(tmp_path, TABLE))


@pytest.fixture
def sheet(answer: ScaleAnswer) -> SheetAnswer:
    (one,) = answer.sheets
    return one


def test_curves_hold_the_table_and_every_prediction(sheet: SheetAnswer) -> None:
    frame = curves(sheet)
    flat = frame[frame["benchmark"] == "flat"]
    table = flat[flat["series"] == "table"]
    assert dict(zip(table["size"], table["ipc"], strict=True)) == {8: 10, 16: 19, 32: 36}
    assert set(flat["series"]) == {"table", *METHODS}
    assert set(flat[flat["series"] == "recursion"]["size"]) == {32, 48}
    assert len(frame[frame["series"] != "table"]) == len(sheet.points)


def test_only_the_recursion_has_an_interval_and_it_holds_its_value(sheet: SheetAnswer) -> None:
    frame = curves(sheet)
    with_interval = frame[frame["low"].notna()]
    assert set(with_interval["series"]) == {"recursion"}
    assert (with_interval["low"] < with_interval["ipc"]).all() and (with_interval["ipc"] < with_interval["high"]).all()


def test_errors_are_those_of_sizes_that_the_table_knows(sheet: SheetAnswer) -> None:
    frame = error_table(sheet)
    assert set(frame["size"]) == {32}
    assert set(frame["method"]) == set(METHODS)
    row = frame[frame["method"] == "proportional"].iloc[0]
    assert row["max"] == pytest.approx(400)  # of "slow": 40 for 8


def test_methods_are_compared_over_what_all_of_them_predict(sheet: SheetAnswer) -> None:
    frame = error_table(sheet)
    assert unequal(frame)
    assert frame["shared_n"].nunique() == 1
    assert (frame["shared_n"] <= frame["n"]).all()
    shared, most = int(frame["shared_n"].iloc[0]), int(frame["n"].max())
    assert compared_text(sheet).startswith(f"Over the benchmarks that every method predicts: {shared} of {most} at 32")
    assert compared_text(sheet).endswith("In brackets: how many a method predicts.")


def test_a_speed_up_is_the_target_s_time_over_that_of_both_scale_models(answer: ScaleAnswer) -> None:
    frame = speed_ups(answer)
    assert frame[frame["benchmark"] == "flat"]["factor"].tolist() == [pytest.approx(300 / (60 + 130))]
    assert frame[frame["benchmark"] == "mean"]["factor"].tolist() == [pytest.approx(300 / 190)]


def test_what_was_skipped_and_the_coverage_are_stated(answer: ScaleAnswer, sheet: SheetAnswer) -> None:
    notes = scaling_notes(answer)
    assert any(note.startswith("skipped: ") and note.endswith(")") for note in notes)
    assert coverage_text(sheet) == "The recursion's interval holds the table's value for 1 of 1 at 32 SMs."

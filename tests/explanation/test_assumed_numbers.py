"""Assumed numbers: their ranges hold their values, say where they come from, and decide only what they are of."""

from dataclasses import replace

import pytest

from dse.base.package_tables import read_table
from dse.evaluate.changed_numbers import Numbers
from dse.explanation.assumed_numbers import RANGES, UNSURE, AssumedNumber, assumed_attributes, range_in, range_of
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.presets import GpuSheet, changed, preset_names, preset_sheet
from dse.hardware.schema import gpu_schema
from dse.power.board import BoardPower


def numbers_of(sheet: GpuSheet) -> Numbers:
    power = BoardPower.from_table()
    return Numbers(sheet.numbers(), {}, power.area, DieCost.from_table(), power)


def attributes(sheet: GpuSheet, **follows: bool) -> dict[str, AssumedNumber]:
    return {number.name: number for number in assumed_attributes(sheet, follows)}


@pytest.mark.parametrize("preset", preset_names())
def test_every_range_holds_its_value_and_is_legal(preset: str) -> None:
    every = attributes(preset_sheet(preset))
    assert len(every) > 8
    for number in every.values():
        attr = gpu_schema()[number.name]
        assert attr.low <= number.low <= number.value <= number.high <= attr.high, number.name
        assert number.low < number.high
        assert number.status in UNSURE and number.range.source and number.source


def test_what_a_user_states_is_not_assumed() -> None:
    sheet = preset_sheet("h100_sxm")
    assert "l2_slices" in attributes(sheet)
    assert "l2_slices" not in attributes(changed(sheet, {"l2_slices": 96}, "mine.toml"))


def test_a_number_is_set_to_both_ends_and_nothing_else() -> None:
    sheet = preset_sheet("h100_sxm")
    own, number = numbers_of(sheet), attributes(sheet)["l2_slices"]
    assert number.low == 75 and number.high == 96
    at_high = number.at(own, number.high)
    assert dict(at_high.base) == dict(own.base) | {"l2_slices": 96.0}
    assert not at_high.linked and at_high.power is own.power
    linked = attributes(sheet, l2_slices=False)["l2_slices"].at(own, number.high)
    assert linked.linked == {"l2_slices": pytest.approx(1.2)}


def test_a_range_beside_the_value_comes_before_that_of_its_kind_and_that_before_the_default() -> None:
    row = {"low": "2", "high": "8", "source": "a paper", "note": ""}
    assert range_in(row, 4.0) == (0.5, 2.0, "a paper", True)
    assert range_in(row | {"low": ""}, 4.0) is None
    assert range_of("gpus", "l2_slices", "h200").high == 1.0
    assert range_of("gpus", "l2_slices", "no_such_preset").low == 0.5
    default = range_of("gpus", "nobody_has_it")
    assert (default.low, default.high, default.stated) == (pytest.approx(2 / 3), 1.5, False)


def test_every_range_is_of_a_number_that_there_is() -> None:
    tables = {row["table"] for row in read_table(RANGES)} - {"gpus", "*"}
    for row in read_table(RANGES):
        assert float(row["low"]) <= 1 <= float(row["high"])
        if row["table"] == "gpus":
            assert row["number"] in gpu_schema()
            assert set(filter(None, row["of"].split(";"))) <= set(preset_names())
    for table in tables:
        columns = read_table(table)[0].keys()
        assert {row["number"] for row in read_table(RANGES) if row["table"] == table} <= columns


def test_areas_follow_where_the_area_model_changes() -> None:
    own = numbers_of(preset_sheet("h100_sxm"))
    area = replace(DieArea.from_table(), l2=own.area.l2 * 2)
    assert own.with_area(area).power.area is own.with_area(area).area is area

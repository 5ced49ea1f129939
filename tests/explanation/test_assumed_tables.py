"""The assumed numbers of the tables: all of them, and each changes the one leaf of the models that it is."""

import jax
import numpy as np
import pytest

from dse.base.package_tables import read_table
from dse.explanation.assumed_numbers import UNSURE, AssumedNumber
from dse.explanation.assumed_tables import COLUMNS, Column, assumed_of_tables
from dse.hardware.presets import preset_numbers, preset_sheet
from dse.hardware.process import memory_names, node_names
from dse.power.board import REFERENCE_NODE
from tests.explanation.test_assumed_numbers import numbers_of

EVERY = {"process": np.arange(len(node_names())), "dram_type": np.arange(len(memory_names()))}
OWN = numbers_of(preset_sheet("h100_sxm"))


def of(table: str) -> dict[str, AssumedNumber]:
    return {number.name: number for number in assumed_of_tables(EVERY) if number.table == table}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: f"{c.table}: {c.number}")
def test_every_assumed_number_of_a_table_is_there(column: Column) -> None:
    found = of(column.table)
    missing = [
        row[column.key]
        for row in read_table(column.table)
        if row[column.status] in UNSURE
        and float(row[column.number] or 0)
        and row[column.key] not in found
        and f"{column.number} of {row[column.key]}" not in found
    ]
    assert missing == []


def leaves(number: AssumedNumber, value: float) -> list[tuple[float, float]]:
    """The numbers of the models that changed: before, and after a number has another value; an area once."""
    at = number.at(OWN, value)
    before, after = (
        np.concatenate(
            [
                np.ravel(x)
                for x in jax.tree.leaves((m.area, m.cost, (m.power if number.table != "process/area.csv" else ())))
            ]
        )
        for m in (OWN, at)
    )
    assert before.shape == after.shape
    different = before != after
    return list(zip(before[different].tolist(), after[different].tolist(), strict=True))


@pytest.mark.parametrize("number", list(assumed_of_tables(EVERY)), ids=lambda n: f"{n.table}: {n.name}")
def test_a_number_changes_one_leaf_by_its_factor(number: AssumedNumber) -> None:
    assert number.low < number.value or number.high > number.value
    changed = leaves(number, number.high if number.high > number.value else number.low)
    factor = (number.high if number.high > number.value else number.low) / number.value
    ratios = {round(after / before / factor, 4) for before, after in changed}
    if number.name.endswith(f"of {REFERENCE_NODE}") and number.table == "process/node_power.csv":
        assert all(after / before == pytest.approx(1 / factor) for before, after in changed)  # the others, beside it
    else:
        assert changed and ratios == {1.0}
    assert jax.tree.structure(OWN.power) == jax.tree.structure(number.at(OWN, number.high).power)


def test_only_nodes_and_memory_that_designs_have_matter() -> None:
    h100 = preset_numbers("h100_sxm")
    used = {name: np.array([h100[name]]) for name in EVERY}
    names = {number.name for number in assumed_of_tables(used)}
    assert "wafer_usd of tsmc_4n" in names and "usd_per_gb of hbm3" in names
    assert not {"wafer_usd of tsmc_n3e", "usd_per_gb of gddr6", "clock_tsmc_n7"} & names


def test_a_row_has_its_words() -> None:
    texts = {number.text for number in assumed_of_tables(EVERY)}
    assert {"L2 of the area model", "NoC of the power model", "wafer price of tsmc_4n"} < texts

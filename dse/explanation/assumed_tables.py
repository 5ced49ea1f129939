"""The numbers of the tables of power, area, cost and memory that are assumed, and how a model is given others.

Rows are read by their columns: what a table gains is varied, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dse.base.package_tables import read_table
from dse.evaluate.changed_numbers import Numbers
from dse.explanation.assumed_numbers import UNSURE, AssumedNumber, Setter, range_in, range_of
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.process import memory_names, node_index, node_names
from dse.power.board import REFERENCE_NODE

ABBREVIATIONS = {
    **{word: word.upper() for word in ("dram", "fma", "fp32", "fp64", "int32", "l1", "l2", "phy", "sfu", "sm", "sram")},
    "noc": "NoC",
    "die_link": "die link",
    "nvlink": "NVLink",
    "pcie": "PCIe",
}
"""How words of a row's name are written in a sentence."""

CLOCK = "clock_"
"""What stands before a node in the power model's rows of clocks, which it holds as one array."""


class Column(NamedTuple):
    """A column of numbers in a table, and where the models hold it."""

    table: str
    key: str  # column that names a row
    number: str  # column of the value
    place: tuple[str, ...]  # fields from :class:`Numbers` on; a model's own field has the row's name
    text: str  # in a sentence; {key} is the row's
    status: str = "status"
    stem: str = ""  # of the columns of range and source
    unit: str = ""  # "" where a column tells
    rows: str = ""  # "process", "dram_type" or "dtype" where the place is an array of them


COLUMNS = (
    Column("power/board.csv", "coefficient", "value", ("power",), "{key} of the power model"),
    Column("process/area.csv", "coefficient", "value", ("area",), "{key} of the area model"),
    *(
        Column(
            "process/nodes.csv",
            "process",
            f"{kind}_density",
            ("area", "nodes", f"{kind}_density"),
            text,
            rows="process",
        )
        for kind, text in (
            ("logic", "logic density of {key}"),
            ("sram", "SRAM density of {key}"),
            ("analog", "analog density of {key}"),
        )
    ),
    Column(
        "process/memory.csv",
        "dram_type",
        "phy_mm2_per_bit",
        ("area", "memory_types", "phy_mm2_per_bit"),
        "PHY area of {key}",
        unit="mm2/bit",
        rows="dram_type",
    ),
    Column(
        "process/node_power.csv",
        "process",
        "energy",
        ("power", "nodes", "energy"),
        "switching energy of {key}",
        stem="energy_",
        rows="process",
    ),
    Column(
        "process/node_power.csv",
        "process",
        "leakage_per_mm2",
        ("power", "nodes", "leakage_per_mm2"),
        "leakage of {key}",
        status="leakage_status",
        stem="leakage_per_mm2_",
        rows="process",
    ),
    Column(
        "process/memory_power.csv",
        "dram_type",
        "access_pj_per_bit",
        ("power", "memory", "access_pj_per_bit"),
        "access energy of {key}",
        stem="access_",
        unit="pJ/bit",
        rows="dram_type",
    ),
    Column(
        "process/memory_power.csv",
        "dram_type",
        "idle_w_per_gb",
        ("power", "memory", "idle_w_per_gb"),
        "standby power of {key}",
        status="idle_status",
        stem="idle_",
        unit="W/GB",
        rows="dram_type",
    ),
    Column(
        "process/wafers.csv",
        "process",
        "wafer_usd",
        ("cost", "wafer_usd"),
        "wafer price of {key}",
        stem="wafer_usd_",
        unit="USD",
        rows="process",
    ),
    Column(
        "process/wafers.csv",
        "process",
        "defects_per_cm2",
        ("cost", "defects_per_cm2"),
        "defect density of {key}",
        status="defects_status",
        stem="defects_per_cm2_",
        unit="1/cm2",
        rows="process",
    ),
    Column(
        "process/memory_cost.csv",
        "dram_type",
        "usd_per_gb",
        ("cost", "usd_per_gb"),
        "price of {key}",
        stem="usd_per_gb_",
        unit="USD/GB",
        rows="dram_type",
    ),
    Column(
        "schema/data_types.csv",
        "dtype",
        "tensor_energy",
        ("power", "tensor"),
        "energy of a multiply-add in {key}",
        status="energy_status",
        stem="energy_",
        unit="pJ/FMA",
        rows="dtype",
    ),
)

RANGED = ("process/area.csv", "process/memory.csv")
"""Tables of which every number counts beside which a range stands, fitted ones too: few dies decide them."""


def assumed_of_tables(used: Mapping[str, np.ndarray], of_board: bool = True) -> Iterator[AssumedNumber]:
    """Yield the assumed numbers of all tables; ``used``: attribute -> the designs' numbers, which say what nodes and
    memory types matter. ``of_board``: those of the board's power, too, where it decides the watts."""
    for column in COLUMNS:
        if column.place[0] == "power" and not of_board:
            continue
        names = _names(column.rows)
        numbers = (
            _number(column, row, names) for row in read_table(column.table) if _matters(column, row, names, used)
        )
        yield from (number for number in numbers if number.low < number.high)


def _names(rows: str) -> list[str]:
    """Names of an array's entries."""
    return {"process": node_names, "dram_type": memory_names, "dtype": lambda: list(TENSOR_DTYPES)}.get(rows, list)()


def _matters(column: Column, row: Mapping[str, str], names: list[str], used: Mapping[str, np.ndarray]) -> bool:
    key, status = row[column.key], row[column.status]
    if not row[column.number] or float(row[column.number]) == 0:
        return False
    of_node = column.key == "process" or key.startswith(CLOCK)
    if of_node or column.key == "dram_type":
        every = node_names() if of_node else names
        wanted = {every[int(place)] for place in np.unique(used["process" if of_node else "dram_type"])}
        if key.removeprefix(CLOCK) not in wanted:
            return False
    elif column.rows and key not in names:
        return False
    ranged = range_in(row, float(row[column.number]), column.stem)
    return status in UNSURE or (column.table in RANGED and ranged is not None)


def _number(column: Column, row: Mapping[str, str], names: list[str]) -> AssumedNumber:
    key, value = row[column.key], float(row[column.number])
    span = range_in(row, value, column.stem) or range_of(column.table, column.number if column.rows else key, key)
    if key.startswith(CLOCK):
        setter = _setter((*column.place, "clock"), node_index(key.removeprefix(CLOCK)))
    else:
        setter = _setter(column.place, names.index(key)) if column.rows else _setter((*column.place, key), None)
    return AssumedNumber(
        name=f"{column.number} of {key}" if column.rows else key,
        text=column.text.format(key=key if column.rows else _words(key)),
        table=column.table,
        unit=column.unit or row.get("unit", "1"),
        status=row[column.status],
        source=row.get(f"{column.stem}source") or row["source"],
        value=value,
        low=value * span.low,
        high=value * span.high,
        range=span,
        multiplied=setter,
    )


def _words(key: str) -> str:
    """Return a row's name as words."""
    return " ".join(ABBREVIATIONS.get(word, word) for word in key.split("_"))


def _setter(place: tuple[str, ...], row: int | None) -> Setter:
    def multiplied(numbers: Numbers, factor: float) -> Numbers:
        changed = scaled(numbers, place, row, factor)
        if place[:2] == ("power", "nodes"):  # held relative to the node whose energies the table states
            nodes = changed.power.nodes
            values = getattr(nodes, place[2])
            nodes = replace(nodes, **{place[2]: values / values[node_index(REFERENCE_NODE)]})
            return replace(changed, power=replace(changed.power, nodes=nodes))
        return numbers.with_area(changed.area) if place[0] == "area" else changed

    return multiplied


def scaled(record: Any, place: tuple[str, ...], row: int | None, factor: float) -> Any:
    """Return a record with one number multiplied: the field at ``place``, or only its entry ``row``.

    Types and shapes stay, so that no program is compiled again.
    """
    first, *rest = place
    inner = getattr(record, first)
    if rest:
        return replace(record, **{first: scaled(inner, tuple(rest), row, factor)})
    factors = factor if row is None else np.where(np.arange(len(inner)) == row, factor, 1.0).astype(inner.dtype)
    return replace(record, **{first: inner * factors})

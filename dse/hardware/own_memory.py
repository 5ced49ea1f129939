"""A memory of a user's own: the table ``[memory]`` of a GPU's TOML, turned into attributes of the GPU.

What the table does not state is that of a memory type (``type``, else the GPU's), and is called assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from dse.base.errors import InputError, accepted, shown
from dse.base.package_tables import read_table
from dse.base.units import BITS_PER_BYTE

TABLE = "memory"
"""Name of the table."""

OF_TYPE = {
    "dram_pj_per_bit": ("process/memory_power.csv", "access_pj_per_bit"),
    "dram_idle_w_per_gb": ("process/memory_power.csv", "idle_w_per_gb"),
    "dram_phy_mm2_per_bit": ("process/memory.csv", "phy_mm2_per_bit"),
    "dram_usd_per_gb": ("process/memory_cost.csv", "usd_per_gb"),
}
"""Attribute of a memory of one's own -> the table and the column that have it of a type."""

OWN_ATTRIBUTES = ("dram_pin_gbps", *OF_TYPE)
"""Attributes that are 0 where the memory is one of the shipped types."""

KEPT = ("dram_sustained_fraction", "dram_latency_ns")
"""Attributes that stay the base's where the table does not state them."""

ASSUMED, STATED = "assumed", "user"
"""Statuses of what the table leaves open, and of what it says."""


@dataclass(frozen=True)
class MemoryKey:
    """A key of the table: the attribute that it is, "" where it counts a stack's; bounds in ``unit``."""

    attribute: str
    unit: str
    low: float
    high: float
    description: str

    @property
    def range_text(self) -> str:
        """What would be accepted, in words."""
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"a number from {self.low:g} to {self.high:g}{unit}"


class Stated(NamedTuple):
    """The value of an attribute, as a file would give it, where it comes from, and its status."""

    value: Any
    source: str
    status: str


@cache
def memory_keys() -> dict[str, MemoryKey]:
    """Return the keys of the table with numbers by name, from ``data/schema/memory.csv``."""
    rows = [row for row in read_table("schema/memory.csv") if row["low"]]
    return {
        row["key"]: MemoryKey(row["attribute"], row["unit"], float(row["low"]), float(row["high"]), row["description"])
        for row in rows
    }


def own_memory(table: object, others: Mapping[str, Any], where: str) -> dict[str, Stated]:
    """Return the attributes of a GPU, all in their public form, that a table ``[memory]`` stands for.

    ``others``: the GPU's attributes without it, as far as there are any. Raises InputError, naming ``where``, for a key
    or value that is wrong, and for keys that contradict each other or lack one that they need.
    """
    where = f"{where}: [{TABLE}]"
    if not isinstance(table, Mapping):
        raise InputError(f"{where} = {shown(table)} is not accepted; give a table, as [{TABLE}]")
    kind = _kind(table, others, where)
    values = {key: _number(key, value, where) for key, value in table.items() if key != "type"}
    _refuse_halves(values, where)
    found = {key.attribute: values[name] for name, key in memory_keys().items() if key.attribute and name in values}
    found |= _of_stacks(values)
    if pins := found.get("dram_pin_gbps"):
        bits = found.get("dram_bus_bits", others.get("dram_bus_bits"))
        found |= {"dram_bandwidth_gbs": bits * pins / BITS_PER_BYTE} if bits else {}
    whole = {"dram_bus_bits": int(found["dram_bus_bits"])} if "dram_bus_bits" in found else {}
    stated = {name: Stated(value, where, STATED) for name, value in ({"dram_type": kind} | found | whole).items()}
    return _assumed(kind, others) | stated


def _kind(table: Mapping[str, Any], others: Mapping[str, Any], where: str) -> str:
    """The memory type that stands for what is not stated."""
    kinds = [row["dram_type"] for row in read_table("process/memory.csv")]
    kind = table.get("type", others.get("dram_type"))
    if kind is None:
        raise InputError(f"{where}: type is missing; give one of {', '.join(kinds)}: what is not stated is that type's")
    if kind not in kinds:
        raise InputError(f"{where}: type = {shown(kind)} is not a memory type; {accepted(str(kind), kinds)}")
    return str(kind)


def _number(name: str, value: object, where: str) -> float:
    keys = memory_keys()
    if name not in keys:
        raise InputError(f"{where}: {name!r} is no key of a memory; {accepted(name, ['type', *keys])}")
    key = keys[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not key.low <= value <= key.high:
        raise InputError(f"{where}: {name} = {shown(value)} is not accepted; give {key.range_text}")
    if name in ("stacks", "stack_bits") and value != int(value):
        raise InputError(f"{where}: {name} = {shown(value)} is not accepted; give a whole number")
    return float(value)


def _refuse_halves(values: Mapping[str, float], where: str) -> None:
    """Refuse keys of a stack without the stacks' number and width, and a bandwidth that is given twice."""
    shape = ("stacks", "stack_bits")
    missing = [name for name in shape if name not in values]
    of_stack = [name for name in values if name in shape or not memory_keys()[name].attribute]
    if of_stack and missing:
        raise InputError(f"{where}: {of_stack[0]} needs {' and '.join(missing)}; give both stacks and stack_bits")
    if {"stack_gbs", "pin_gbps"} <= values.keys():
        raise InputError(f"{where}: states both stack_gbs and pin_gbps; give one of the two")


def _of_stacks(values: Mapping[str, float]) -> dict[str, float]:
    """The attributes that follow from those of a stack."""
    if "stacks" not in values:
        return {}
    stacks, bits = values["stacks"], values["stack_bits"]
    found = {"dram_bus_bits": stacks * bits}
    if "stack_gbs" in values:
        found["dram_pin_gbps"] = BITS_PER_BYTE * values["stack_gbs"] / bits
    if "stack_gb" in values:
        found["dram_gb"] = stacks * values["stack_gb"]
    if "phy_mm2" in values:
        found["dram_phy_mm2_per_bit"] = values["phy_mm2"] / bits
    return found


def _assumed(kind: str, others: Mapping[str, Any]) -> dict[str, Stated]:
    """What stands where the table states nothing: a type's numbers, and the base's."""
    found = {}
    for name, (table, column) in OF_TYPE.items():
        row = next(row for row in read_table(table) if row["dram_type"] == kind)
        found[name] = Stated(float(row[column]), f"assumed: as {kind}", ASSUMED)
    kept = {name: Stated(others[name], "assumed: as before", ASSUMED) for name in KEPT if name in others}
    return found | kept

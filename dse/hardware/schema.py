"""The attribute table of a GPU (``data/schema/gpu.csv``): types, units, bounds, defaults and meaning.

This one table makes the loader's refusals, the axes of a space and the manual page, so that units cannot drift.
Nothing here imports JAX: ``dse show`` answers at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dse.base.errors import InputError, accepted, shown
from dse.base.package_tables import read_table

POWERS_OF_TWO = ("subcores_per_sm", "cluster_size")
"""Attributes that hardware has in powers of two alone."""

CAPABILITY = "compute_capability"

_CHOICES = {"process": ("process/nodes.csv", "process"), "dram_type": ("process/memory.csv", "dram_type")}


@dataclass(frozen=True)
class Attribute:
    """One attribute of a GPU: ``low`` and ``high`` bound its value in ``unit``; ``default`` is None where required."""

    name: str
    type: str
    unit: str
    default: float | None
    low: float
    high: float
    choices: tuple[str, ...]
    description: str
    source: str

    @property
    def range_text(self) -> str:
        """What would be accepted, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type == "bool":
            return "true or false"
        kind = "a whole number" if self.type == "int" else "a number"
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"{kind} from {_number(self.low)} to {_number(self.high)}{unit}"

    @property
    def record_text(self) -> str:
        """What a record accepts, in words: a choice stands there by its row number."""
        if self.choices:
            rows = ", ".join(f"{row} ({choice})" for row, choice in enumerate(self.choices))
            return f"the row number of a choice: {rows}"
        return "0 or 1" if self.type == "bool" else self.range_text

    def encode(self, value: Any, where: str) -> float:
        """Return ``value`` as the number that a :class:`~dse.hardware.gpu.Gpu` holds.

        A choice becomes its row number in its table. Raises InputError, naming ``where``, when the value has the
        wrong type or lies outside the bounds.
        """
        refused = InputError(f"{where}: {self.name} = {shown(value)} is not accepted; give {self.range_text}")
        if self.choices:
            if value not in self.choices:
                raise refused
            return float(self.choices.index(value))
        if isinstance(value, bool):
            if self.type != "bool":
                raise refused
            return float(value)
        if not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            raise refused
        if self.type in ("int", "bool") and value != int(value):
            raise refused
        if self.name in POWERS_OF_TWO and int(value) & (int(value) - 1):
            raise InputError(f"{where}: {self.name} = {value!r} is no power of two; give one: {self.range_text}")
        if self.name == CAPABILITY and abs(10 * value - round(10 * value)) > 1e-9:
            raise InputError(f"{where}: {self.name} = {value!r} is no version; give one with one decimal, as 9.0")
        return float(value)

    def decode(self, number: float) -> Any:
        """Return the number of a record as a person would write it (the name of a choice, an int, a float)."""
        if self.choices:
            return self.choices[int(number)]
        if self.type == "bool":
            return bool(number)
        return int(number) if self.type == "int" else float(number)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:g}"


def _choices(name: str) -> tuple[str, ...]:
    if name not in _CHOICES:
        return ()
    path, column = _CHOICES[name]
    return tuple(row[column] for row in read_table(path))


def _attribute(row: dict[str, str]) -> Attribute:
    choices = _choices(row["attribute"])
    return Attribute(
        name=row["attribute"],
        type=row["type"],
        unit=row["unit"],
        default=float(row["default"]) if row["default"] else None,
        low=float(row["low"]) if row["low"] else 0.0,
        high=float(row["high"]) if row["high"] else float(len(choices) - 1),
        choices=choices,
        description=row["description"],
        source=row["source"],
    )


@cache
def gpu_schema() -> dict[str, Attribute]:
    """Return the attributes of a GPU by name, in the order of the table."""
    return {row["attribute"]: _attribute(row) for row in read_table("schema/gpu.csv")}


def attribute(name: str, where: str) -> Attribute:
    """Return one attribute; raises InputError naming ``where`` and the nearest names when there is none."""
    schema = gpu_schema()
    if name not in schema:
        raise InputError(f"{where}: {name!r} is not an attribute of a GPU; {accepted(name.lower(), schema)}")
    return schema[name]


def overfull(numbers: Mapping[str, Any]) -> Any:
    """Whether the shared memory of GPUs (attribute -> number or array) is more than the L1 that holds it."""
    return numbers["shared_memory_kib"] > numbers["l1_kib"]


def unlinked(numbers: Mapping[str, Any]) -> Any:
    """Whether packages (attribute -> number or array) have several dies and no link between them."""
    return (numbers["dies"] > 1) & (numbers["die_link_gbs"] <= 0)


def uneven(numbers: Mapping[str, Any]) -> Any:
    """Whether packages (attribute -> number or array) have SMs that their dies cannot share equally."""
    return (numbers["dies"] > 1) & (numbers["sm_count"] % numbers["dies"] > 0)

"""Numbers that an answer rests on and nobody published or measured, each with its plausible range.

Attributes of the base GPU, and numbers of the tables of power, area, cost and memory
(:mod:`dse.explanation.assumed_tables`). A range stands beside the number in its table (columns ``low`` and ``high``),
else in ``data/schema/assumed_ranges.csv``, whose last resort is a factor of 1.5.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dse.base.package_tables import read_table
from dse.evaluate.changed_numbers import Numbers
from dse.explanation.attribute_words import words
from dse.explanation.sensitivity_steps import quantities
from dse.hardware.presets import GpuSheet, gpu_index
from dse.hardware.schema import Attribute

UNSURE = ("assumed", "prior", "estimate", "default")
"""Statuses of a number that no data sheet, paper or measurement states."""

RANGES = "schema/assumed_ranges.csv"

LAST_RESORT = "*"
"""Table and number of the range of those that have no other."""

Setter = Callable[[Numbers, float], Numbers]
"""What multiplies a number by a factor."""


class Range(NamedTuple):
    """Where a number may plausibly lie, relative to it [1], and why; ``stated``: not the last resort."""

    low: float
    high: float
    source: str
    stated: bool = True


@dataclass(frozen=True)
class AssumedNumber:
    """A number that is assumed: its ``value`` and the ends of its range [``unit``], and what multiplies it."""

    name: str  # in its table, as l2_slices, leak, or wafer_usd of tsmc_4n
    text: str  # in a sentence, as "L2 slices"
    table: str  # under dse/data
    unit: str
    status: str
    source: str  # of the value, or why it is assumed
    value: float
    low: float
    high: float
    range: Range
    multiplied: Setter
    of_gpu: bool = False  # an attribute of the base GPU

    def at(self, numbers: Numbers, value: float) -> Numbers:
        """Return ``numbers`` with this one at another value [unit]."""
        return self.multiplied(numbers, value / self.value)


def assumed_attributes(sheet: GpuSheet, follows: Mapping[str, bool]) -> Iterator[AssumedNumber]:
    """Yield the attributes of a base GPU that are assumed and can change by a percentage.

    ``follows``: linked attribute -> whether its link follows the base's number. Where it does not, the designs' numbers
    are multiplied as the base's is: what is assumed is assumed of both.
    """
    preset = sheet.base or sheet.name
    table = f"gpus/{preset}.csv"
    cells = {row["attribute"]: row for row in read_table(table)} if preset in gpu_index() else {}
    for name, attr in quantities(sheet.numbers())[0].items():
        entry = sheet.entries[name]
        if entry.status not in UNSURE:
            continue
        span = range_in(cells.get(name, {}), entry.number) or range_of("gpus", name, preset)
        low, high = (_legal(attr, entry.number * factor) for factor in (span.low, span.high))
        if low < high:
            yield AssumedNumber(
                name=name,
                text=words(attr),
                table=table if cells else sheet.name,
                unit=attr.unit,
                status=entry.status,
                source=entry.note or entry.source,
                value=entry.number,
                low=low,
                high=high,
                range=span,
                multiplied=_setter(attr, follows.get(name, True)),
                of_gpu=True,
            )


def _legal(attr: Attribute, value: float) -> float:
    value = float(round(value)) if attr.type == "int" else value
    return min(max(value, attr.low), attr.high)


def _setter(attr: Attribute, follows: bool) -> Setter:
    def multiplied(numbers: Numbers, factor: float) -> Numbers:
        base = {**numbers.base, attr.name: _legal(attr, numbers.base[attr.name] * factor)}
        linked = numbers.linked if follows else {**numbers.linked, attr.name: factor}
        return replace(numbers, base=base, linked=linked)

    return multiplied


def range_in(row: Mapping[str, str], value: float, stem: str = "") -> Range | None:
    """Return the range that a table states beside a ``value``, in columns ``STEM_low`` and ``STEM_high``; or None."""
    low, high = (row.get(f"{stem}{end}") for end in ("low", "high"))
    if not (low and high and value):
        return None
    source = row.get(f"{stem}range_source") or row.get(f"{stem}source") or row.get("note") or row["source"]
    return Range(float(low) / value, float(high) / value, source)


def range_of(table: str, number: str, of: str = "") -> Range:
    """Return the range of a number that its own table does not state: of a row ``of``, of all rows, or the default."""
    found = {}
    for row in read_table(RANGES):
        here = (row["table"], row["number"])
        if here in ((table, number), (LAST_RESORT, LAST_RESORT)) and (not row["of"] or of in row["of"].split(";")):
            place = 0 if here == (LAST_RESORT, LAST_RESORT) else 2 if row["of"] else 1
            found[place] = Range(float(row["low"]), float(row["high"]), row["source"], place > 0)
    return found[max(found)]

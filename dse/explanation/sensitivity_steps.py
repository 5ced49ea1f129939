"""Steps of a sensitivity study: each attribute of a GPU 10 % up, as far as a legal value allows."""

from collections.abc import Mapping
from dataclasses import dataclass

from dse.hardware.own_memory import OWN_ATTRIBUTES
from dse.hardware.schema import POWERS_OF_TWO, Attribute, gpu_schema

STEP = 0.10
"""Relative size of a step, upwards [1]."""

IDENTITY = {
    "compute_capability": "it decides which instructions exist; it is no quantity",
    "dies": "a split into other dies is another package: give it, with its link, as a GPU of your own or as an axis",
}
"""Attributes that are numbers by name only."""


@dataclass(frozen=True)
class Step:
    """A change of one attribute from ``before`` to ``after`` [its unit], all others fixed."""

    attribute: Attribute
    before: float
    after: float

    @property
    def factor(self) -> float:
        """After over before: 1.1, unless whole numbers or bounds allow only another."""
        return self.after / self.before


def quantities(numbers: Mapping[str, float]) -> tuple[dict[str, Attribute], dict[str, str]]:
    """Return the attributes of a GPU that can change by a percentage, and the others with the reason why not."""
    varied, left_out = {}, {}
    for name, attr in gpu_schema().items():
        reason = _no_quantity(attr, numbers[name])
        if reason:
            left_out[name] = reason
        else:
            varied[name] = attr
    return varied, left_out


def _no_quantity(attr: Attribute, value: float) -> str:
    if attr.name in IDENTITY:
        return IDENTITY[attr.name]
    if attr.choices:
        return "a choice has no percentage"
    if attr.type == "bool":
        return "yes or no has no percentage"
    if value == 0 and attr.name in OWN_ATTRIBUTES:
        return "it is that of the memory type: give a [memory] of your own"
    return "it is 0, and 10 % more of nothing is nothing" if value == 0 else ""


def steps(numbers: Mapping[str, float]) -> list[Step]:
    """Return a step of every quantity of a GPU, in the order of the schema."""
    attributes, _ = quantities(numbers)
    return [
        Step(attr, numbers[name], _after(attr, numbers[name], numbers["dies"])) for name, attr in attributes.items()
    ]


def _after(attr: Attribute, value: float, dies: float) -> float:
    """The legal value nearest to 10 % more, at least one step away; downwards where the upper bound is reached."""
    if attr.name in POWERS_OF_TWO:
        return value * 2 if value * 2 <= attr.high else value / 2
    if attr.name == "sm_count" and dies > 1:  # each die has as many
        more = dies * max(round(STEP * value / dies), 1)
        return value + more if value + more <= attr.high else value - more
    whole = attr.type == "int"
    up = max(float(round(value * (1 + STEP))), value + 1) if whole else value * (1 + STEP)
    up = min(up, attr.high)
    if up > value:
        return up
    down = min(float(round(value * (1 - STEP))), value - 1) if whole else value * (1 - STEP)
    return max(down, attr.low)

"""Axes of a space: the values that one attribute takes, from a list or a range."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.base.errors import InputError, shown
from dse.hardware.schema import Attribute

MAX_VALUES = 100_000
LARGEST = 1e30
"""No end of a range is as large."""

RANGE_KEYS = {"from", "to", "step", "count", "scale"}
"""Keys of an axis that is given by its ends."""

_FORMS = (
    "give a list [1, 2, 4] or a range { from = 1, to = 9, step = 2 } or "
    '{ from = 1, to = 9, count = 5 } (with scale = "log" for a geometric one)'
)


@dataclass(frozen=True)
class Axis:
    """One attribute and the numbers it takes (choices encoded), in the order they are swept."""

    attribute: Attribute
    numbers: tuple[float, ...]

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def unit(self) -> str:
        """The attribute's unit."""
        return self.attribute.unit

    @property
    def values(self) -> list[Any]:
        """The values as a person would write them."""
        return [self.attribute.decode(number) for number in self.numbers]

    def __len__(self) -> int:
        return len(self.numbers)


def make_axis(attribute: Attribute, spec: Any, where: str) -> Axis:
    """Return the axis that ``spec`` (a list, a range table, or one value) states; raises InputError at ``where``."""
    if isinstance(spec, list):
        values = spec
    elif isinstance(spec, dict):
        values = _range(attribute, spec, where)
    else:
        values = [spec]
    if not values:
        raise InputError(f"{where}: the axis has no value; {_FORMS}")
    numbers = tuple(attribute.encode(value, where) for value in values)
    seen: set[float] = set()
    for number, value in zip(numbers, values, strict=True):
        if number in seen:
            raise InputError(f"{where}: {value!r} is given twice; give each value once")
        seen.add(number)
    return Axis(attribute, numbers)


def _range(attribute: Attribute, spec: dict, where: str) -> list[float]:
    unknown = set(spec) - RANGE_KEYS
    if unknown:
        raise InputError(f"{where}: {sorted(unknown)[0]!r} is not a key of a range; {_FORMS}")
    if attribute.choices or attribute.type == "bool":
        raise InputError(f"{where}: a range makes no sense for {attribute.name}; give a list of {attribute.range_text}")
    low, high = (_number(spec, key, where) for key in ("from", "to"))
    scale = spec.get("scale", "linear")
    if not isinstance(scale, str) or scale not in ("linear", "log"):
        raise InputError(f'{where}: scale = {scale!r} is not accepted; give "linear" or "log"')
    if low >= high:
        raise InputError(f"{where}: from = {low:g} is not below to = {high:g}")
    if ("step" in spec) == ("count" in spec):
        raise InputError(f"{where}: a range needs either step or count; {_FORMS}")
    values = _stepped(spec, low, high, scale, where) if "step" in spec else _counted(spec, low, high, scale, where)
    whole = attribute.type == "int"
    if whole and "step" in spec and not np.allclose(values, np.round(values), rtol=0, atol=1e-9):
        raise InputError(f"{where}: {attribute.name} is a whole number; give whole numbers for from and step")
    values = np.round(values) if whole else values
    found = list(dict.fromkeys(_tidy(float(v), exact=whole or v in (low, high)) for v in values))
    if len(found) < len(values):
        raise InputError(
            f"{where}: count = {len(values)} gives only {len(found)} different values of {attribute.name} between "
            f"{low:g} and {high:g}; give a smaller count, or a list"
        )
    return found


def _stepped(spec: dict, low: float, high: float, scale: str, where: str) -> np.ndarray:
    step = _number(spec, "step", where)
    if scale == "log":
        raise InputError(f"{where}: a log range takes count instead of step; {_FORMS}")
    if step <= 0:
        raise InputError(f"{where}: step = {step:g} is not above 0")
    steps = (high - low) / step
    _check_count(steps + 1, where)
    return low + step * np.arange(int(np.floor(steps + 1e-9)) + 1)


def _counted(spec: dict, low: float, high: float, scale: str, where: str) -> np.ndarray:
    count = spec["count"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise InputError(f"{where}: count = {shown(count)} is not accepted; give a whole number of at least 2")
    _check_count(count, where)
    if scale == "log" and low <= 0:
        raise InputError(f"{where}: a log range starts above 0, not at from = {low:g}")
    return np.geomspace(low, high, count) if scale == "log" else np.linspace(low, high, count)


def _check_count(count: float, where: str) -> None:
    if count > MAX_VALUES:
        raise InputError(f"{where}: the range has {count:,.0f} values; give at most {MAX_VALUES}")


def _number(spec: dict, key: str, where: str) -> float:
    value = spec.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < LARGEST:
        raise InputError(f"{where}: {key} = {shown(value)} is not accepted; give a number. {_FORMS}")
    return float(value)


def _tidy(value: float, exact: bool) -> float | int:
    """Six significant digits, what a person would write, where it need not be exact; whole numbers as such."""
    value = value if exact else float(f"{value:.6g}")
    return int(value) if value == int(value) else value

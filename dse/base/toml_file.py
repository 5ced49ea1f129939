"""A user's TOML file, read; what is wrong is told with the file, the key, the value and what would be accepted."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from dse.base.errors import InputError, accepted
from dse.base.text_file import parsing, read_text

LARGEST = 1e6
"""A coefficient of a calibration is at most this."""

ROUNDED = 1e-5
"""Share by which a coefficient may pass an end of its range: a file holds six digits."""


class Allowed(NamedTuple):
    """What a file may say of a coefficient: its unit, and the ends of its range in that unit."""

    unit: str
    low: float
    high: float


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raises InputError when it cannot be read or parsed."""
    text = read_text(path)
    with parsing(path, "TOML"):
        return tomllib.loads(text)


def check_format(path: Path, content: dict[str, Any], wanted: str, command: str) -> None:
    """Raise InputError where a file is not of a ``format`` that a command writes."""
    if content.get("format") != wanted:
        raise InputError(
            f"{path}: format is {content.get('format')!r}; give a file that '{command} -o' wrote ({wanted!r})"
        )


def refuse_keys(path: Path, what: str, table: dict[str, Any], allowed_keys: Iterable[str]) -> None:
    """Raise InputError where a table, told as ``what``, holds a key that is none of those known."""
    allowed_keys = tuple(allowed_keys)
    for key in table:
        if key not in allowed_keys:
            raise InputError(f"{path}: {key!r} is no key of {what}; {accepted(key, allowed_keys)}")


def coefficient(path: Path, key: str, value: Any, low: float = 0.0, high: float = LARGEST) -> float:
    """Return a coefficient of a calibration; raises InputError at anything but a number from ``low`` to ``high``."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low - abs(low) * ROUNDED <= value <= high + abs(high) * ROUNDED:
        raise InputError(f"{path}: {key} is {value!r}; give a number from {low:g} to {high:g}")
    return float(value)


def coefficient_of(path: Path, key: str, row: Any, allowed: Allowed, further_keys: Iterable[str]) -> float:
    """Return the ``value`` of a coefficient's table, in its unit and range, or a number that stands for the table.

    ``further_keys``: what else the table may say. Raises InputError.
    """
    if not isinstance(row, dict):
        return coefficient(path, key, row, allowed.low, allowed.high)
    refuse_keys(path, key, row, ("value", "unit", *further_keys))
    if row.get("unit", allowed.unit) != allowed.unit:
        raise InputError(f"{path}: {key}.unit is {row['unit']!r}; give the value in {allowed.unit!r}")
    return coefficient(path, f"{key}.value", row.get("value"), allowed.low, allowed.high)


def list_of(path: Path, content: dict[str, Any], key: str) -> list[Any]:
    """Return the list that a file's table has under a key, an empty one where it has none; raises InputError."""
    found = content.get(key, [])
    if not isinstance(found, list):
        raise InputError(f"{path}: {key} is {found!r}; give a list")
    return found


def table_of(path: Path, content: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the table that a file's table has under a key, an empty one where it has none; raises InputError."""
    found = content.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: {key} is {found!r}; give a table")
    return found

"""GCoM's ``.config`` files: every key the program reads, with the type it reads it as."""

import re
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.base.text_file import read_text

_TABLE = "sass/gcom_config.csv"

CLOCK_GHZ = (0.1, 10.0)
"""Clocks of a GPU [GHz], with room around any that was built: what lies outside is in another unit."""


@dataclass(frozen=True)
class GcomConfig:
    """A GPU as GCoM describes it: ``values`` by GCoM's keys (data/sass/gcom_config.csv holds units and meanings).

    ``ignored`` are keys of the file that the program does not read; ``assumed`` are keys that the file misses although
    the shipped files have them: the program then takes its own, an RTX 2060's.
    """

    path: str
    values: dict[str, Any]
    ignored: tuple[str, ...] = field(default=())
    assumed: tuple[str, ...] = field(default=())

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def read_gcom_config(path: Path | str) -> GcomConfig:
    """Read a ``.config`` file; raises InputError with file and line where a value is mistyped.

    Keys that are missing keep the program's values, as there; the caller tells (``assumed``). The shipped files name
    the L2's geometry by keys that the program does not read (``l2DnSet`` ...) and miss those it does (``L2nSet`` ...).
    """
    schema = {row["key"]: row for row in read_table(_TABLE)}
    found, ignored = {}, []
    for number, key, value in _assignments(Path(path)):
        if key in schema:
            found[key] = _parse(schema[key], value, f"{path}, line {number}")
            _refuse_clock(key, found[key], f"{path}, line {number}")
        elif key not in ignored:
            ignored.append(key)
    if not found and "-gpgpu_" in read_text(Path(path), any_bytes=True):
        raise InputError(
            f"{path}: is a configuration of GPGPU-Sim, which is not read; give a GPU's name ('dse show gpus'), a GPU "
            "TOML, or a configuration of GCoM"
        )
    if not found:
        raise InputError(f"{path}: holds no key of a GCoM configuration; lines '<type> <key> = <value>' were expected")
    assumed = tuple(key for key, row in schema.items() if key not in found and row["optional"] != "1")
    return GcomConfig(str(path), default_values() | found, tuple(ignored), assumed)


def _refuse_clock(key: str, value: Any, where: str) -> None:
    low, high = CLOCK_GHZ
    if key == "coreFreq" and not low <= value <= high:
        raise InputError(f"{where}: coreFreq = {value:g} is no GPU's clock in GHz; give {low:g} to {high:g} GHz")


def default_values() -> dict[str, Any]:
    """Return the values that the program has for keys that a file misses: an RTX 2060's."""
    return {row["key"]: _parse(row, row["default"], _TABLE) for row in read_table(_TABLE)}


def _assignments(path: Path) -> list[tuple[int, str, str]]:
    """Return (line, key, value) of the lines ``<type> <key> = <value> // comment``; a key without value is skipped."""
    text = read_text(path, any_bytes=True)
    out = []
    for number, line in enumerate(text.splitlines(), 1):
        _, blank, rest = line.split("//", 1)[0].lstrip(" \t").partition(" ")
        key, equals, value = rest.partition("=")
        if blank and equals and key.strip() and value.strip():
            out.append((number, key.strip(), value.strip()))
    return out


def _parse(row: dict[str, str], value: str, where: str) -> Any:
    kind = row["type"]
    if kind == "integer" and re.fullmatch(r"[0-9]{1,10}", value, re.ASCII):
        number: Any = int(value)
    elif kind == "number" and re.fullmatch(r"[-+.0-9eE]+", value) and _is_number(value):
        number = float(value)
    elif kind == "integers" and (match := re.fullmatch(r"\{([0-9, \t]+)\}", value, re.ASCII)):
        number = _integers(match[1])
    elif kind == "word":
        number = value
    else:
        number = None
    if number is None or not _in_range(number, row):
        expected = f"{row['type']} {row['choices'] or 'of at least ' + row['low']}".replace("integers", "{a, b, ...}")
        raise InputError(f"{where}: {row['key']} = {value!r} is not accepted; give {expected}")
    return number


def _is_number(value: str) -> bool:
    try:
        return isfinite(float(value))
    except ValueError:
        return False


def _integers(text: str) -> tuple[int, ...] | None:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        return None
    sizes = tuple(map(int, parts))
    return sizes if list(sizes) == sorted(sizes) else None


def _in_range(number: Any, row: dict[str, str]) -> bool:
    if row["choices"]:
        return str(number) in row["choices"].split("|")
    low = float(row["low"])
    return all(low <= n < 2**32 for n in (number if isinstance(number, tuple) else (number,)))

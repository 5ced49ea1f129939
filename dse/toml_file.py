"""A user's TOML file, read; what is wrong is told with the file, the key, the value and what would be accepted."""

import tomllib
from pathlib import Path
from typing import Any

from dse.errors import InputError

LARGEST = 1e6
"""A coefficient of a calibration is less."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raises InputError when it cannot be read or parsed."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not valid TOML: {error}") from None


def check_format(path: Path, content: dict[str, Any], wanted: str, command: str) -> None:
    """Raise InputError where a file is not of a ``format`` that a command writes."""
    if content.get("format") != wanted:
        raise InputError(
            f"{path}: format is {content.get('format')!r}; give a file that '{command} -o' wrote ({wanted!r})"
        )


def coefficient(path: Path, key: str, value: Any) -> float:
    """Return a coefficient of a calibration; raises InputError at anything but a number from 0 to LARGEST."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LARGEST:
        raise InputError(f"{path}: {key} is {value!r}; give a number from 0 to 1e6")
    return float(value)

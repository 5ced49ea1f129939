"""The package's tables: CSV files under ``dse/data``, read as text rows and cached."""

import csv
import io
from functools import cache
from importlib.resources import files

from dse.base.errors import DseError


@cache
def _rows(path: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    resource = files("dse").joinpath("data", *path.split("/"))
    try:
        text = resource.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DseError(f"the package holds no table dse/data/{path}") from None
    return tuple(tuple((key, value or "") for key, value in row.items()) for row in csv.DictReader(io.StringIO(text)))


def read_table(path: str) -> list[dict[str, str]]:
    """Return the rows of ``dse/data/<path>`` as dictionaries of text, in file order."""
    return [dict(row) for row in _rows(path)]

"""The keys of a run's record (``run.json``) and what each may hold, so that an error names the key."""

from collections.abc import Callable, Collection, Mapping
from math import isfinite
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from dse.base.errors import InputError
from dse.grid.result import LIBRARIES

Columns = Mapping[str, list[Any]]
"""A table of a record: a list of cells by column."""


class Kind(NamedTuple):
    """What a key may hold: in ``words``, and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _number(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _table_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


def _columns(value: Any) -> bool:
    """Whether a value is a table: lists of plain cells, as many in each."""
    if not isinstance(value, dict) or not all(isinstance(cells, list) for cells in value.values()):
        return False
    plain = all(cell is None or isinstance(cell, str | int | float) for cells in value.values() for cell in cells)
    return plain and len({len(cells) for cells in value.values()}) <= 1


def _history(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == 4 and all(map(_number, row)) for row in value
    )


TEXT = Kind("a text", lambda value: isinstance(value, str))
COUNT = Kind("a whole number of at least 0", _count)
NUMBER = Kind("a number", _number)
TABLE = Kind("a table", lambda value: isinstance(value, dict))
COLUMNS = Kind("columns of the same length", _columns)

RUN = {
    "digest": TEXT,
    "name": TEXT,
    "space": TABLE,
    "folder": TEXT,
    "keep": Kind("all or front", lambda value: value in ("all", "front")),
    "n": COUNT,
    "n_feasible": COUNT,
    "n_pareto": COUNT,
    "infeasible": Kind("a table of whole numbers by reason", _table_of(_count)),
    "baseline": COLUMNS,
    "axis_effects": COLUMNS,
    "top": COLUMNS,
    "libraries": Kind(
        f"the version of each of {', '.join(LIBRARIES)}",
        lambda value: isinstance(value, dict) and all(isinstance(value.get(name), str) for name in LIBRARIES),
    ),
    "timing": TABLE,
    "timing.seconds": Kind("a table of seconds", _table_of(_number)),
}
"""Keys of every run's record that are read, those of a table after a point."""

SEARCH = {
    "search": TABLE,
    "search.sampler": TEXT,
    "search.seed": COUNT,
    "search.evaluations": COUNT,
    "search.hypervolume": NUMBER,
    "timing.history": Kind("a list of evaluations, seconds, members of the front and hypervolume", _history),
}
"""Further keys of a search's record."""


def again_of(document: Mapping[str, Any]) -> str:
    """Return what makes a run's files anew."""
    return f"{'search' if 'search' in document else 'sweep'} again"


def check_shape(path: Path, document: Mapping[str, Any]) -> None:
    """Raise InputError where a record lacks a key that is read, or holds something else there."""
    again = again_of(document)
    for key, kind in (RUN | SEARCH if "search" in document else RUN).items():
        table, _, inner = key.partition(".")
        place = document if not inner else document[table]
        if (inner or table) not in place:
            raise InputError(f"{path}: {key} is missing; {again}")
        if not kind.holds(value := place[inner or table]):
            raise InputError(f"{path}: {key} = {short(value)} is not accepted; give {kind.words}, or {again}")


def check_columns(where: str, columns: Columns, required: Collection[str], numeric: Collection[str] = ()) -> None:
    """Raise InputError where the table at ``where`` lacks a required column or holds no number in a numeric one."""
    for name in required:
        if name not in columns:
            raise InputError(f"{where}: column {name!r} is missing; sweep again")
    for name in numeric:
        for cell in columns[name]:
            if isinstance(cell, str):
                raise InputError(f"{where}: {name} = {cell!r} is not accepted; give a number, or sweep again")

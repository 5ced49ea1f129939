"""The columns of a measured table (``data/schema/measured.csv``): types, units, meaning, and what of them is modelled.

This one table makes the refusal of other columns, the check of numbers, the reasons of skipped rows and the manual
(``dse show columns``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.csv_table import UNIT, UNNAMED, numbers, refuse_units
from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table

NAMES_OF_TP = {"tp_size", "tp_degree", "tensor_parallel", "tensor_parallel_size", "gpus", "n_gpus", "num_gpus"}
"""Columns that stand for ``tp`` in tables of runs elsewhere."""


@dataclass(frozen=True)
class Column:
    """One column of a measured table."""

    name: str
    type: str
    """text, number, int (a whole number) or bool (1 or 0)."""
    unit: str
    """[unit] of a number, "" of words."""
    operators: str
    """Kinds of operators that use it."""
    modelled: str
    """Values that the models cover: any, no (none), words apart by blanks, or "=NAME": that of another column."""
    fitted: str
    """The same of rows that fits take, "" where it is what the models cover."""
    description: str

    def of_fits(self) -> "Column":
        """Return the column with what fits take as what is modelled."""
        return replace(self, modelled=self.fitted or self.modelled)

    def covers(self, cells: pd.Series, others: Mapping[str, pd.Series]) -> pd.Series:
        """Return which cells (rows,) state what is modelled; an empty one states nothing.

        ``others``: the columns that "=NAME" may name; a cell there that is empty compares with nothing.
        """
        if self.modelled.startswith("="):
            other = others.get(self.modelled[1:], pd.Series(np.nan, cells.index))
            return cells.isna() | other.isna() | (cells == other)
        return cells.isna() | cells.map(_word).isin(() if self.modelled == "no" else self.modelled.split())

    def reason(self, cell: object) -> str:
        """Return what is said of a cell that states what is not modelled."""
        if self.modelled == "no":
            return f"{self.name} is not modelled ({self.description})"
        modelled = self.modelled.replace(" ", " or ").replace("=", "that of ")
        return f"{self.name} {_word(cell)} is not modelled, only {modelled}"


def _word(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, int | float) else str(cell)


@cache
def measured_columns() -> dict[str, Column]:
    """Return the columns of a measured table by name, in the order of the schema."""
    fields = ("type", "unit", "operators", "modelled", "fitted", "description")
    rows = read_table("schema/measured.csv")
    return {row["column"]: Column(row["column"], *(row[field] for field in fields)) for row in rows}


def evaluated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return predicted rows with the columns of ``data/schema/evaluated.csv`` in their types: texts, 64-bit numbers.

    Raises KeyError where a column is missing, ValueError where a cell is of another type.
    """
    types = {"text": str, "number": np.float64}
    return rows.astype({row["column"]: types[row["type"]] for row in read_table("schema/evaluated.csv")})


def checked(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a user's table of measured rows with its numbers as numbers, columns without a name left out.

    Raises InputError at a column that the schema does not name, and at a word in a column of numbers.
    """
    refuse_units(path, frame.columns)
    frame = frame[[name for name in frame if not str(name).startswith(UNNAMED)]]
    _refuse_unknown(path, map(str, frame.columns))
    kinds = {name: measured_columns()[name].type for name in frame}
    return frame.assign(**{name: numbers(path, frame, name) for name in frame if kinds[name] in ("int", "number")})


def _refuse_unknown(path: Path, names: Iterable[str]) -> None:
    """Raise InputError at a column that the schema does not name."""
    known = measured_columns()
    for name in names:
        if name not in known:
            meant = "tp" if name.lower() in NAMES_OF_TP else UNIT.sub("", name.lower())
            remedy = accepted(meant, [meant] if meant in known else known)
            raise InputError(f"{path}: column {name!r} is not known; {remedy} ('dse show columns'; else drop it)")


def not_modelled(frame: pd.DataFrame, limits: Mapping[str, float], fits: bool = False) -> pd.Series:
    """Return what each row states beside its operator that no model covers, "" where all of it is.

    ``limits``: device -> power limit of its GPU [W], where it is known. With ``fits``: what no fit takes.
    """
    why = pd.Series("", frame.index, dtype=object)
    others = {**{str(name): frame[name] for name in frame}, "tdp_w": frame["device"].map(limits)}
    for column in (c.of_fits() if fits else c for c in measured_columns().values()):
        if column.modelled != "any" and column.name in frame and frame[column.name].notna().any():
            cells = frame[column.name]
            wrong = (why == "") & ~column.covers(cells, others)
            pairs = zip(frame["op"][wrong], cells[wrong], strict=True)
            why[wrong] = [f"{op}: {column.reason(cell)}" for op, cell in pairs]
    return why

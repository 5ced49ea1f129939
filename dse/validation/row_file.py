"""The predicted rows of a validation as a file: CSV or Parquet, by its name."""

from io import BytesIO
from pathlib import Path

import pandas as pd

from dse.base.atomic_files import write_bytes
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.measured.columns import measured_columns

SUFFIXES = (".csv", ".parquet")
"""Endings of a file of rows."""


def check_rows_file(path: Path | None) -> None:
    """Raise InputError where a file of rows is called what says neither CSV nor Parquet."""
    if path is not None and path.suffix not in SUFFIXES:
        raise InputError(f"--rows {path}: its name ends in {path.suffix!r}; accepted are {' and '.join(SUFFIXES)}")


def row_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return predicted rows with the columns that their table has, then those of ``data/schema/evaluated.csv``."""
    given = [name for name in measured_columns() if name in rows and rows[name].notna().any()]
    return rows[given + [row["column"] for row in read_table("schema/evaluated.csv")]]


def write_rows(rows: pd.DataFrame, path: Path) -> None:
    """Write :func:`row_table` to a file, whole or not at all; raises InputError where it cannot be written."""
    check_rows_file(path)
    content = BytesIO()
    if path.suffix == ".csv":
        row_table(rows).to_csv(content, index=False)
    else:
        row_table(rows).to_parquet(content, index=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); give another path") from None

"""Data that others measured, by name; README.md beside this file says what each table holds."""

from pathlib import Path

import pandas as pd

from dse.base.errors import InputError, accepted

HERE = Path(__file__).parent
MEASURED = HERE / "measured"
GCOM = HERE / "gcom"
ACCELWATTCH = HERE / "accelwattch"


def names() -> list[str]:
    """Return the names of the measured tables."""
    return sorted(table.stem for table in MEASURED.glob("*.parquet"))


def path(name: str) -> Path:
    """Return the file of a measured table; raises InputError where none is called so."""
    if name not in names():
        raise InputError(f"no measured table is called {name!r}; {accepted(name, names())}")
    return MEASURED / f"{name}.parquet"


def frame(name: str) -> pd.DataFrame:
    """Return the rows of a measured table in the columns of ``dse/data/schema/measured.csv``."""
    return pd.read_parquet(path(name))

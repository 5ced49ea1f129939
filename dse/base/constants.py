"""Single numbers of physics and of calibration: one table, ``data/constants.csv``, with units and sources."""

from functools import cache

from dse.base.package_tables import read_table


@cache
def _values() -> dict[str, float]:
    return {row["name"]: float(row["value"]) for row in read_table("constants.csv")}


def constant(name: str) -> float:
    """Return the number of a row of the table, in the row's unit."""
    return _values()[name]

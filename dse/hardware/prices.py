"""Prices of an hour of a GPU, as cloud lists state them."""

from functools import cache
from typing import NamedTuple

from dse.base.package_tables import read_table
from dse.base.units import KILO


class HourlyPrice(NamedTuple):
    """The price of an hour of one GPU [USD], and the list that states it."""

    usd: float
    list: str


@cache
def hourly_prices() -> dict[str, HourlyPrice]:
    """Return preset -> price, from dse/data/prices/hourly.csv."""
    rows = read_table("prices/hourly.csv")
    return {row["preset"]: HourlyPrice(float(row["usd_per_hour"]), f"{row['list']}, {row['read']}") for row in rows}


def usd_per_million_tokens(usd_per_hour: float, gpus: int, tokens_per_second: float) -> float:
    """Return what a million tokens cost [USD] on so many GPUs of this price, if they never wait for requests."""
    return usd_per_hour * gpus / (3600 * tokens_per_second) * KILO * KILO

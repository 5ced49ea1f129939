"""Prices of an hour of a GPU: as its own file states them, as cloud lists do, or assumed."""

from functools import cache
from statistics import median
from typing import Any, NamedTuple

from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.base.units import KILO

SECONDS_PER_HOUR = 3600

PRICE_KEYS = ("price_usd_h", "price_usd")
"""Keys of a GPU's TOML: price of an hour, or of the board [USD]."""

MOST_USD = 1e9
"""Highest price that is accepted."""


class HourlyPrice(NamedTuple):
    """The price of an hour of one GPU [USD], and the list that states it."""

    usd: float
    list: str
    assumed: bool = False

    def __str__(self) -> str:
        return f"{self.usd:.4g} ({self.list})"

    def document(self) -> dict[str, Any]:
        """Return it as JSON documents hold it."""
        return {"usd_per_hour": self.usd, "list": self.list, "assumed": self.assumed}


@cache
def hourly_prices() -> dict[str, HourlyPrice]:
    """Return preset -> price, from dse/data/prices/hourly.csv."""
    rows = read_table("prices/hourly.csv")
    return {row["preset"]: HourlyPrice(float(row["usd_per_hour"]), f"{row['list']}, {row['read']}") for row in rows}


def stated_price(content: dict[str, Any], where: str) -> HourlyPrice | None:
    """Take the price out of a GPU's mapping: ``price_usd_h`` of an hour, or ``price_usd`` of a board, shared out over
    its hours in dse/data/prices/ownership.csv; None where it states none. Raises InputError."""
    given = {key: content.pop(key) for key in PRICE_KEYS if key in content}
    for key, usd in given.items():
        if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 < usd <= MOST_USD:
            raise InputError(f"{where}: {key} = {usd!r} is not accepted; give dollars above 0, {MOST_USD:g} at most")
    if len(given) > 1:
        raise InputError(f"{where}: states both {' and '.join(given)}; give one of the two")
    if "price_usd" in given:
        years = ownership()["lifetime"]
        text = f"{given['price_usd']:g} USD for the board over {years:g} years, assumed; nothing else is charged"
        return HourlyPrice(given["price_usd"] / (years * ownership()["hours"]), text)
    return HourlyPrice(float(given["price_usd_h"]), "given") if given else None


def given_price(usd: float, gpu: str) -> HourlyPrice:
    """Return the price [USD] that a caller gives for the hour of a GPU; raises InputError where it is none."""
    if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 < usd <= MOST_USD:
        raise InputError(f"price of {gpu}: {usd!r} is not accepted; give dollars an hour above 0, {MOST_USD:g} at most")
    return HourlyPrice(float(usd), "given")


@cache
def ownership() -> dict[str, float]:
    """Return what shares out the price of a board: ``lifetime`` [year] and ``hours`` [hour/year]."""
    return {row["attribute"]: float(row["value"]) for row in read_table("prices/ownership.csv")}


def assumed_price(dram_bandwidth_gbs: float, bandwidths: dict[str, float]) -> HourlyPrice:
    """Return the price of an hour of a GPU that no list has: the median price of listed ones for each GB/s of DRAM.

    ``bandwidths``: preset -> DRAM bandwidth [GB/s] of the listed ones. Their prices for it differ by a factor of 15.
    """
    listed = hourly_prices()
    usd = median(price.usd / bandwidths[preset] for preset, price in listed.items()) * dram_bandwidth_gbs
    return HourlyPrice(usd, "assumed: the median of listed GPUs for their DRAM bandwidth", True)


def usd_per_million_tokens(usd_per_hour: float, gpus: int, tokens_per_second: Any) -> Any:
    """Return what a million tokens cost [USD] on so many GPUs of this price, if they never wait for requests; numbers
    or arrays alike."""
    return usd_per_hour * gpus / (SECONDS_PER_HOUR * tokens_per_second) * KILO * KILO

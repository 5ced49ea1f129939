"""Prices of an hour: every list is named, and a GPU without one has none or an assumed one."""

from dse.hardware.presets import gpu_index
from dse.hardware.prices import MOST_USD, hourly_prices


def test_every_price_is_a_gpus_and_has_a_list() -> None:
    for preset, price in hourly_prices().items():
        assert preset in gpu_index() and 0 < price.usd < MOST_USD and price.list

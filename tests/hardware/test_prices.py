"""Prices of an hour: every list is named, and a GPU without one has none or an assumed one."""

import pytest

from dse import InputError
from dse.hardware.presets import gpu_from_mapping, gpu_index, load_sheet
from dse.hardware.prices import MOST_USD, given_price, hourly_prices


def test_every_price_is_a_gpus_and_has_a_list() -> None:
    for preset, price in hourly_prices().items():
        assert preset in gpu_index() and 0 < price.usd < MOST_USD and price.list


def test_a_changed_gpu_has_the_price_of_its_base_as_an_assumption() -> None:
    listed = load_sheet("h200").hourly_price
    changed = gpu_from_mapping({"base": "h200", "l2_mib": 60}, "mine.toml", "mine").hourly_price
    assert not listed.assumed and changed.assumed
    assert changed.usd == listed.usd and listed.list in changed.list


@pytest.mark.parametrize("usd", [0, -1.0, float("nan"), 2e9, True, "3"])
def test_what_is_no_price_is_refused(usd) -> None:
    with pytest.raises(InputError, match=r"price of h200: .* is not accepted; give dollars an hour above 0"):
        given_price(usd, "h200")

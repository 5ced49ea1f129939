"""Prices of an hour: stated by a file, listed, or assumed; what a million tokens cost at them."""

from typing import Any

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import changed, gpu_from_mapping, preset_sheet
from dse.hardware.prices import hourly_prices, usd_per_million_tokens


def own(**keys: Any) -> Any:
    return gpu_from_mapping({"base": "h100_sxm", **keys}, "my.toml", "my")


def test_a_file_states_its_price_and_else_has_its_bases():
    assert own(price_usd_h=2.5).hourly_price.usd == 2.5
    assert own(l2_mib=60).hourly_price == hourly_prices()["h100_sxm"]
    assert own(price_usd_h=2.5).title == preset_sheet("h100_sxm").title


def test_a_boards_price_is_shared_out_over_its_hours():
    price = own(price_usd=35_064).hourly_price
    assert price.usd == pytest.approx(1.0) and "4 years, assumed" in price.list


def test_a_changed_sheet_keeps_its_price():
    assert changed(own(price_usd_h=2.5), {"l2_mib": 60}, "here").hourly_price.usd == 2.5


def test_without_a_list_it_is_assumed_between_those_of_listed_ones():
    price = preset_sheet("rtx_5090").hourly_price
    assert price.assumed and price.list.startswith("assumed")
    each = [p.usd / preset_sheet(name).numbers()["dram_bandwidth_gbs"] for name, p in hourly_prices().items()]
    assert min(each) < price.usd / preset_sheet("rtx_5090").numbers()["dram_bandwidth_gbs"] < max(each)
    assert 14 < max(each) / min(each) < 16  # as docs/own_gpu.md has it


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"price_usd_h": 0}, "dollars above 0"),
        ({"price_usd_h": "2"}, "dollars above 0"),
        ({"price_usd": float("nan")}, "dollars above 0"),
        ({"price_usd": 1, "price_usd_h": 1}, "both price_usd_h and price_usd"),
    ],
)
def test_mistakes_are_told(keys: dict[str, Any], said: str):
    with pytest.raises(InputError, match=said):
        own(**keys)


def test_dollars_of_tokens_by_hand():
    assert usd_per_million_tokens(3.6, 2, 1000.0) == pytest.approx(2.0)

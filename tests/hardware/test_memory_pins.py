"""Rates of DRAM pins: every shipped GPU has one that its memory gives, and impossible ones are said."""

import numpy as np
import pytest

from dse.base.package_tables import read_table
from dse.hardware.memory_pins import fastest_gbps, pin_gbps, pins_note, too_fast
from dse.hardware.presets import gpu_index, preset_sheet
from dse.hardware.process import memory_names

SHEETS = [preset_sheet(name) for name, row in gpu_index().items() if row["supported"] == "1"]


@pytest.mark.parametrize("sheet", SHEETS, ids=[sheet.name for sheet in SHEETS])
def test_the_memory_of_a_shipped_gpu_is_as_fast_as_its_data_sheet(sheet):
    assert pins_note(sheet.numbers()) == ""


def test_every_type_has_a_sourced_rate():
    assert list(fastest_gbps()) == memory_names()
    assert all(row["source"] for row in read_table("process/memory_pins.csv"))


def test_a_bandwidth_that_no_pin_gives_is_said_with_its_rate():
    numbers = preset_sheet("h100_sxm").numbers() | {"dram_bandwidth_gbs": 8000.0}
    assert pin_gbps(numbers) == pytest.approx(12.5)
    assert pins_note(numbers).startswith(
        "8,000 GB/s over 5,120 bits of hbm3 are 12.5 Gbit/s a pin; the fastest has 6.4."
    )


def test_many_designs_at_once():
    numbers = preset_sheet("l4").numbers() | {"dram_bandwidth_gbs": np.array([300.0, 576.0, 600.0])}
    assert too_fast(numbers).tolist() == [False, False, True]


def test_hbm4_is_a_memory_type_of_twice_the_width():
    from dse.hardware.presets import gpu_from_mapping

    changes = {"dram_type": "hbm4", "dram_bus_bits": 16384, "dram_bandwidth_gbs": 16384, "dram_gb": 288}
    numbers = gpu_from_mapping({"base": "b200", **changes}, "x.toml", "x").numbers()
    assert pins_note(numbers) == ""
    assert "the fastest has 10" in pins_note(numbers | {"dram_bandwidth_gbs": 32768.0})

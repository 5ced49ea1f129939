"""A memory of a user's own: attributes by hand, what stays assumed, and what area, power and price make of it."""

from pathlib import Path

import pytest

from dse import DieArea, InputError
from dse.hardware.cost import DieCost
from dse.hardware.memory_pins import pins_note
from dse.hardware.node_power import MemoryPower
from dse.hardware.own_guards import own_gpu_notes
from dse.hardware.own_memory import OWN_ATTRIBUTES, memory_keys
from dse.hardware.presets import GpuSheet, gpu_from_mapping, preset_names, preset_sheet
from dse.space.space import space_from_mapping

STACKS = {"stacks": 6, "stack_bits": 2048}
WHOLE = {
    **STACKS,
    "type": "hbm4",
    "pin_gbps": 12,
    "stack_gb": 64,
    "sustained_fraction": 0.92,
    "latency_ns": 180,
    "pj_per_bit": 1.5,
    "idle_w_per_gb": 0.05,
    "phy_mm2": 8,
    "usd_per_gb": 20,
}


def of(memory: object, **others: object) -> GpuSheet:
    return gpu_from_mapping({"base": "h100_sxm", "memory": memory, **others}, "mine.toml", "mine")


def test_attributes_by_hand() -> None:
    numbers = of(WHOLE).numbers()
    assert numbers["dram_bus_bits"] == 12_288
    assert numbers["dram_bandwidth_gbs"] == 12_288 * 12 / 8
    assert numbers["dram_gb"] == 6 * 64
    assert numbers["dram_phy_mm2_per_bit"] == 8 / 2048
    assert (numbers["dram_sustained_fraction"], numbers["dram_latency_ns"], numbers["dram_pin_gbps"]) == (0.92, 180, 12)
    assert of(STACKS | {"stack_gbs": 1000}).numbers()["dram_bandwidth_gbs"] == pytest.approx(6000)
    assert of({"pin_gbps": 8}).numbers()["dram_bandwidth_gbs"] == 5120  # over the base's 5,120 bits


def test_area_power_and_price_are_those_stated() -> None:
    own, gpu, base = of(WHOLE), of(WHOLE).record(), preset_sheet("h100_sxm").record()
    power, cost = MemoryPower.from_table(), DieCost.from_table()
    assert float(power.access_energy(gpu)) == 1.5
    assert float(power.idle(gpu)) == pytest.approx(0.05)
    assert float(cost(800.0, gpu).memory_usd) == pytest.approx(20 * own.numbers()["dram_gb"])
    area = DieArea.from_table()
    per_bit = {name: float(area(one)["memory_phy"] / one.dram_bus_bits) for name, one in (("own", gpu), ("base", base))}
    assert per_bit["own"] / per_bit["base"] == pytest.approx(
        8 / 2048 / 0.00944
    )  # the base's HBM3 in process/memory.csv


def test_what_is_not_stated_is_of_the_type_and_assumed() -> None:
    sheet = of({"type": "hbm4", "pin_gbps": 9})
    like = gpu_from_mapping({"base": "h100_sxm", "dram_type": "hbm4"}, "mine.toml", "mine")
    power = MemoryPower.from_table()
    assert float(power.access_energy(sheet.record())) == float(power.access_energy(like.record()))
    entry = sheet.entries["dram_usd_per_gb"]
    assert (entry.status, entry.source, entry.number) == ("assumed", "assumed: as hbm4", 13)
    note = own_gpu_notes(sheet)[1]
    assert "5,120 bits at 9 Gbit/s a pin" in note and "dram_usd_per_gb 13 (as hbm4)" in note


def test_all_that_is_stated_leaves_nothing_assumed() -> None:
    assert "assumed" not in own_gpu_notes(of(WHOLE))[1]


@pytest.mark.parametrize("name", preset_names())
def test_a_shipped_gpu_has_the_memory_of_its_type(name: str) -> None:
    assert not any(preset_sheet(name).numbers()[attribute] for attribute in OWN_ATTRIBUTES)


def test_a_bandwidth_beyond_its_own_pins_is_said() -> None:
    numbers = of(WHOLE).numbers()
    assert pins_note(numbers) == ""
    assert "the fastest has 12. Give" in pins_note(numbers | {"dram_bandwidth_gbs": 30_000.0})


@pytest.mark.parametrize(
    ("memory", "parts"),
    [
        (3, ["[memory] = 3 is not accepted", "give a table"]),
        ({"type": "hbm9"}, ["type = 'hbm9' is not a memory type", "hbm4"]),
        ({"pin_gbs": 3}, ["'pin_gbs' is no key of a memory", "pin_gbps"]),
        ({"pj_per_bit": "low"}, ["pj_per_bit = 'low'", "a number from 0.01 to 1000 pJ/bit"]),
        ({"pj_per_bit": True}, ["pj_per_bit = True"]),
        ({"pin_gbps": float("nan")}, ["pin_gbps = nan", "0.1 to 1000 Gbit/s"]),
        (STACKS | {"stacks": 2.5}, ["stacks = 2.5", "a whole number"]),
        ({"stacks": 6}, ["stacks needs stack_bits"]),
        ({"stack_gb": 6}, ["stack_gb needs stacks and stack_bits"]),
        (STACKS | {"stack_gbs": 600, "pin_gbps": 8}, ["both stack_gbs and pin_gbps"]),
        ({"stacks": 64, "stack_bits": 16384}, ["dram_bus_bits = 1048576", "32 to 65536"]),
    ],
)
def test_what_is_wrong_is_refused_by_its_key(memory: object, parts: list[str]) -> None:
    with pytest.raises(InputError) as error:
        of(memory)
    assert all(part in str(error.value) for part in ["mine.toml", "[memory]", *parts])


def test_an_attribute_that_follows_otherwise_is_refused() -> None:
    with pytest.raises(InputError, match=r"dram_gb is stated, and follows from \[memory\] too"):
        of(STACKS | {"stack_gb": 64}, dram_gb=80)
    assert of(STACKS | {"stack_gb": 64}, dram_gb=384).numbers()["dram_gb"] == 384


def test_a_gpu_without_a_base_needs_the_type() -> None:
    with pytest.raises(InputError, match=r"\[memory\]: type is missing; give one of gddr5"):
        gpu_from_mapping({"memory": {"pin_gbps": 3}}, "mine.toml", "mine")


def test_a_space_takes_it_and_its_numbers_are_axes() -> None:
    content = {
        "base": "h100_sxm",
        "gpu": {"memory": WHOLE},
        "axes": {"dram_pj_per_bit": [1, 2]},
        "workloads": {"decode": "gpt2_xl:phase=decode,batch=8,context=128,dtype=fp16"},
        "objectives": [{"value": "decode.energy_j", "goal": "min"}],
    }
    space = space_from_mapping(content, "mine.toml", "mine", Path.cwd())
    assert space.base.numbers()["dram_bandwidth_gbs"] == 18_432
    assert any("12,288 bits at 12 Gbit/s a pin" in note for note in own_gpu_notes(space.base))


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "own_gpu.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in ("type", *memory_keys()))

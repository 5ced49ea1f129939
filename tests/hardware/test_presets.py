"""Presets and GPU files: every value sourced, every name resolved, everything else refused by name."""

from dataclasses import replace
from operator import attrgetter

import equinox as eqx
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import (
    find_preset,
    gpu_from_mapping,
    gpu_index,
    load_gpu,
    load_sheet,
    preset_names,
    preset_sheet,
    sheet_of,
)
from dse.hardware.schema import gpu_schema
from experiments import data


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_has_every_attribute_in_bounds_with_a_source(preset):
    sheet = preset_sheet(preset)
    assert list(sheet.entries) == list(gpu_schema())
    for name, entry in sheet.entries.items():
        assert entry.source, name
        assert entry.status in ("sheet", "measured", "derived", "assumed", "default"), name
        assert entry.attribute.low <= entry.number <= entry.attribute.high, name


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_does_not_contradict_itself(preset):
    numbers = preset_sheet(preset).numbers()
    assert numbers["shared_memory_kib"] <= numbers["l1_kib"]
    assert numbers["tensor_clock_mhz"] <= numbers["boost_clock_mhz"]
    assert numbers["l1_latency_cycles"] >= numbers["shared_load_latency_cycles"] - 2  # measured on different cards
    rates = [numbers[name] for name in numbers if name.startswith("tensor_fma_")]
    assert any(rates) == (numbers["tensor_cores_per_sm"] > 0)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("h100_sxm", "h100_sxm"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("H100-SXM5-80GB", "h100_sxm"),
        ("A100-SXM4-80GB", "a100_sxm_80gb"),
        ("NVIDIA A100 80GB PCIe", "a100_pcie_80gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx_4090"),
        ("v100-sxm2-16gb", "v100_sxm2_16gb"),
    ],
)
def test_sheet_driver_and_data_set_names_resolve(name, preset):
    assert load_sheet(name).name == preset


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("A100", ["a100_sxm_40gb", "a100_sxm_80gb", "a100_pcie_40gb", "a100_pcie_80gb"]),
        ("NVIDIA H800", ["h800_pcie", "h800_sxm"]),
        ("V100-SXM2", ["v100_sxm2_16gb", "v100_sxm2_32gb"]),
    ],
)
def test_a_name_that_several_cards_share_is_answered_by_naming_them(name, cards):
    with pytest.raises(InputError, match="names several cards; give one of") as told:
        load_sheet(name)
    assert all(card in str(told.value) for card in cards)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000"),
        ("GeForce RTX 4090 D", "rtx_4090"),
        ("h100_smx", "h100_sxm"),
        ("NVIDIA L40G", "l40"),
        ("h1oo_sxm", "h100_sxm"),
        ("b2oo", "b200"),
    ],
)
def test_a_name_of_none_is_answered_by_the_nearest(name, preset):
    with pytest.raises(InputError, match=f"did you mean .*'{preset}'"):
        load_sheet(name)


def test_a_name_like_none_is_not_answered_by_a_dozen_others():
    with pytest.raises(InputError, match=r"give one of \d+ presets or the path of a GPU TOML"):
        load_sheet("Gaudi")


def test_a_file_of_another_tool_is_no_gpu(tmp_path):
    (tmp_path / "gpu.yaml").write_text("gpu: 1")
    with pytest.raises(InputError, match=r"gpu\.yaml is no GPU TOML; give base = "):
        load_sheet(tmp_path / "gpu.yaml")


def test_a_file_without_base_says_so():
    with pytest.raises(InputError, match=r"x: there is no base, and \d+ attributes are missing \(compute_capability"):
        gpu_from_mapping({"sm_count": 132}, "x", "x")


def test_shared_memory_lies_in_the_l1():
    content = {"base": "h100_sxm", "shared_memory_kib": 512}
    with pytest.raises(InputError, match="shared_memory_kib = 512 is more than l1_kib = 256, which holds it too"):
        gpu_from_mapping(content, "x", "x")
    assert gpu_from_mapping(content | {"l1_kib": 512}, "x", "x").numbers()["l1_kib"] == 512


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"dies": 2}, "dies = 2 and die_link_gbs = 0: nothing joins the dies"),
        ({"dies": 5, "die_link_gbs": 100}, "dies = 5 cannot share sm_count = 132 equally; give a multiple of 5 SMs"),
        ({"dies": 0}, "dies = 0 is not accepted; give a whole number from 1 to 64 die"),
        ({"dies": 2, "die_link_gbs": -1}, "die_link_gbs = -1 is not accepted"),
        ({"die_link_latency_ns": "fast"}, "die_link_latency_ns = 'fast' is not accepted"),
    ],
)
def test_dies_that_cannot_be_one_gpu_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        gpu_from_mapping({"base": "h100_sxm"} | changes, "x", "x")


def test_dies_share_the_sms_over_a_link():
    numbers = gpu_from_mapping({"base": "h100_sxm", "dies": 2, "die_link_gbs": 5000}, "x", "x").numbers()
    assert (numbers["dies"], numbers["die_link_gbs"], numbers["die_link_latency_ns"]) == (2, 5000, 0)


def test_a_record_has_the_sheet_of_the_preset_with_its_numbers():
    assert sheet_of(load_gpu("h100_sxm")) is preset_sheet("h100_sxm")
    fewer = sheet_of(replace(load_gpu("h100_sxm"), sm_count=96.0))
    assert (fewer.name, fewer.numbers()["sm_count"]) == ("record", 96)
    wrong = {
        "sm_count": (-5.0, "sm_count = -5 is not accepted"),
        "dram_gb": (float("nan"), "dram_gb = nan is not"),
        "shared_memory_kib": (512.0, "more than l1_kib = 256"),
        "dram_type": (2.5, r"dram_type = 2\.5 is not accepted; give the row number of a choice: 0 \("),
        "process": ("tsmc_4n", "process = 'tsmc_4n' is not accepted; give the row number"),
        "async_copy": (0.5, r"async_copy = 0\.5 is not accepted; give 0 or 1"),
        "l2_mib": (None, "l2_mib = None is not accepted; give a number from"),
        "boost_clock_mhz": ("1980", "boost_clock_mhz = '1980' is not accepted"),
    }
    for name, (value, sentence) in wrong.items():
        with pytest.raises(InputError, match=sentence):
            sheet_of(eqx.tree_at(attrgetter(name), load_gpu("h100_sxm"), value))  # unchecked, as outside of tests
    with pytest.raises(InputError, match=r"^GPU = 3 is not accepted; give a name, a path"):
        sheet_of(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("designs", [1, 2])
def test_a_record_of_many_designs_is_refused_by_its_first_array(designs):
    many = replace(load_gpu("h100_sxm"), sm_count=np.full(designs, 132.0), tdp_w=np.full(designs, 700.0))
    with pytest.raises(InputError, match=rf"GPU: sm_count has the shape \({designs},\); give the record of one GPU"):
        sheet_of(many)


def test_no_name_means_two_gpus():
    owners: dict[str, set[str]] = {}
    for preset, row in gpu_index().items():
        for name in (preset, row["name"], *filter(None, row["aliases"].split(";"))):
            owners.setdefault("".join(c for c in name.lower() if c not in "-_ "), set()).add(preset)
    assert {name: presets for name, presets in owners.items() if len(presets) > 1} == {}


def test_every_device_of_the_measurements_resolves():
    devices = {device for name in data.names() for device in data.frame(name)["device"]}
    assert len(devices) > 20
    assert {device for device in devices if find_preset(device) not in preset_names()} == set()


@pytest.mark.parametrize("name", ["mi300x", "AMD Instinct MI210"])
def test_amd_is_refused_with_a_sentence(name):
    with pytest.raises(InputError, match=r"cannot be evaluated: .*the interval model describes NVIDIA SMs"):
        load_sheet(name)


def test_an_unknown_gpu_is_refused_with_the_nearest_names():
    with pytest.raises(InputError, match=r"no GPU is called 'h100_smx'; did you mean 'h100_sxm'"):
        load_sheet("h100_smx")


def test_a_file_states_its_base_and_what_differs(tmp_path):
    path = tmp_path / "big.toml"
    path.write_text('base = "H100 SXM5"\nname = "Big"\nsm_count = 160\nprocess = "tsmc_n3e"\n')
    sheet, base = load_sheet(path), preset_sheet("h100_sxm")
    assert (sheet.name, sheet.title) == ("big", "Big")
    assert sheet.entries["sm_count"].value == 160
    assert sheet.entries["sm_count"].status == "user"
    changed = {name for name in sheet.entries if sheet.entries[name] != base.entries[name]}
    assert changed == {"sm_count", "process"}


def test_a_file_without_base_needs_every_required_attribute():
    required = {name: attr for name, attr in gpu_schema().items() if attr.default is None}
    content = {name: attr.choices[0] if attr.choices else attr.low for name, attr in required.items()}
    sheet = gpu_from_mapping(content, "own.toml", "own")
    assert sheet.entries["issue_rate"].status == "default"
    del content["l2_mib"]
    with pytest.raises(InputError, match=r"own.toml: l2_mib is missing; give a number from 0.25 to 4096 MiB"):
        gpu_from_mapping(content, "own.toml", "own")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"base": "h100_sxm", "sm_cuont": 3}, "'sm_cuont' is not an attribute of a GPU; did you mean 'sm_count'"),
        ({"base": "h100_sxm", "sm_count": "many"}, "sm_count = 'many' is not accepted; give a whole number from 1"),
        (
            {"base": "h100_sxm", "l2_mib": 1e6},
            "l2_mib = 1000000.0 is not accepted; give a number from 0.25 to 4096 MiB",
        ),
        ({"base": "h100_sxm", "process": "tsmc"}, "process = 'tsmc' is not accepted; give one of tsmc_28"),
        ({"base": "h100_sxm", "L2_MIB": 96}, "'L2_MIB' is not an attribute of a GPU; did you mean 'l2_mib'"),
        ({"base": 7}, "base = 7 is not accepted"),
        ({"base": "mi300x"}, "base: .*cannot be evaluated"),
        ({"base": "h100_sxm", "name": 3}, "name = 3 is not accepted"),
    ],
)
def test_a_file_is_refused_by_name(content, sentence):
    with pytest.raises(InputError, match=f"own.toml: {sentence}"):
        gpu_from_mapping(content, "own.toml", "own")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_sheet(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("sm_count = = 3")
    with pytest.raises(InputError, match="not valid TOML"):
        load_sheet(tmp_path / "bad.toml")


def test_a_sheet_is_shown_in_a_line():
    assert repr(preset_sheet("h100_sxm")) == f"GpuSheet('h100_sxm': H100 SXM5 80GB, {len(gpu_schema())} attributes)"
    mine = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 96}, "here", "mine")
    assert repr(mine).startswith("GpuSheet('mine': H100 SXM5 80GB, changed, from h100_sxm, ")


@pytest.mark.parametrize("value", [None, 5, b"h100_sxm", ["h100_sxm"]])
def test_what_is_neither_a_name_nor_a_path_is_refused(value):
    with pytest.raises(
        InputError, match=r"^GPU = .* is not accepted; give the name of a GPU, as 'h100_sxm', or the path"
    ):
        load_gpu(value)

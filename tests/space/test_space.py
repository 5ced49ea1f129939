"""Space files: what they mean, and a sentence for every way to get them wrong."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.cost import DieCost
from dse.space import designs
from dse.space.fingerprint import fingerprint
from dse.space.shipped import shipped_spaces
from dse.space.space import load_space, space_from_mapping
from dse.timing.calibration import load_timing_calibration, shipped_calibrations


def test_grid_runs_through_the_last_axis_first(small: dict[str, Any]) -> None:
    space = space_from_mapping(small, "here", "small")
    assert space.size == 45
    columns = space.at(np.arange(45))
    assert columns["dram_bandwidth_gbs"][:4].tolist() == [1675, 3350, 6700, 1675]
    assert columns["sm_count"][:4].tolist() == [96, 96, 96, 108]
    assert columns["tensor_fma_bf16"][[0, 15, 44]].tolist() == [256, 512, 1024]
    assert len({tuple(row) for row in np.stack(list(columns.values()), axis=1)}) == 45


def test_links_follow_axes_and_base(small: dict[str, Any]) -> None:
    small["links"] |= {"l2_slices": "base.l2_slices * sm_count / base.sm_count", "l2_clock_mhz": "boost_clock_mhz"}
    space = space_from_mapping(small, "here", "small")
    columns = designs.with_links(space, space.at(np.arange(45)))
    np.testing.assert_allclose(columns["tensor_fma_fp8"], 2 * columns["tensor_fma_bf16"])
    np.testing.assert_allclose(columns["l2_slices"], np.round(80 * columns["sm_count"] / 132))
    assert (columns["l2_clock_mhz"] == 1980).all()


def test_baseline_is_the_base_itself(small: dict[str, Any]) -> None:
    small["gpu"] = {"l2_mib": 60}
    space = space_from_mapping(small, "here", "small")
    assert space.base.entries["l2_mib"].number == 60
    assert designs.baseline(space)["sm_count"].tolist() == [132]


def test_same_content_same_digest(small: dict[str, Any]) -> None:
    one, two = (space_from_mapping(small, "here", "small").digest for _ in range(2))
    small["gpu"] = {"l2_mib": 60}
    assert one == two != space_from_mapping(small, "here", "small").digest


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_shipped_spaces_load(name: str) -> None:
    space = load_space(shipped_spaces()[name])
    assert space.size > 1
    assert space.question


def test_main_space_has_a_million_designs_around_the_h100() -> None:
    space = load_space(shipped_spaces()["h100_tensor_core"])
    assert space.size >= 1_000_000
    base = space.base.numbers()
    for axis in space.axes:
        assert base[axis.name] in axis.numbers, axis.name
    columns = designs.with_links(space, {axis.name: np.array([base[axis.name]]) for axis in space.axes})
    for name, _ in space.links:
        assert columns[name][0] == pytest.approx(base[name]), name


def _set(path: str, value: Any):
    def change(content: dict[str, Any]) -> None:
        *parents, last = path.split("/")
        for parent in parents:
            content = content[parent]
        if value is None:
            del content[last]
        else:
            content[last] = value

    return change


WRONG = [
    (_set("bse", "h100"), ["'bse'", "did you mean 'base'"]),
    (_set("base", None), ["base is missing", 'base = "h100_sxm"']),
    (_set("base", 3), ["base = 3 is not accepted", "name or the TOML of a GPU"]),
    (_set("name", ""), ["name = '' is empty"]),
    (_set("base", "h100_smx"), ["h100_smx", "h100_sxm"]),
    (_set("base", "mi300x"), ["MI300X", "cannot be evaluated"]),
    (_set("gpu", {"sm_cnt": 3}), ["[gpu]", "'sm_cnt'", "sm_count"]),
    (_set("gpu", {"sm_count": "many"}), ["sm_count = 'many'", "1 to 1024"]),
    (_set("axes", {}), ["[axes]"]),
    (_set("axes/sms", [1]), ["'sms'", "not an attribute"]),
    (_set("axes/l2_mib", [1e9]), ["[axes] l2_mib", "4096 MiB"]),
    (_set("links/sm_count", "3"), ["[links] sm_count", "axis already"]),
    (_set("links/l2_mib", "open('x')"), ["[links] l2_mib", "not allowed"]),
    (_set("links/l2_mib", "sm_cuont"), ["'sm_cuont'", "sm_count"]),
    (_set("links/l2_mib", 60), ["[links] l2_mib", "60 is not an expression", "2 * sm_count"]),
    (_set("links/l2_mib", "-sm_count"), ["[links] l2_mib = '-sm_count' is -144 to -96 in every design", "4096 MiB"]),
    (_set("links/l2_mib", "1e6"), ["[links] l2_mib = '1e6' is 1e+06 in every design", "4096 MiB"]),
    (_set("links/l2_mib", "sm_count / (base.l2_mib - 50)"), ["[links] l2_mib", "'base.l2_mib - 50', which is 0"]),
    (_set("links/l2_mib", "sqrt(-sm_count)"), ["[links] l2_mib", "no finite number in any design"]),
    (_set("links/warpgroup_mma", "0.5"), ["[links] warpgroup_mma = '0.5' is 0.5 in every", "true or false"]),
    (_set("workloads", None), ["[workloads] is missing"]),
    (_set("workloads/decode", "llama3_9b"), ["llama3_9b", "llama3_8b"]),
    (_set("workloads/decode", "llama3_8b:batc=3"), ["'batc'", "batch"]),
    (_set("workloads/decode", "llama3_8b:batch=0"), ["batch=0", "whole number"]),
    (_set("workloads/decode", "llama3_8b:tp=3"), ["tp=3"]),
    (_set("workloads/decode", "llama3_8b:dtype=fp7"), ["fp7", "fp8"]),
    (_set("workloads/decode", {"use": "gpt2_xl", "wieght": 1}), ["[workloads] decode"]),
    (_set("workloads/decode", "llama3_8b:dtype=fp4"), ["computes in fp4", "lacks", "fp8"]),
    (_set("objectives", []), ["objectives are missing"]),
    (_set("objectives", [{"value": "decode.tbt", "goal": "min"}]), ["'decode.tbt'", "decode.tbt_ms"]),
    (_set("objectives", [{"value": "decode.tbt_ms", "goal": "less"}]), ["goal = 'less'", '"min"']),
    (_set("objectives", [{"value": "prefill.tbt_ms", "goal": "min"}]), ["'prefill.tbt_ms'"]),
    (_set("objectives", [{"value": "decode.tbt_ms", "goal": "min", "name": "die_mm2"}]), ["die_mm2", "something else"]),
    (
        _set(
            "objectives",
            [
                {"value": "decode.tbt_ms", "goal": "min"},
                {"value": "2 * die_mm2", "goal": "min", "name": "decode.dram_bandwidth_ms"},
            ],
        ),
        ["entry 2: name = 'decode.dram_bandwidth_ms' means something else"],
    ),
    (_set("objectives", [{"value": "decode.energy_j", "goal": "min", "unit": "kWh"}]), ["unit = 'kWh'", "is in J"]),
    (_set("objectives", [{"value": "3", "goal": "min"}]), ["entry 1: value: '3' is the same in every design"]),
    (_set("objectives", [{"value": "2 * base.tdp_w", "goal": "min"}]), ["is the same in every design", "die_mm2"]),
    (_set("objectives", [{"value": "die_mm2 / 0", "goal": "min"}]), ["entry 1: value:", "divides by '0'"]),
    (_set("objectives", [{"value": "log(sm_count - 500)", "goal": "min"}]), ["value:", "no finite number"]),
    (_set("objectives", [{"value": "decode.tbt_ms", "goal": "min", "name": " "}]), ["entry 1: name = ' ' is empty"]),
    (_set("constraints", ["die_mm2 / (sm_count - sm_count) <= 3"]), ["entry 1", "'sm_count - sm_count', which is 0"]),
    (_set("constraints", ["base.die_mm2 <= 2"]), ["constraints, entry 1", "the same in every design"]),
    (_set("constraints", ["die_mm2 <= base.decode.ttft_ms"]), ["'base.decode.ttft_ms'", "base.decode.tbt_ms"]),
    (_set("links/l2_mib", "base.die_mm2"), ["[links] l2_mib", "'base.die_mm2'"]),
    (_set("constraints", ["1 <= 2"]), ["constraints, entry 1", "the same in every design"]),
    (_set("workloads/decode", ""), ["[workloads] decode: workload '': is empty", "llama3_8b:phase=decode"]),
    (_set("gpu", {"peaks": {"bf16": 1979}}), ["sparsity"]),
    (_set("constraints", ["die_mm2"]), ["not a condition", "die_mm2 <= 814"]),
    (_set("constraints", ["area <= 3"]), ["'area'"]),
    (_set("timing", "amalli"), ["'amalli'", "amali"]),
    (_set("timing", {"model": "amali", "roofline_flor": False}), ["'roofline_flor'", "roofline_floor"]),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_files_are_refused_in_a_sentence(number: int, small: dict[str, Any], write_space) -> None:
    change, parts = WRONG[number]
    small.setdefault("links", {})
    change(small)
    path = write_space(small)
    with pytest.raises(InputError) as caught:
        load_space(path)
    message = str(caught.value)
    assert re.match(re.escape(str(path)), message), message
    for part in parts:
        assert part in message


def test_an_axis_moves_its_own_links_alone(small: dict[str, Any]) -> None:
    small |= {"axes": {"sm_count": [96, 120], "tdp_w": [500, 700]}, "links": {"l2_mib": "sm_count"}}
    which, columns = designs.one_axis_at_a_time(space_from_mapping(small, "here", "small"))
    assert which == [("sm_count", 96), ("sm_count", 120), ("tdp_w", 500), ("tdp_w", 700)]
    assert columns["sm_count"].tolist() == [96, 120, 132, 132]
    assert columns["l2_mib"].tolist() == [96, 120, 50, 50]  # the base's own where it does not move
    assert columns["tdp_w"].tolist() == [700, 700, 500, 700]


def test_a_shipped_space_is_found_by_name() -> None:
    assert load_space("h100_tensor_core").name == "h100_tensor_core"


def test_the_digest_covers_what_a_file_holds(small: dict[str, Any], tmp_path) -> None:
    digests = []
    for size in (512, 1024):
        (tmp_path / "gemms.csv").write_text(f"m,n,k\n{size},512,512\n")
        small["workloads"] = {"list": "gemms.csv"}
        small["objectives"] = [{"value": "list.time_ms", "goal": "min"}]
        digests.append(space_from_mapping(small, "here", "small", tmp_path).digest)
    assert digests[0] != digests[1]


def test_the_digest_covers_what_a_die_costs(small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    before = space_from_mapping(small, "here", "small").digest
    dearer = replace(DieCost.from_table(), wafer_usd=2 * DieCost.from_table().wafer_usd)
    monkeypatch.setattr(DieCost, "from_table", lambda *_: dearer)
    assert space_from_mapping(small, "here", "small").digest != before


def test_the_digest_covers_every_number_of_a_calibration(small: dict[str, Any], tmp_path) -> None:
    digests, shipped = [], shipped_calibrations()["h100_sxm"].read_text()
    for value in ("0.8", "0.800001"):
        text = re.sub(r"(?<=\[parameters\.dram\]\nvalue = )[\d.]+", value, shipped)
        (tmp_path / "mine.toml").write_text(text)
        small["timing"] = {"model": "amali", "calibration": "mine.toml"}
        digests.append(space_from_mapping(small, "here", "small", tmp_path).digest)
    assert digests[0] != digests[1]


def test_file_that_is_not_toml_is_named(tmp_path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("base = ")
    with pytest.raises(InputError, match=r"broken\.toml: is not valid TOML"):
        load_space(path)
    with pytest.raises(InputError, match="no such file"):
        load_space(tmp_path / "none.toml")


def test_a_calibration_in_place_of_a_space_is_told_as_what_it_is(small: dict[str, Any]) -> None:
    sentence = r"^mine\.toml: is a dse timing calibration, not a space; give it to what names it \(--calibration"
    with pytest.raises(InputError, match=sentence):
        space_from_mapping(small | {"format": "dse timing calibration 2"}, "mine.toml", "mine")


def test_yield_and_power_models_are_chosen_by_name(small: dict[str, Any]) -> None:
    small["axes"] = {"sm_count": [120, 132]}
    small["yield_model"], small["power"] = "murphy", {"model": "board", "limit": False}
    space = space_from_mapping(small, "s.toml", "s")
    assert (space.yield_model, space.power.limit) == ("murphy", False)
    assert space.digest != space_from_mapping(small | {"power": "board"}, "s.toml", "s").digest
    with pytest.raises(InputError, match="yield_model = 'poisson' is not accepted"):
        space_from_mapping(small | {"yield_model": "poisson"}, "s.toml", "s")
    with pytest.raises(InputError, match="no power model is called 'watts'"):
        space_from_mapping(small | {"power": "watts"}, "s.toml", "s")


POSSIBLE = [
    _set("links/l2_mib", "(sm_count - 120) * 2"),  # outside its range in some designs only
    _set("links/l2_mib", "6000 / (sm_count - 96)"),  # divides by 0 in some designs only
    _set("links/l2_mib", "60"),
    _set("links/sm_enabled_fraction", "base.sm_count / base.sm_count"),
    _set("constraints", ["die_mm2 / (sm_count - 96) <= 800"]),
    _set("objectives", [{"value": "-1 * prefill.ttft_ms / dram_bandwidth_gbs", "goal": "max"}]),
]


@pytest.mark.parametrize("number", range(len(POSSIBLE)))
def test_what_some_designs_can_have_is_accepted(number: int, small: dict[str, Any]) -> None:
    POSSIBLE[number](small)
    assert space_from_mapping(small, "here", "small").size == 45


def test_a_data_type_that_the_base_lacks_is_told_with_its_types(small: dict[str, Any]) -> None:
    small |= {"base": "v100_sxm2_32gb", "axes": {"sm_count": [80, 96]}, "links": {}}
    with pytest.raises(
        InputError, match=r"^here: \[workloads\] prefill: .*bf16, in which no kernels of .* can in fp32, fp16$"
    ):
        space_from_mapping(small, "here", "small")


def test_results_of_a_base_that_lacks_a_data_type_are_refused(small: dict[str, Any]) -> None:
    small |= {"base": "a100_sxm_80gb", "axes": {"tensor_fma_fp8": [1024, 2048]}, "links": {}}
    small["workloads"] = {"decode": "gpt2_xl:phase=decode,dtype=fp8", "wide": "gpt2_xl:phase=decode,dtype=bf16"}
    small["objectives"] = [{"value": "decode.tbt_ms / base.wide.tbt_ms", "goal": "min"}]
    assert space_from_mapping(small, "here", "small").of_base() == ["wide.tbt_ms"]
    small["objectives"] = [{"value": "decode.tbt_ms / base.decode.tbt_ms", "goal": "min"}]
    with pytest.raises(InputError, match=r"^here: base\.decode\.tbt_ms has no value: decode computes in fp8, which"):
        space_from_mapping(small, "here", "small")


def test_a_grid_too_large_to_look_through_is_not_judged(small: dict[str, Any]) -> None:
    small["axes"] |= {
        "boost_clock_mhz": {"from": 500, "to": 1999, "step": 0.1},
        "l2_clock_mhz": {"from": 500, "to": 1999, "step": 0.1},
    }
    small["links"]["l2_mib"] = "-boost_clock_mhz - l2_clock_mhz"
    assert space_from_mapping(small, "here", "small").size > 1e9


def test_a_space_is_shown_by_what_it_asks(small: dict[str, Any]) -> None:
    shown = repr(space_from_mapping(small, "here", "small"))
    assert shown.startswith("Space('small': 45 designs around H100 SXM5 80GB\n")
    assert "axes: tensor_fma_bf16 (3 values), sm_count (5 values)" in shown
    assert "min decode.tbt_ms [ms], min die_mm2 [mm2]; 0 constraints" in shown
    assert len(shown.splitlines()) == 5


def test_the_digest_covers_more_than_a_model_shows() -> None:
    model = load_timing_calibration("h100_sxm").model
    other = replace(model, errors=replace(model.errors, source="elsewhere"))
    assert repr(other) == repr(model)
    assert fingerprint(other) != fingerprint(model)


@pytest.mark.parametrize("value", [None, 3, b"edge_75w"])
def test_what_is_neither_a_name_nor_a_path_of_a_space_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^space = .* is not accepted; give the path of a space TOML, or the name"):
        load_space(value)
